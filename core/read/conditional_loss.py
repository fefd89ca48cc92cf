"""The next words of a run's text under its model: probability, rank and loss at each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import TextError
from ..model.next_tokens import allowed_only
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..model.transformer import Head
from ..run.predictions import allowed_scores, following, head_of
from ..run.trace import Trace

LOGIT_BYTES = 1 << 24  # of logits at one time


@dataclass(frozen=True, eq=False)
class Given:
    """One entry for each position whose next token is in the text: the shift by one that training uses."""

    positions: Tensor  # [pos]
    ids: Tensor  # [pos], the token that comes next
    probabilities: Tensor  # [pos]
    ranks: Tensor  # [pos], 1 for the best guess
    losses: Tensor  # [pos], −ln of the probability, in nats


def given(trace: Trace, positions: Sequence[int] | None = None) -> Given:
    """The model's probability, after each position, of the token that follows in the text; None asks for every position.

    It is one among the tokens that may be written there (generation_config.json), to which the text's own belongs.

    The last token has no next one, and padding is no token. Of an encoder–decoder the target is meant. Logits are computed
    for as many positions at a time as fit into 16 MiB, never [pos, vocab] at once. Raises TextError for a model that does
    not write the next word, IndexError for a position that has no next token, and Outdated after a training.
    """
    head, tokens = _head(trace), _last_read(trace)
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
        x, may_follow = _stream(trace, at), following(trace.loaded, tokens, chosen)
        with torch.inference_mode():
            for rows in row_blocks(len(chosen), trace.config.vocab_size * 4, LOGIT_BYTES):
                logits = head(x[None, rows])[0].float()  # [pos, vocab]
                own = logits.gather(-1, ids[rows, None])  # [pos, 1]
                # Among what may follow there, and the token that does: a text may hold what its model may not write.
                logits = allowed_only(logits, may_follow[rows]).scatter(-1, ids[rows, None], own)
                losses[rows] = logits.logsumexp(-1) - own[:, 0]
                ranks[rows] = 1 + (logits > own).sum(-1)
        trace.forward.weights.check()  # a training may go on beside this
    return Given(at, ids, (-losses).exp(), ranks, losses)


def probabilities(trace: Trace, ids: Sequence[int], position: int | None = None) -> Tensor:
    """The probability of each of these tokens after one position (None: the last real token), [id]. Raises as given() does."""
    head, tokens = _head(trace), _last_read(trace)
    if position is None:
        position = max(i for i, padding in enumerate(tokens.padding) if not padding)
    if not 0 <= position < len(tokens):
        raise IndexError(f"position {position} of {len(tokens)}")
    if bad := [i for i in ids if not 0 <= i < trace.config.vocab_size]:
        raise IndexError(f"token {bad[0]} of a vocabulary of {trace.config.vocab_size:,}")
    x = _stream(trace, torch.tensor([position], device=trace.loaded.device))
    with torch.inference_mode():
        scores = head(x[None])[0].float()
        chances = allowed_scores(scores, following(trace.loaded, tokens, [position]))[0].softmax(-1)
    trace.forward.weights.check()
    return chances[torch.tensor(list(ids), dtype=torch.long, device=chances.device)]


def _head(trace: Trace) -> Head:
    if not trace.config.writes:
        raise TextError(
            f"{trace.spec.title} does not write the next word, so no word has a probability. Try a language model."
        )
    return head_of(trace.loaded)


def _last_read(trace: Trace) -> Tokens:
    return trace.source if trace.target is None else trace.target


def _stream(trace: Trace, positions: Tensor) -> Tensor:
    """The head's input at these positions, [pos, d_model], with the weights of the run."""
    trace.forward.weights.check()
    return trace.final_residual(positions)
