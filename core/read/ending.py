"""The end of a pass at one word: the last norm, a logit for every token of the vocabulary, and the losses of the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..model.transformer import RMSNorm
from ..run.predictions import allowed_scores, checked_positions, following, head_of, labels_of, strings_of
from ..run.trace import Trace
from .additions import array
from .conditional_loss import given


@dataclass(frozen=True, eq=False)
class LastNorm:
    """The norm before the head at one position: after = (before − centre) / scale · gain + shift."""

    centre: float  # the mean of the stream; 0 of an RMS norm
    scale: float  # √(mean x² + ε), or the standard deviation
    gain: np.ndarray  # float32 [d_model]: γ
    shift: np.ndarray | None  # float32 [d_model]: β


@dataclass(frozen=True, eq=False)
class Ending:
    """From the stream after the last layer to the next word, at one position.

    The statistics are of all logits that the model may choose among there. A token's probability is e^(logit − log_sum_exp).
    """

    position: int
    before: np.ndarray  # float32 [d_model]: the stream after the last layer
    after: np.ndarray  # float32 [d_model]: what the head is given
    norm: LastNorm | None  # None where there is none
    ids: tuple[int, ...]  # the likeliest tokens, the likeliest first
    strings: tuple[str, ...]
    labels: tuple[str, ...]
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    log_sum_exp: float
    mean: float
    deviation: float
    lowest: float
    losses: np.ndarray  # float32 [pos]: −ln of the probability of the token that follows; nan where none does


def ending(run: Trace, position: int | None = None, k: int = 10) -> Ending:
    """The end of the pass at a position (None: the last real token).

    Raises TextError for models without a head, IndexError for a position, and Outdated after a training.
    """
    head = head_of(run.loaded)
    tokens = run.source if run.target is None else run.target
    (at,) = checked_positions(tokens, None if position is None else [position])
    name, stack = run.config.stacks[-1][0], run.loaded.model.stacks[-1]
    before = run.value(f"{name}.blocks.{len(stack.blocks) - 1}.hook_resid_post", [at])[0].float()
    x = run.head_input([at])
    with torch.inference_mode():
        scores = allowed_scores(head(x[None])[0].float(), following(run.loaded, tokens, [at]))[0]  # [vocab]
        # Tens of thousands of numbers lose digits in a sum of float32
        log_sum_exp = scores.cpu().double().logsumexp(-1)
        chances = scores.softmax(-1)  # as everywhere else: two screens say one number
        logits, chosen = scores.topk(min(k, len(scores)))
        kept = scores[~scores.isneginf()]
    logits = logits[~logits.isneginf()]
    ids = chosen.tolist()[: len(logits)]
    losses = np.full(len(tokens), np.nan, np.float32)
    if run.config.writes:
        own = given(run)
        losses[own.positions.cpu()] = array(own.losses)
    run.forward.weights.check()  # which may be trained meanwhile
    return Ending(
        at,
        array(before),
        array(x[0]),
        _last_norm(stack.norm, before),
        tuple(ids),
        strings_of(run.loaded, ids),
        labels_of(run.loaded, ids),
        tuple(logits.tolist()),
        tuple(chances[chosen[: len(logits)]].tolist()),
        float(log_sum_exp),
        float(kept.mean()),
        float(kept.std(correction=0)),
        float(kept.min()),
        losses,
    )


def _last_norm(norm: nn.Module, x: Tensor) -> LastNorm | None:
    if isinstance(norm, RMSNorm):
        return LastNorm(0.0, float((x.square().mean() + norm.eps).sqrt()), array(norm.weight.detach()), None)
    if isinstance(norm, nn.LayerNorm):
        shift = None if norm.bias is None else array(norm.bias.detach())
        spread = float((x.var(correction=0) + norm.eps).sqrt())
        return LastNorm(float(x.mean()), spread, array(norm.weight.detach()), shift)
    return None
