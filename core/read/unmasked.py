"""A decoder with its causal mask taken away and nothing trained: its losses, the head that looks ahead, and what it then writes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..edits import DropCausalMask
from ..errors import Refused
from ..model.text import from_ids
from ..run.trace import Trace, trace_tokens
from .conditional_loss import given

WRITTEN = 8  # tokens that each of the two adds to the text: without a mask each is a pass of its own


@dataclass(frozen=True, eq=False)
class Unmasked:
    """One text, read with the causal mask and without it in any layer.

    Losses are −ln of the probability of the text's own next token, nats, [pos − 1]; maps are [query, key].
    """

    losses: Tensor
    without: Tensor
    layer: int
    head: int  # of all heads the one that looks most at the next word, where nothing hides it
    next_word: float  # mean weight of that head on the word that comes next
    before: Tensor  # that head with the mask
    after: Tensor
    written: tuple[int, ...]  # tokens
    written_without: tuple[int, ...]


def has_mask(run: Trace) -> bool:
    """Whether a run's model continues its text under a causal mask: a decoder without an encoder."""
    return run.config.kind == "decoder" and run.config.causal and run.config.writes


def unmasked(run: Trace) -> Unmasked:
    """A run's text with its mask taken away: one more pass, and WRITTEN short ones for each of the two that write.

    Without a mask no key can be kept: every word that is written changes what all words before it see, so each is read with all
    of the text again. Raises Refused for a model that has no causal mask, or writes nothing, and for a text of one token.
    """
    if not has_mask(run):
        raise Refused(
            f"{run.spec.title} has no causal mask to take away. Choose a decoder that continues a text, such as SmolLM2."
        )
    if len(run.source) < 2:
        raise Refused("A loss needs a word that is foretold. Write at least two words.")
    free = trace_tokens(run.loaded, (run.source,), None, (*run.interventions, DropCausalMask()))
    layer, head, ahead = looks_ahead(free)
    return Unmasked(
        given(run).losses,
        given(free).losses,
        layer,
        head,
        ahead,
        run.attention.at(layer).pattern(head)[0],
        free.attention.at(layer).pattern(head)[0],
        _written(run),
        _written(free),
    )


def looks_ahead(run: Trace) -> tuple[int, int, float]:
    """Layer and head with the largest mean weight on the word that comes next, and that weight."""
    best = (0, 0, -1.0)
    for layer, record in enumerate(run.attention):
        ahead = record.pattern().diagonal(1, -2, -1).mean(-1)  # [head]
        weight, head = ahead.max(-1)
        if weight.item() > best[2]:
            best = layer, int(head), weight.item()
    return best


def _written(run: Trace) -> tuple[int, ...]:
    """The likeliest next tokens, one after the other, each read with the run's own edits."""
    loaded, n = run.loaded, len(run.source)
    room = loaded.config.n_ctx - n if loaded.config.has_position_table else WRITTEN
    ids = list(run.source.ids)
    for i in range(min(WRITTEN, room)):
        read = trace_tokens(loaded, (from_ids(loaded.tokenizer, ids),), None, run.interventions) if i else run
        ids.append(read.predictions(k=1).ids[0][0])
    return tuple(ids[n:])
