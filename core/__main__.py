"""The command line: `headlight trace`, `models`, `plan`, `atlas`, and `run`, which starts the app. In a checkout: `python -m headlight`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .checkpoints import CATALOG, Loaded, load
from .checkpoints.from_config import ParsedConfig, describe
from .device import GiB, MiB, pick_device, pick_dtype
from .errors import HeadlightError, install_line, missing_extra
from .model.config import ModelConfig
from .patching import MAX_TOKENS
from .plan import DEVICES, Device, Workload, longest_fit, on_card, plan
from .plan.operations import device_named
from .plan.workload import CACHE, WEIGHT_FORMATS
from .read import report
from .run.request import user_message
from .trace import trace, trace_chat
from .version import __version__

if TYPE_CHECKING:
    from .patching.atlas import SurveyResult


PACKAGE = Path(__file__).resolve().parent
NEEDED = (
    "streamlit",
    "plotly",
    "pandas",
    "prometheus_client",
    "segno",
)  # dependencies of the app that core does not have


def screens(name: str) -> ModuleType:
    """A module of app. Raises Refused, naming the extra to install, if the app or a dependency is missing."""
    package = _package()
    missing = [needed for needed in NEEDED if find_spec(needed) is None]
    if package is None or missing:
        lacking = ", ".join(missing) or "files that this installation does not have"
        raise HeadlightError(f"The screens need {lacking}. They come with: {install_line('app')}")
    return import_module(f"{package}.{name}")


def _package() -> str | None:
    """Name of the app's package: headlight.app, or app in a checkout."""
    if (PACKAGE / "app").is_dir():
        return f"{__package__}.app"
    return "app" if (PACKAGE.parent / "app" / "start.py").is_file() else None


COMMAND = "headlight"
LOCALHOST = "localhost"
BAR = 30  # characters of the progress bar of an atlas


def main(arguments: Sequence[str] | None = None, prog: str = COMMAND) -> int:
    """Run one command; returns 0, or 2 after printing an error to standard error. `prog` is the name in the usage message."""
    options = _parser(prog).parse_args(arguments)
    try:
        options.run(options)
    except HeadlightError as error:
        print(f"headlight: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"headlight: {error.filename or 'the file'}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser(prog: str = COMMAND) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Look at what attention does inside a transformer.")
    parser.add_argument("--version", action="version", version=f"Headlight {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (run, help_text, arguments) in COMMANDS.items():
        command = commands.add_parser(name, help=help_text)
        for argument, options in arguments.items():
            command.add_argument(argument, **options)
        command.set_defaults(run=run)
    return parser


def _run(options: argparse.Namespace) -> None:
    screens("start").start(options.address, options.port, options.model)


def _trace(options: argparse.Namespace) -> None:
    loaded = _with_notices(_load(options.model, revision=options.revision, progress=_show_download))
    if options.chat and options.target is not None:
        raise HeadlightError("A conversation has no target. Leave out --chat or --target.")
    run = (
        trace_chat(loaded, user_message(options.text)) if options.chat else trace(loaded, options.text, options.target)
    )
    if options.npz:
        report.write_npz(run, options.npz)
    if options.html:
        options.html.write_text(report.html(run), encoding="utf-8")
    if options.json == Path("-"):
        print(json.dumps(report.summary(run), ensure_ascii=False))
    elif options.json:
        options.json.write_text(json.dumps(report.summary(run), ensure_ascii=False, indent=1), encoding="utf-8")
    if not (options.json or options.npz or options.html):
        print(report.words(run))


def _load(name: str, **options: Any) -> Loaded:
    device = pick_device()
    return load(name, device=device, dtype=pick_dtype(device), **options)


def _with_notices(loaded: Loaded) -> Loaded:
    """Print notices about unused files of the model to standard error."""
    for notice in filter(None, (*loaded.notices, loaded.no_tokenizer)):
        print(f"headlight: {loaded.spec.title}: {notice}", file=sys.stderr)
    return loaded


def _show_download(name: str, done: int, total: int) -> None:
    share = f"{done / total:4.0%}" if total else f"{done >> 20} MiB"
    print(f"\r{name}: {share}", end="" if done < total else "\n", file=sys.stderr, flush=True)


def _atlas(options: argparse.Namespace) -> None:
    if options.most is not None and options.most < 1:
        raise HeadlightError(f"--first is {options.most}, but it is how many texts are run: 1 or more.")
    try:
        from .patching import atlas
    except ModuleNotFoundError as error:
        raise HeadlightError(missing_extra("An atlas", "pyarrow", "atlas")) from error

    texts = atlas.texts_of(options.texts, options.column, options.most)
    loaded = _with_notices(_load(options.model, progress=_show_download))
    surveyed = _on_ray(options) if options.ray is not None else None
    _show_texts(0, len(texts))
    table = atlas.survey(
        loaded, texts, options.out, most_tokens=options.tokens, progress=_show_texts, surveyed=surveyed
    )
    print(f"{options.out}: {table.num_rows:,} rows, {len(texts):,} texts")
    if options.json:
        summary = atlas.summary(table, texts, lambda text: atlas.tokenized_text(loaded, text, options.tokens))
        options.json.write_text(json.dumps(summary, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _on_ray(options: argparse.Namespace) -> SurveyResult:
    """Raises Refused."""
    if options.ray < 1:
        raise HeadlightError(f"--ray is {options.ray}, but it is in how many processes the model is: 1 or more.")
    if importlib.util.find_spec("ray") is None:
        raise HeadlightError(
            f"Ray is not installed here. It comes with: {install_line('ray')}. Without --ray the atlas is the same."
        )
    from .patching.atlas_ray import on_ray

    return on_ray(partial(_load, options.model), options.tokens, options.ray)


def _show_texts(done: int, total: int) -> None:
    bar = "#" * (BAR * done // total)
    end = "" if done < total else "\n"
    print(f"\r[{bar:-<{BAR}}] {done:,} of {total:,} texts", end=end, file=sys.stderr, flush=True)


def _plan(options: argparse.Namespace) -> None:
    known = describe(options.model, revision=options.revision)
    card = None if options.card is None else device_named(options.card)
    if options.card is not None and card is None:
        raise HeadlightError(
            f"There is no card {options.card!r} here. Choose one of {', '.join(device.name for device in DEVICES)}."
        )
    work = _workload(options, known)
    planned = plan(known.config, work)
    if options.json:
        print(json.dumps(planned.to_dict()))
        return
    formats = planned.dtype if work.weight_dtype is None else f"{planned.dtype}, weights {work.weight_dtype}"
    print(f"{planned.parameters.total:>20,} parameters, {formats}")
    for name, size in planned.memory.to_dict().items():
        print(f"{size / MiB:>20,.1f} MiB {size / 1e9:>10,.2f} GB  {name.replace('_', ' ')}")
    print(f"{planned.step_flops:>20,} FLOPs")
    if card is not None:
        print(_on_card(known.config, work, card, planned.total))


def _workload(options: argparse.Namespace, known: ParsedConfig) -> Workload:
    quantized = None if options.training or options.dtype is not None else known.weight_dtype
    return Workload(
        batch=options.batch,
        source_len=options.source_len,
        target_len=options.target_len or (options.source_len if known.config.kind == "encoder-decoder" else 0),
        dtype=options.dtype or known.dtype or "float32",
        weight_dtype=options.weights or quantized,
        kv_dtype=options.kv,
        training=options.training,
        attention=options.attention,
        logits=options.logits,
        piece=options.piece,
        rank=options.rank,
    )


def _on_card(config: ModelConfig, work: Workload, card: Device, total: int) -> str:
    """Says whether a plan fits into the usable memory of a GPU, and the longest text and the largest batch that do."""
    budget = on_card(card).budget
    left = budget - total
    sentence = f"{card.name}: {card.mebibytes / 1024:.2f} GiB, {card.memory / GiB:.2f} of them for programs"
    sentence += f", {budget / GiB:.2f} beside a CUDA context. " if budget < card.memory else ". "
    sentence += f"Fits, {left / GiB:.2f} GiB left." if left >= 0 else f"Does not fit: {-left / GiB:.2f} GiB too much."
    length, batch = longest_fit(config, budget, work), longest_fit(config, budget, work, vary="batch")
    is_limited = length.ceiling is not None and length.n >= length.ceiling
    limit = f", and its table of positions has {length.ceiling:,}" if is_limited else ""
    return f"{sentence} By this upper bound {length.n:,} tokens would{limit}, or a batch of {batch.n:,} of this length."


def _models(options: argparse.Namespace) -> None:
    if options.json:
        names = {"id": "id", "title": "title", "parameters": "n_params", "licence": "licence", "note": "note"}
        print(json.dumps([{name: getattr(spec, field) for name, field in names.items()} for spec in CATALOG]))
        return
    for spec in CATALOG:
        print(f"{spec.id:14} {spec.title:24} {spec.n_params:>12,} parameters  {spec.note}")
    print("\nAny Hub repository (owner/name) or local folder of a supported family loads as well.")


def _option(help_text: str, **options: Any) -> dict[str, Any]:
    """Options of argparse's add_argument()."""
    return {"help": help_text, **options}


MODEL = _option("catalogue id, Hub repository, folder or GGUF file (default: smollm2)", default="smollm2")
REVISION = _option("branch, tag or commit on the Hub")
FILE = {"type": Path, "metavar": "FILE"}
FLAG = {"action": "store_true"}
CARDS = ", ".join(device.name for device in DEVICES)

# command -> its function, its help, and its arguments
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], None], str, dict[str, dict[str, Any]]]] = {
    "run": (
        _run,
        "open the app in a browser",
        {
            "--port": _option("port to listen on (default: 8501, or the next free one)", type=int),
            "--address": _option("0.0.0.0 allows other machines (default: only this machine)", default=LOCALHOST),
            "--model": _option(
                "also offer this model: a folder, a GGUF file, or a Hub repository; may be repeated",
                action="append",
                default=[],
                metavar="FOLDER",
            ),
        },
    ),
    "trace": (
        _trace,
        "run a model on a text and write the results",
        {
            "text": _option("input of the model"),
            "--target": _option("output of an encoder-decoder's decoder so far"),
            "--model": MODEL,
            "--revision": REVISION,
            "--chat": _option("the text is a user's message, to which the model's chat template is applied", **FLAG),
            "--json": _option("tokens, shapes, measures of every head, predictions; - for standard output", **FILE),
            "--npz": _option("every head's weights as float32 arrays, for numpy", **FILE),
            "--html": _option("one page for any browser, offline", **FILE),
        },
    ),
    "plan": (
        _plan,
        "cost of a model before it runs: parameters, bytes, FLOPs; reads only its config.json",
        {
            "model": _option(
                "preset, catalogue id, Hub repository, folder, or path of a config.json or GGUF file (default: smollm2)",
                nargs="?",
                default="smollm2",
            ),
            "--revision": REVISION,
            "--batch": _option("texts that run together, or concurrent chats (default: 1)", type=int, default=1),
            "--source-len": _option("tokens of each text (default: 128)", type=int, default=128),
            "--target-len": _option("tokens of each target, for encoder-decoders", type=int, default=0),
            "--dtype": _option("of weights and activations (default: that of config.json, else float32)"),
            "--weights": _option(f"only of weights: {', '.join(WEIGHT_FORMATS)} (default: --dtype)", metavar="FORMAT"),
            "--kv": _option(f"of the KV cache: {', '.join(CACHE)} (default: --dtype)", metavar="FORMAT"),
            "--training": _option("one step of training instead of a forward pass", **FLAG),
            "--rank": _option(
                "with --training: train adapters of this rank instead of all weights (LoRA; with --weights nf4 QLoRA)",
                type=int,
                default=0,
            ),
            "--attention": _option("flash, efficient, eager or spelled_out (default: flash)", default="flash"),
            "--logits": _option("last: only of a decoder's last position; or all (default: last)", default="last"),
            "--piece": _option(
                "tokens of a chunk in chunked prefill: 2048 as vLLM, 512 as llama.cpp (default: all)",
                type=int,
                default=0,
            ),
            "--card": _option(f"GPU to compare with: {CARDS}"),
            "--json": _option("everything, as JSON", **FLAG),
        },
    ),
    "atlas": (
        _atlas,
        "table of every head over a whole corpus",
        {
            "texts": _option(
                "UTF-8 file of paragraphs, folder of .txt files, or table: CSV, JSON Lines, Parquet", type=Path
            ),
            "--column": _option("column of the table that has the texts", metavar="NAME"),
            "--model": MODEL,
            "--out": _option("the table (default: atlas.parquet)", default=Path("atlas.parquet"), **FILE),
            "--json": _option("every head in a few numbers, with its strongest examples", **FILE),
            "--first": _option("only the first N texts", dest="most", type=int, metavar="N"),
            "--tokens": _option(
                f"tokens of a text that are read, at most (default: {MAX_TOKENS})", type=int, default=MAX_TOKENS
            ),
            "--ray": _option(
                "run on Ray with N copies of the model (default: 2), on the cluster at RAY_ADDRESS or on this machine",
                type=int,
                nargs="?",
                const=2,
                metavar="N",
            ),
        },
    ),
    "models": (_models, "list the models of the catalogue", {"--json": _option("as JSON", **FLAG)}),
}


if __name__ == "__main__":
    sys.exit(main(prog=f"python -m {__package__}"))
