"""What an export about sizes says about itself: its caption, and the code that gives its numbers again."""

from __future__ import annotations

from dataclasses import fields
from datetime import date
from typing import Any

from app import languages
from app.export import about
from app.export.about import version
from app.kit import numbers
from app.sizes import words
from app.sizes.setup import Setup, layers
from core.model.config import ModelConfig, RotaryScaling
from core.plan import Workload


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
    return "hl.ModelConfig(\n" + "\n".join([*lines, line]) + "\n)"


def _literal(value: Any) -> str:
    return f"hl.model.config.{value!r}" if isinstance(value, RotaryScaling) else repr(value)


def snippet(config: ModelConfig, workload: Workload, wanted: str) -> str:
    """Python that prints `wanted`, an expression of `plan`, for this workload."""
    told = {field.name: (getattr(workload, field.name), field.default) for field in fields(Workload)}
    said = [f"{name}={value!r}" for name, (value, default) in told.items() if value != default]
    lines = [
        "import headlight as hl",
        "",
        f"config = {config_code(config)}",
        f"plan = hl.plan(config, {', '.join(said)})",
    ]
    return "\n".join([*lines, f"print({wanted})", ""])


def caption(setup: Setup, part: str, today: date) -> str:
    """Which model, at which sizes, under which assumptions; one line."""
    config = setup.config
    lengths = f"{setup.batch} × {numbers.whole(setup.source_len)} {languages.translated(words.VARY['source_len'])}"
    if setup.target_len:
        lengths += f" + {numbers.whole(setup.target_len)} {languages.translated(words.VARY['target_len'])}"
    how = [setup.dtype, words.CAPTION_ATTENTION.format(way=setup.attention)]
    if setup.training:
        how += [setup.optimizer, words.CAPTION_RECOMPUTE.format(what=setup.recompute)]
        how += [words.CAPTION_RANK.format(n=setup.rank)] if setup.rank else []
        how += [words.LABELS["dropout"][0].lower()] if setup.dropout else []
    how += [f"{words.LABELS['weights'][0].lower()} {setup.weight_dtype}"] if setup.weight_dtype else []
    how += [f"{words.LABELS['kv'][0]} {setup.kv_dtype}"] if setup.kv_dtype else []
    how += [words.CAPTION_PIECE.format(n=numbers.whole(setup.piece))] if setup.workload.piece else []
    how += [words.CAPTION_LOGITS] if setup.logits == "all" and not setup.training else []
    parts = [setup.title, part, sizes(config), lengths, ", ".join(how), words.CUDA.rstrip(".")]
    return about.line([*parts, f"Headlight {version()}", today.isoformat()])


def sizes(config: ModelConfig) -> str:
    return words.CAPTION_SIZES.format(
        layers=layers(config),
        d_model=config.d_model,
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        d_ff=numbers.whole(config.d_ff),
        vocab=numbers.whole(config.vocab_size),
    )
