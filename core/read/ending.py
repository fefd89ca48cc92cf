"""The end of a pass at one word: the last norm, a logit for every token of the vocabulary, and the losses of the text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..model.text import from_ids
from ..model.transformer import RMSNorm
from ..run.predictions import allowed_scores, checked_positions, following, head_of, strings_of
from ..run.trace import Trace
from .conditional_loss import given


@dataclass(frozen=True, eq=False)
class LastNorm:
    """The norm before the head at one position: after = (before − centre) / scale · gain + shift."""

    centre: float  # the mean of the stream; 0 of an RMS norm
    scale: float  # √(mean x² + ε), or the standard deviation
    gain: Tensor  # [d_model] float32: γ
    shift: Tensor | None  # [d_model] float32: β


@dataclass(frozen=True, eq=False)
class Ending:
    """From the stream after the last layer to the next word, at one position.

    The statistics are of all logits that the model may choose among there. A token's probability is e^(logit − log_sum_exp).
    """

    position: int
    before: Tensor  # [d_model] float32: the stream after the last layer
    after: Tensor  # [d_model] float32: what the head is given
    norm: LastNorm | None  # None where there is none
    ids: tuple[int, ...]  # the likeliest tokens, the likeliest first
    strings: tuple[str, ...]
    labels: tuple[str, ...]
    logits: Tensor  # [token] float32
    probabilities: Tensor  # [token] float32
    log_sum_exp: float
    mean: float
    deviation: float
    lowest: float
    losses: Tensor  # [pos] float32, −ln of the probability of the token that follows; nan where none does


def ending(run: Trace, position: int | None = None, k: int = 10) -> Ending:
    """The end of the pass at a position (None: the last real token).

    Raises TextError for models without a head, IndexError for a position, and Outdated after a training.
    """
    head = head_of(run.loaded)
    tokens = run.source if run.target is None else run.target
    (at,) = checked_positions(tokens, None if position is None else [position])
    name, stack = run.config.stacks[-1][0], run.loaded.model.stacks[-1]
    before = run.activation(f"{name}.blocks.{len(stack.blocks) - 1}.hook_resid_post", [at])[0].float()
    x = run.final_residual([at])
    with torch.inference_mode():
        scores = allowed_scores(head(x[None])[0].float(), following(run.loaded, tokens, [at]))[0]  # [vocab]
        # Tens of thousands of numbers lose digits in a sum of float32
        log_sum_exp = scores.cpu().double().logsumexp(-1)
        chances = scores.softmax(-1)  # as everywhere else: two screens say one number
        logits, chosen = scores.topk(min(k, len(scores)))
        kept = scores[~scores.isneginf()]
    logits = logits[~logits.isneginf()]
    ids = chosen.tolist()[: len(logits)]
    losses = torch.full((len(tokens),), torch.nan)
    if run.config.writes:
        own = given(run)
        losses[own.positions.cpu()] = own.losses.cpu()
    run.forward.weights.check()  # which may be trained meanwhile
    return Ending(
        at,
        before,
        x[0].float(),
        _last_norm(stack.norm, before),
        tuple(ids),
        strings_of(run.loaded, ids),
        tuple(
            from_ids(run.loaded.tokenizer, (i,)).labels[0] for i in ids
        ),  # next to another one a token may read differently
        logits,
        chances[chosen[: len(logits)]],
        float(log_sum_exp),
        float(kept.mean()),
        float(kept.std(correction=0)),
        float(kept.min()),
        losses,
    )


def _last_norm(norm: nn.Module, x: Tensor) -> LastNorm | None:
    if isinstance(norm, RMSNorm):
        return LastNorm(0.0, float((x.square().mean() + norm.eps).sqrt()), norm.weight.detach().float(), None)
    if isinstance(norm, nn.LayerNorm):
        shift = None if norm.bias is None else norm.bias.detach().float()
        spread = float((x.var(correction=0) + norm.eps).sqrt())
        return LastNorm(float(x.mean()), spread, norm.weight.detach().float(), shift)
    return None
