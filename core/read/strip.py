"""The whole model at one word: how long its stream is before every layer, what every sublayer adds to it, and to the next word's logit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import TextError
from ..run.predictions import checked_positions
from ..run.trace import Trace
from .additions import SUBLAYERS
from .attribution import contributions

PART_OF = {"attn": "attention", "cross_attn": "cross-attention"}


@dataclass(frozen=True, eq=False)
class Strip:
    """One stack at one position. The names of sublayers are those that the layers have: attention, cross-attention, MLP."""

    stack: str
    position: int
    stream: Tensor  # [layer + 1] float32: ‖x‖ before every layer, and after the last
    lengths: Mapping[str, Tensor]  # sublayer -> [layer] float32: the length of the vector that it adds
    adds: Mapping[str, Tensor] | None  # sublayer -> [layer] float32, in logits; None where that is no sum
    next_word: tuple[int, str, float] | None  # the likeliest token, its string and its probability
    wires: Tensor | None  # [layer, key] float32: cross-attention's weights, the mean of all heads


def strip(run: Trace, stack: str, position: int | None = None) -> Strip:
    """The stack at a position (None: the last real token), from the lengths that every run keeps and one more pass for `adds`.

    adds is direct logit attribution (Trace.contributions) of the likeliest next token, the biases of an attention's W_O with its
    heads. Raises KeyError for a stack that the model does not have, IndexError for a position, and Outdated after a training.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if stack not in layers:
        raise KeyError(f"no stack {stack!r}")
    n_layers = layers[stack]
    tokens = run.source if stack == "encoder" or run.target is None else run.target
    (at,) = checked_positions(tokens, None if position is None else [position])
    known = run.residual_norms

    def lengths(what: str) -> Tensor:
        return torch.stack([known[f"{stack}.blocks.{layer}.hook_{what}"][at].float() for layer in range(n_layers)])

    stream = torch.cat(
        [lengths("resid_pre"), known[f"{stack}.blocks.{n_layers - 1}.hook_resid_post"][at][None].float()]
    )
    wrote = {name: lengths(what) for what, name in SUBLAYERS.items() if f"{stack}.blocks.0.hook_{what}" in known}
    crossing = [record for record in run.attention if record.stack == stack and record.site == "cross_attn"]
    wires = torch.stack([record.pattern(queries=[at])[:, 0].mean(0) for record in crossing]) if crossing else None
    adds = next_word = None
    if run.loaded.model.head is not None and run.config.stacks[-1][0] == stack:
        found = run.predictions([at], 1)
        next_word = (found.ids[0][0], found.strings[0][0], found.probs[0][0])
        adds = _additions(run, at, next_word[0], tuple(wrote), n_layers)
    return Strip(stack, at, stream, wrote, adds, next_word, wires)


def _additions(
    run: Trace, position: int, token: int, sublayers: tuple[str, ...], n_layers: int
) -> Mapping[str, Tensor] | None:
    try:
        parts = contributions(run.forward, run.index, run.predicting_tokens, position, token).parts
    except TextError:  # a head that is not linear
        return None
    found = {name: torch.zeros(n_layers) for name in sublayers}
    for part in parts:
        name = "MLP" if part.part == "mlp" else PART_OF.get(part.site or part.what)
        if part.layer is not None and name is not None and part.part in ("mlp", "head", "bias"):
            found[name][part.layer] += part.value
    return found
