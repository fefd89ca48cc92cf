"""The loss of the next token, and the layers that end in it: final norm, unembedding and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..device import array
from ..errors import TextError
from ..model.attention import RMSNorm
from ..model.outputs import mask_disallowed
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.predictions import allowed_scores, checked_positions, head_of, labels_of, next_token_constraints, strings_of
from ..run.trace_record import TraceRecord

LOGIT_BYTES = 1 << 24  # of logits at one time


@dataclass(frozen=True, eq=False)
class Given:
    """One entry for each position whose next token is in the text: the shift by one that training uses."""

    positions: Tensor  # [pos]
    ids: Tensor  # [pos]: the next token
    probabilities: Tensor  # [pos]
    ranks: Tensor  # [pos], 1 for the most likely
    losses: Tensor  # [pos], −ln of the probability, in nats


def tokens_read(run: TraceRecord, stack: str = "decoder") -> Tokens:
    """The tokens that a stack reads. A model with only one stack reads the source in it."""
    return run.source if stack == "encoder" or run.target is None else run.target


def given(trace: TraceRecord, positions: Sequence[int] | None = None) -> Given:
    """Probability of the text's own next token after each position; None asks for every position.

    The distribution is over the tokens allowed by generation_config.json, plus the text's own. The last token has no next one, and
    padding does not count. Encoder–decoders use the target. Logits are computed for as many positions at a time as fit into 16 MiB,
    never [pos, vocab] at once. Raises TextError for a model that does not predict the next token, IndexError for a position without
    a next token, and Outdated after a training.
    """
    _check_writes(trace)
    head, tokens = head_of(trace.loaded), tokens_read(trace)
    real = [not padding for padding in tokens.padding]
    known = [i for i in range(len(tokens) - 1) if real[i] and real[i + 1]]
    chosen = known if positions is None else list(positions)
    if bad := sorted(set(chosen) - set(known)):
        raise IndexError(f"position {bad[0]} has no next token in a text of {sum(real)}")
    device = trace.loaded.device
    at = torch.tensor(chosen, dtype=torch.long, device=device)
    ids = torch.tensor(tokens.ids, device=device)[at + 1]
    losses, ranks = torch.empty(len(chosen), device=device), torch.empty(len(chosen), dtype=torch.long, device=device)
    if chosen:
        trace.forward.weights.check()
        x, may_follow = trace.final_residual(at), next_token_constraints(trace.loaded, tokens, chosen)
        with torch.inference_mode():
            for rows in row_blocks(len(chosen), trace.config.vocab_size * 4, LOGIT_BYTES):
                logits = head(x[None, rows])[0].float()  # [pos, vocab]
                own = logits.gather(-1, ids[rows, None])  # [pos, 1]
                # A text may contain a token that generation_config.json forbids: its own logit stays.
                logits = mask_disallowed(logits, may_follow[rows]).scatter(-1, ids[rows, None], own)
                losses[rows] = logits.logsumexp(-1) - own[:, 0]
                ranks[rows] = 1 + (logits > own).sum(-1)
        trace.forward.weights.check()  # a training may run at the same time
    return Given(at, ids, (-losses).exp(), ranks, losses)


def next_scores(run: TraceRecord, position: int | None = None) -> Tensor:
    """Logits [vocab], float32, after a position (None: the last real token); −∞ for tokens that may not follow.

    Raises TextError for a model without a head, IndexError for a position, and Outdated after a training.
    """
    head, tokens = head_of(run.loaded), tokens_read(run)
    at = checked_positions(tokens, None if position is None else [position])
    run.forward.weights.check()
    with torch.inference_mode():
        scores = allowed_scores(
            head(run.final_residual(at)[None])[0].float(), next_token_constraints(run.loaded, tokens, at)
        )[0]
    run.forward.weights.check()  # a training may run at the same time
    return scores


def probabilities(trace: TraceRecord, ids: Sequence[int], position: int | None = None) -> Tensor:
    """The probability of each of these tokens after one position (None: the last real token), [id]. Raises as parse_custom_mask() does."""
    _check_writes(trace)
    if bad := [i for i in ids if not 0 <= i < trace.config.vocab_size]:
        raise IndexError(f"token {bad[0]} of a vocabulary of {trace.config.vocab_size:,}")
    p = next_scores(trace, position).softmax(-1)
    return p[torch.tensor(list(ids), dtype=torch.long, device=p.device)]


def _check_writes(trace: TraceRecord) -> None:
    if not trace.config.writes:
        raise TextError(
            f"{trace.spec.title} does not write the next word, so no word has a probability. Try a language model."
        )


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


def ending(run: TraceRecord, position: int | None = None, k: int = 10) -> Ending:
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
