"""Choices in Shapes in addition to the diagram: the model, and the lengths of its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.kit import widgets
from app.kit.widgets import Panel
from app.rooms.shapes import words
from app.sizes import pasted
from app.transport.limits import BOUNDS
from core.model.config import ModelConfig
from core.plan import PRESETS

RUN, TYPED, PASTED = "run", "typed", "pasted"
STARTS = {"": (1, 128), "lesson-encoder": (32, 50)}  # texts and tokens that a diagram opens with
LECTURES = ("lesson-encoder",)  # that are told of a model that learns: they open with dropout
CHOICES = {RUN: words.OF_RUN, TYPED: words.OF_TYPED, PASTED: words.OF_PASTED} | {
    name: preset.title for name, preset in PRESETS.items()
}
TYPED_FIELDS = {  # URL name -> the field of ModelConfig, and what it is by default
    "encoder": ("n_encoder_layers", 6),
    "decoder": ("n_decoder_layers", 0),
    "width": ("d_model", 512),
    "heads": ("n_heads", 8),
    "kv": ("n_kv_heads", 8),
    "ff": ("d_ff", 2048),
    "vocabulary": ("vocab_size", 32_000),
    "context": ("n_ctx", 2048),
}


TYPED_CHOICES = {  # the same for what is one of some: its caption, {id: title}, the first
    "norm": (words.NORM_ORDER, {name: words.NORM_ORDERS[name] for name in ("pre", "post")}, "pre"),
    "positions": (words.POSITIONS, words.POSITION_NAMES, list(words.POSITION_NAMES)[2]),
    "norms": (words.NORM, words.NORM_NAMES, next(iter(words.NORM_NAMES))),
    "activation": (words.ACTIVATION, words.ACT_NAMES, next(iter(words.ACT_NAMES))),
}
OF = widgets.choice(
    "of", {name: name for name in CHOICES}, words.OF, also={title: name for name, title in CHOICES.items()}
)
BATCH = widgets.whole("batch", BOUNDS["batch"], lambda of: str(start_of(of)[0]))
LENGTH = widgets.whole("length", BOUNDS["length"], lambda of: str(start_of(of)[1]))
TARGET = widgets.whole("target_length", BOUNDS["target_length"], "128")
DROPPED = widgets.switch("dropped", lambda of: "true" if of in LECTURES else "false")
FIELDS = {
    name: widgets.whole(f"typed_{name}", BOUNDS[f"typed_{name}"], str(start))
    for name, (_, start) in TYPED_FIELDS.items()
}
WAYS = {
    name: widgets.choice(f"typed_{name}", titles, label, titles[first])
    for name, (label, titles, first) in TYPED_CHOICES.items()
}
WINDOW = widgets.whole("typed_window", BOUNDS["typed_window"], "0")
GATED = widgets.switch("typed_gated")
TYPED_ONES = (*FIELDS.values(), *WAYS.values(), WINDOW, GATED)
SIZES = (BATCH, LENGTH, TARGET, DROPPED)
PANEL = Panel("shapes_of", (OF, pasted.CONTROL, *SIZES, *TYPED_ONES))


def start_of(of: str) -> tuple[int, int]:
    return STARTS.get(of, STARTS[""])


def typed(fields: Mapping[str, int], ways: Mapping[str, str], window: int, gated: bool) -> ModelConfig:
    """The model that is typed: what the boxes hold, by their names in FIELDS and WAYS. Raises Refused."""
    found: dict[str, Any] = {field: fields[name] for name, (field, _) in TYPED_FIELDS.items()}
    found |= {"norm_order": ways["norm"], "final_norm": ways["norm"] == "pre", "position": ways["positions"]}
    found |= {"norm": ways["norms"], "activation": ways["activation"], "gated": gated, "window": window or None}
    return ModelConfig(**found)
