"""The whole model at one position: norms of the residual stream and of every addition to it, and contributions to the next token's logit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ..device import array
from ..errors import TextError
from ..run.predictions import checked_positions, labels_of
from ..run.trace import Trace
from .additions import SUBLAYERS
from .attribution import contributions
from .conditional_loss import tokens_read

SUBLAYER_OF_SITE = {"attn": "attention", "cross_attn": "cross-attention"}


@dataclass(frozen=True, eq=False)
class Strip:
    """One stack at one position. The keys are the sublayers that its layers have: attention, cross-attention, MLP."""

    stack: str
    position: int
    stream: np.ndarray  # float32 [layer + 1]: ‖x‖ before every layer, and after the last
    lengths: Mapping[str, np.ndarray]  # sublayer -> float32 [layer]: norm of the vector that it adds
    adds: Mapping[str, np.ndarray] | None  # sublayer -> float32 [layer], in logits; None if the logit is not a sum
    next_word: tuple[str, float] | None  # label and probability of the most likely token
    next_id: int | None
    wires: np.ndarray | None  # float32 [layer, key]: weights of cross-attention, averaged over heads


def strip(run: Trace, stack: str, position: int | None = None) -> Strip:
    """The stack at a position (None: the last real token), from the norms that every run keeps and one more pass for `adds`.

    adds is the direct logit attribution (Trace.contributions) of the most likely next token. The bias of an attention's W_O counts
    with its heads. Raises KeyError for a stack that the model does not have, IndexError for a position, and Outdated after a
    training.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if stack not in layers:
        raise KeyError(f"no stack {stack!r}")
    n_layers = layers[stack]
    (position,) = checked_positions(tokens_read(run, stack), None if position is None else [position])
    known = run.residual_norms

    def norms(hook: str, *more: str) -> np.ndarray:
        hooks = [f"{stack}.blocks.{layer}.hook_{hook}" for layer in range(n_layers)]
        return array(torch.stack([known[point][position] for point in (*hooks, *more)]))

    stream = norms("resid_pre", f"{stack}.blocks.{n_layers - 1}.hook_resid_post")
    lengths = {name: norms(hook) for hook, name in SUBLAYERS.items() if f"{stack}.blocks.0.hook_{hook}" in known}
    crossing = [record for record in run.attention if record.stack == stack and record.site == "cross_attn"]
    wires = (
        np.stack([array(record.pattern(queries=[position])[:, 0].mean(0)) for record in crossing]) if crossing else None
    )
    adds = next_word = next_id = None
    if run.loaded.model.head is not None and run.config.stacks[-1][0] == stack:
        predicted = run.predictions([position], 1)
        next_id = predicted.ids[0][0]
        next_word = (labels_of(run.loaded, [next_id])[0], predicted.probs[0][0])
        adds = _logit_additions(run, position, next_id, tuple(lengths), n_layers)
    return Strip(stack, position, stream, lengths, adds, next_word, next_id, wires)


def _logit_additions(
    run: Trace, position: int, token: int, sublayers: tuple[str, ...], n_layers: int
) -> Mapping[str, np.ndarray] | None:
    try:
        parts = contributions(run.forward, run.index, run.predicting_tokens, position, token).parts
    except TextError:  # a head that is not linear
        return None
    adds = {name: np.zeros(n_layers, np.float32) for name in sublayers}
    for part in parts:
        name = "MLP" if part.part == "mlp" else SUBLAYER_OF_SITE.get(part.site or part.what)
        if part.layer is not None and name is not None and part.part in ("mlp", "head", "bias"):
            adds[name][part.layer] += part.value
    return adds
