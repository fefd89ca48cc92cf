"""What an export of Shapes, Memory, Compute or Training says about itself: its caption, and the code that gives its numbers again.

Pure: a setup or a config in, text out. Pictures are made in the browser (components/planner).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

import pandas as pd

from app import memory_words as words
from app.export import version
from app.memory_setup import Setup, layers
from core.config import ModelConfig, RotaryScaling

NAMES = {  # the options of core.plan, and what each is where nobody says
    "batch": 1,
    "source_len": None,
    "target_len": 0,
    "dtype": "float32",
    "attention": "eager",
    "training": False,
    "optimizer": "adamw",
    "recompute": "none",
    "dropout": False,
    "weight_dtype": None,
    "kv_dtype": None,
}


def config_code(config: ModelConfig) -> str:
    """The config as Python writes it, without what is as it would be anyway."""
    said = []
    for field in fields(ModelConfig):
        value = getattr(config, field.name)
        if field.name == "d_head" and value * config.n_heads == config.d_model:
            continue
        if field.name == "n_kv_heads" and value == config.n_heads:
            continue
        if value != field.default:
            said.append(f"{field.name}={_literal(value)}")
    lines, line = [], "   "
    for part in said:
        if len(line) + len(part) > 110:
            lines, line = [*lines, line], "   "
        line += f" {part},"
    return "core.ModelConfig(\n" + "\n".join([*lines, line]) + "\n)"


def _literal(value: Any) -> str:
    return f"core.{value!r}" if isinstance(value, RotaryScaling) else repr(value)


def snippet(config: ModelConfig, options: Mapping[str, Any], wanted: str) -> str:
    """Python that prints `wanted`, an expression of `plan`, for these options of core.plan."""
    said = [f"{name}={value!r}" for name, value in options.items() if value != NAMES[name]]
    lines = ["import core", "", f"config = {config_code(config)}", f"plan = core.plan(config, {', '.join(said)})"]
    return "\n".join([*lines, f"print({wanted})", ""])


def caption(setup: Setup, part: str, today: date) -> str:
    """Which model, at which sizes, under which assumptions; one line."""
    config = setup.config
    lengths = f"{setup.batch} × {setup.source_len:,} {words.VARY['source_len']}"
    if setup.target_len:
        lengths += f" + {setup.target_len:,} {words.VARY['target_len']}"
    how = [setup.dtype, words.CAPTION_ATTENTION.format(way=setup.attention)]
    if setup.training:
        how += [setup.optimizer, words.CAPTION_RECOMPUTE.format(what=setup.recompute)]
        how += [words.LABELS["dropout"][0].lower()] if setup.dropout else []
    how += [f"{words.LABELS['weights'][0].lower()} {setup.weight_dtype}"] if setup.weight_dtype else []
    how += [f"{words.LABELS['kv'][0]} {setup.kv_dtype}"] if setup.kv_dtype else []
    parts = [setup.title, part, _sizes(config), lengths, ", ".join(how), words.CUDA.rstrip(".")]
    return _line([*parts, f"Headlight {version()}", today.isoformat()])


def _sizes(config: ModelConfig) -> str:
    return words.CAPTION_SIZES.format(
        layers=layers(config),
        d_model=config.d_model,
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        d_ff=f"{config.d_ff:,}",
        vocab=f"{config.vocab_size:,}",
    )


def shapes_caption(title: str, config: ModelConfig, batch: int, lengths: tuple[int, int], today: date) -> str:
    """The same for a diagram of shapes, which is the same for every number format but for its bytes."""
    text = f"{batch} × {lengths[0]:,}" + (f" + {lengths[1]:,}" if lengths[1] else "")
    return _line([title, _sizes(config), f"{text} tokens", f"Headlight {version()}", today.isoformat()])


def training_caption(shown: list[str], today: date) -> str:
    """Which curves, of which models."""
    return _line([*shown, f"Headlight {version()}", today.isoformat()])


def training_snippet(models: list[str], measure: str) -> str:
    """Python that prints the last value of each curve."""
    lines = ["from core.checkpoints import curve", "", f"for name in {models!r}:"]
    return "\n".join([*lines, f'    print(name, curve(name)["{measure}"][-1])', ""])


def _line(parts: list[str]) -> str:
    return " · ".join(" ".join(part.split()) for part in parts)


def about(
    name: str, sentence: str, note: str, caption: str, code: str, tables: Sequence[tuple[str, str, pd.DataFrame]]
) -> dict[str, Any]:
    """What the browser puts into the files of a chart; `tables` are (label, file name, DataFrame)."""
    return {
        "title": sentence,
        "alt": words.ALT.format(sentence=sentence, note=note).strip(),
        "caption": caption,
        "snippet": code,
        "name": name,
        "tables": [(label, file, table_csv(table, caption, code)) for label, file, table in tables],
    }


def table_csv(table: pd.DataFrame, caption: str, snippet: str) -> str:
    """The table below lines of comment that start with #: what it is, and the code that gives it (RFC 4180)."""
    about = "".join(f"# {line}\r\n" if line.strip() else "#\r\n" for line in [caption, *snippet.splitlines()])
    return about + table.to_csv(index=False, lineterminator="\r\n")
