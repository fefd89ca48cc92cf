"""A decoder without its causal mask and without training: its losses, the head with most weight on the next token, and its output."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..edits import DropCausalMask
from ..errors import Refused
from ..model.text import from_ids
from ..trace import Trace, trace_tokens
from . import measures
from .conditional_loss import given

UNMASKED_TOKENS = 8  # generated with and without the mask; without it each token is a pass over the whole text


@dataclass(frozen=True, eq=False)
class Unmasked:
    """One text with the causal mask, and without it in all layers.

    Losses are −ln of the probability of the text's own next token, in nats, [pos − 1]. Maps are [query, key].
    """

    losses: Tensor
    without: Tensor
    layer: int
    head: int  # the head with the largest weight on the next token without the mask
    next_word: float  # mean weight of that head on the next token
    before: Tensor  # map of that head with the mask
    after: Tensor
    written: tuple[int, ...]  # generated tokens
    written_without: tuple[int, ...]


def has_mask(run: Trace) -> bool:
    """True for a run of a language model with a causal mask and without an encoder."""
    return run.config.kind == "decoder" and run.config.causal and run.config.writes


def unmasked(run: Trace) -> Unmasked:
    """A run's text without the mask: one more pass, and one for each generated token.

    Without a mask keys cannot be cached, because a new token changes the values of all earlier ones. Raises Refused for a model
    without a causal mask or without a language head, and for a text of one token.
    """
    if not has_mask(run):
        raise Refused(
            f"{run.spec.title} has no causal mask to take away. Choose a decoder that continues a text, such as SmolLM2."
        )
    if len(run.source) < 2:
        raise Refused("A loss needs a word to predict. Write at least two words.")
    free = trace_tokens(run.loaded, (run.source,), None, (*run.interventions, DropCausalMask()))
    layer, head, ahead = looks_ahead(free)
    return Unmasked(
        losses=given(run).losses,
        without=given(free).losses,
        layer=layer,
        head=head,
        next_word=ahead,
        before=run.attention.at(layer).pattern(head)[0],
        after=free.attention.at(layer).pattern(head)[0],
        written=_greedy_tokens(run),
        written_without=_greedy_tokens(free),
    )


def looks_ahead(run: Trace) -> tuple[int, int, float]:
    """Layer and head with the largest mean weight on the next token, and that weight."""
    best = (0, 0, -1.0)
    for layer, record in enumerate(run.attention):
        weight, head = measures.next_token(record.pattern()).max(-1)
        if weight.item() > best[2]:
            best = layer, int(head), weight.item()
    return best


def _greedy_tokens(run: Trace) -> tuple[int, ...]:
    """Greedy continuation of the text, with the run's own edits."""
    loaded, n = run.loaded, len(run.source)
    room = loaded.config.n_ctx - n if loaded.config.has_position_table else UNMASKED_TOKENS
    ids = list(run.source.ids)
    for i in range(min(UNMASKED_TOKENS, room)):
        read = trace_tokens(loaded, (from_ids(loaded.tokenizer, ids),), None, run.interventions) if i else run
        ids.append(read.predictions(k=1).ids[0][0])
    return tuple(ids[n:])
