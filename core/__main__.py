"""The command line: `headlight trace "text"`, `headlight models`, `headlight plan gpt2`, `headlight atlas stories.txt`, and
`headlight run`, which opens the screens. In a checkout `python -m headlight` is the same."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .checkpoints import CATALOG, Loaded, load
from .checkpoints.described import describe
from .device import GiB, pick_device, pick_dtype
from .errors import Refused
from .extras import install_line, lacking
from .memory import MiB
from .model.config import ModelConfig
from .plan import DEVICES, Device, Workload, longest_fit, on_card, plan
from .plan.devices import device_named
from .plan.dtypes import CACHE
from .plan.weights import WEIGHT_FORMATS
from .read import report
from .run.prompt import said_by_user
from .screens import screens
from .sweep import MOST_TOKENS, corpus
from .trace import trace, trace_chat
from .version import __version__

if TYPE_CHECKING:
    from .sweep.atlas import Surveyed

COMMAND = "headlight"
OWN = "localhost"
BAR = 30  # characters of the line that says how far an atlas is


def main(arguments: Sequence[str] | None = None, prog: str = COMMAND) -> int:
    """Run one command; 0 when it worked, 2 with one sentence on standard error when it could not. `prog` is how it was started."""
    parser = _parser(prog)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except Refused as error:
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

    opened = commands.add_parser("run", help="open the screens in a browser")
    opened.add_argument("--port", type=int, help="the port to listen on (default: 8501, or the next one that is free)")
    opened.add_argument(
        "--address",
        default=OWN,
        help=f"0.0.0.0 lets other machines in (default: {OWN}, which only this machine can reach)",
    )
    opened.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="FOLDER",
        help="also offer this model: a folder, a GGUF file, or a Hub repository; may be given more than once",
    )
    opened.set_defaults(run=_run)

    one = commands.add_parser("trace", help="run a model on a text and write what happened")
    one.add_argument("text", help="what the model reads")
    one.add_argument("--target", help="what an encoder-decoder's decoder has written so far")
    one.add_argument(
        "--model", default="smollm2", help="catalogue id, Hub repository, folder or GGUF file (default: smollm2)"
    )
    one.add_argument("--revision", help="branch, tag or commit on the Hub")
    one.add_argument(
        "--chat", action="store_true", help="the text is what a user says: the model's chat template writes the rest"
    )
    one.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="tokens, shapes, measures of every head, predictions; - for the screen",
    )
    one.add_argument("--npz", type=Path, metavar="FILE", help="every head's weights as float32 arrays, for numpy")
    one.add_argument("--html", type=Path, metavar="FILE", help="one page to look at in any browser, offline")
    one.set_defaults(run=_trace)

    costs = commands.add_parser(
        "plan", help="what a model costs before it runs: parameters, bytes, FLOPs; its config.json is all that is read"
    )
    costs.add_argument(
        "model",
        nargs="?",
        default="smollm2",
        help="preset, catalogue id, Hub repository, folder, or the path of a config.json or a GGUF file (default: smollm2)",
    )
    costs.add_argument("--revision", help="branch, tag or commit on the Hub")
    costs.add_argument("--batch", type=int, default=1, help="texts run together, or chats at once (default: 1)")
    costs.add_argument("--source-len", type=int, default=128, help="tokens of each text (default: 128)")
    costs.add_argument("--target-len", type=int, default=0, help="tokens of each target, for encoder-decoders")
    costs.add_argument("--dtype", help="of weights and activations (default: what config.json says, else float32)")
    costs.add_argument(
        "--weights", metavar="FORMAT", help=f"of weights alone: {', '.join(WEIGHT_FORMATS)} (default: as --dtype)"
    )
    costs.add_argument("--kv", metavar="FORMAT", help=f"of the KV cache: {', '.join(CACHE)} (default: as --dtype)")
    costs.add_argument("--training", action="store_true", help="one step of training instead of a forward pass")
    costs.add_argument(
        "--rank",
        type=int,
        default=0,
        help="with --training: adapters of this rank are trained in place of all weights (LoRA; with --weights nf4 QLoRA)",
    )
    costs.add_argument("--attention", default="flash", help="flash, efficient, eager or spelled_out (default: flash)")
    costs.add_argument(
        "--logits", default="last", help="last: of a decoder's run the last position's alone; or all (default: last)"
    )
    costs.add_argument(
        "--piece",
        type=int,
        default=0,
        help="tokens of a prompt that are read at once: 2048 as vLLM, 512 as llama.cpp (default: all)",
    )
    costs.add_argument(
        "--card", help=f"whether it fits there, and how much would: {', '.join(device.name for device in DEVICES)}"
    )
    costs.add_argument("--json", action="store_true", help="everything, as JSON")
    costs.set_defaults(run=_plan)

    over = commands.add_parser("atlas", help="what every head does over a whole corpus, as a table")
    over.add_argument(
        "texts",
        type=Path,
        help="a UTF-8 file of paragraphs, a folder of .txt files, or a table: CSV, JSON Lines, Parquet",
    )
    over.add_argument("--column", metavar="NAME", help="of a table, the column that has the texts")
    over.add_argument(
        "--model", default="smollm2", help="catalogue id, Hub repository, folder or GGUF file (default: smollm2)"
    )
    over.add_argument(
        "--out", type=Path, default=Path("atlas.parquet"), metavar="FILE", help="the table (default: atlas.parquet)"
    )
    over.add_argument(
        "--json", type=Path, metavar="FILE", help="every head in a few numbers, with its strongest examples"
    )
    over.add_argument("--first", dest="most", type=int, metavar="N", help="the first N texts only")
    over.add_argument(
        "--tokens",
        type=int,
        default=MOST_TOKENS,
        help=f"of a text, the first so many (default: {MOST_TOKENS})",
    )
    over.add_argument(
        "--ray",
        type=int,
        nargs="?",
        const=2,
        metavar="N",
        help="on Ray, with the model in N processes (default: 2): of the cluster that RAY_ADDRESS names, else of this machine",
    )
    over.set_defaults(run=_atlas)

    models = commands.add_parser("models", help="list the models that are offered by name")
    models.add_argument("--json", action="store_true", help="as JSON")
    models.set_defaults(run=_models)
    return parser


def _run(options: argparse.Namespace) -> None:
    screens("start").start(options.address, options.port, options.model)


def _trace(options: argparse.Namespace) -> None:
    device = pick_device()
    loaded = _said(
        load(options.model, device=device, dtype=pick_dtype(device), revision=options.revision, progress=_progress)
    )
    if options.chat and options.target is not None:
        raise Refused("A conversation has no target. Leave out --chat or --target.")
    run = (
        trace_chat(loaded, said_by_user(options.text)) if options.chat else trace(loaded, options.text, options.target)
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


def _atlas(options: argparse.Namespace) -> None:
    if options.most is not None and options.most < 1:
        raise Refused(f"--first is {options.most}, but it is how many texts are run: 1 or more.")
    try:
        from .sweep import atlas
    except ModuleNotFoundError as error:
        raise Refused(lacking("An atlas", "pyarrow", "atlas")) from error

    device = pick_device()
    texts = corpus.texts_of(options.texts, options.column, options.most)
    loaded = _said(load(options.model, device=device, dtype=pick_dtype(device), progress=_progress))
    surveyed = _on_ray(options) if options.ray is not None else None
    _counted(0, len(texts))
    table = atlas.survey(loaded, texts, options.out, most_tokens=options.tokens, progress=_counted, surveyed=surveyed)
    print(f"{options.out}: {table.num_rows:,} rows, {len(texts):,} texts")
    if options.json:
        found = atlas.summary(table, texts, lambda text: atlas.as_read(loaded, text, options.tokens))
        options.json.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _on_ray(options: argparse.Namespace) -> Surveyed:
    """Raises Refused."""
    if options.ray < 1:
        raise Refused(f"--ray is {options.ray}, but it is in how many processes the model is: 1 or more.")
    if importlib.util.find_spec("ray") is None:
        raise Refused(
            f"Ray is not installed here. It comes with: {install_line('ray')}. Without --ray the atlas is the same."
        )
    from .sweep.atlas_ray import on_ray

    return on_ray(partial(_model, options.model), options.tokens, options.ray)


def _model(name: str) -> Loaded:
    device = pick_device()
    return load(name, device=device, dtype=pick_dtype(device))


def _said(loaded: Loaded) -> Loaded:
    """Say what lies in the model's files and takes no part, beside the output and not in it."""
    for said in filter(None, (*loaded.notices, loaded.no_tokenizer)):
        print(f"headlight: {loaded.spec.title}: {said}", file=sys.stderr)
    return loaded


def _counted(done: int, total: int) -> None:
    bar = "#" * (BAR * done // total)
    print(
        f"\r[{bar:-<{BAR}}] {done:,} of {total:,} texts", end="" if done < total else "\n", file=sys.stderr, flush=True
    )


def _plan(options: argparse.Namespace) -> None:
    known = describe(options.model, revision=options.revision)
    config = known.config
    card = None if options.card is None else device_named(options.card)
    if options.card is not None and card is None:
        raise Refused(
            f"There is no card {options.card!r} here. Choose one of {', '.join(device.name for device in DEVICES)}."
        )
    quantized = None if options.training or options.dtype is not None else known.weight_dtype
    work = Workload(
        batch=options.batch,
        source_len=options.source_len,
        target_len=options.target_len or (options.source_len if config.kind == "encoder-decoder" else 0),
        dtype=options.dtype or known.dtype or "float32",
        weight_dtype=options.weights or quantized,
        kv_dtype=options.kv,
        training=options.training,
        attention=options.attention,
        logits=options.logits,
        piece=options.piece,
        rank=options.rank,
    )
    found = plan(config, work)
    if options.json:
        print(json.dumps(found.to_dict()))
        return
    formats = found.dtype if work.weight_dtype is None else f"{found.dtype}, weights {work.weight_dtype}"
    print(f"{found.parameters.total:>20,} parameters, {formats}")
    for name, size in found.memory.to_dict().items():
        print(f"{size / MiB:>20,.1f} MiB {size / 1e9:>10,.2f} GB  {name.replace('_', ' ')}")
    print(f"{found.step_flops:>20,} FLOPs")
    if card is not None:
        print(_on_card(config, work, card, found.total))


def _on_card(config: ModelConfig, work: Workload, card: Device, total: int) -> str:
    """Whether a plan fits into what a card offers to programs, and the longest text and the largest batch that would."""
    budget = on_card(card).budget
    left = budget - total
    said = f"{card.name}: {card.mebibytes / 1024:.2f} GiB, {card.memory / GiB:.2f} of them for programs"
    said += f", {budget / GiB:.2f} beside a CUDA context. " if budget < card.memory else ". "
    said += f"Fits, {left / GiB:.2f} GiB left." if left >= 0 else f"Does not fit: {-left / GiB:.2f} GiB too much."
    length = longest_fit(config, budget, work)
    most = longest_fit(config, budget, work, vary="batch")
    at_least = (
        ""
        if length.ceiling is None or length.n < length.ceiling
        else f", and its table of positions has {length.ceiling:,}"
    )
    return f"{said} By this upper bound {length.n:,} tokens would{at_least}, or a batch of {most.n:,} of this length."


def _models(options: argparse.Namespace) -> None:
    if options.json:
        print(
            json.dumps(
                [
                    {"id": s.id, "title": s.title, "parameters": s.n_params, "licence": s.licence, "note": s.note}
                    for s in CATALOG
                ]
            )
        )
        return
    for spec in CATALOG:
        print(f"{spec.id:14} {spec.title:24} {spec.n_params:>12,} parameters  {spec.note}")
    print("\nAny Hub repository (owner/name) or local folder of a supported family loads as well.")


def _progress(name: str, done: int, total: int) -> None:
    share = f"{done / total:4.0%}" if total else f"{done >> 20} MiB"
    print(f"\r{name}: {share}", end="" if done < total else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(prog=f"python -m {__package__}"))
