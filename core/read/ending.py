"""The end of a pass at one position: the final norm, statistics of the logits, and the losses of the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..device import array
from ..model.attention import RMSNorm
from ..run.predictions import checked_positions, head_of, labels_of, strings_of
from ..run.trace import Trace
from .conditional_loss import given, next_scores, tokens_read


@dataclass(frozen=True, eq=False)
class LastNorm:
    """The norm before the head at one position: after = (before − centre) / scale · gain + shift."""

    centre: float  # mean of the stream; 0 for RMSNorm
    scale: float  # √(mean x² + ε), or the standard deviation
    gain: np.ndarray  # float32 [d_model]: γ
    shift: np.ndarray | None  # float32 [d_model]: β


@dataclass(frozen=True, eq=False)
class Ending:
    """From the stream after the last layer to the next token, at one position.

    The statistics are over all tokens that may follow. A token's probability is e^(logit − log_sum_exp).
    """

    position: int
    before: np.ndarray  # float32 [d_model]: the stream after the last layer
    after: np.ndarray  # float32 [d_model]: input of the head
    norm: LastNorm | None  # None if the model has none
    ids: tuple[int, ...]  # the most likely tokens, the most likely first
    strings: tuple[str, ...]
    labels: tuple[str, ...]
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    log_sum_exp: float
    mean: float
    deviation: float
    lowest: float
    losses: np.ndarray  # float32 [pos]: −ln of the probability of the next token; nan if there is none


def ending(run: Trace, position: int | None = None, k: int = 10) -> Ending:
    """The end of the pass at a position (None: the last real token).

    Raises TextError for models without a head, IndexError for a position, and Outdated after a training.
    """
    head_of(run.loaded)
    tokens = tokens_read(run)
    (at,) = checked_positions(tokens, None if position is None else [position])
    name, stack = run.config.stacks[-1][0], run.loaded.model.stacks[-1]
    before = run.activation(f"{name}.blocks.{len(stack.blocks) - 1}.hook_resid_post", [at])[0].float()
    x = run.final_residual([at])
    with torch.inference_mode():
        scores = next_scores(run, at)
        log_sum_exp = scores.cpu().double().logsumexp(-1)  # a float32 sum of so many numbers loses digits
        probabilities = scores.softmax(-1)  # in float32 like everywhere else, so that all screens show the same number
        logits, chosen = scores.topk(min(k, len(scores)))
        kept = scores[~scores.isneginf()]
    logits = logits[~logits.isneginf()]
    ids = chosen.tolist()[: len(logits)]
    losses = np.full(len(tokens), np.nan, np.float32)
    if run.config.writes:
        next_tokens = given(run)
        losses[next_tokens.positions.cpu()] = array(next_tokens.losses)
    run.forward.weights.check()  # a training may run at the same time
    return Ending(
        at,
        array(before),
        array(x[0]),
        _last_norm(stack.norm, before),
        tuple(ids),
        strings_of(run.loaded, ids),
        labels_of(run.loaded, ids),
        tuple(logits.tolist()),
        tuple(probabilities[chosen[: len(logits)]].tolist()),
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
