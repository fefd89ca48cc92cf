"""Additions of heads and of their looks to the logits of the next word: of all heads one number, of one head its looks and its words."""

from __future__ import annotations

from torch import Tensor

from ...read.directions import Site as Attention
from ...read.looks import Moves, adds, moves
from ...run.predictions import labels_of
from ...trace import Trace
from .answers import HeadAdditions, HeadWords
from .compute import array

CANDIDATES = 5  # likeliest next words whose logits are looked at
MOVED = 4  # words that are named, each way
AMONG = 100  # likeliest words, from which they are taken; over a whole vocabulary they are words that no text would have there


def additions_of(run: Trace, site: Attention, position: int) -> HeadAdditions:
    """After one position. Raises TextError for a model whose logits are no sums over heads, IndexError for a position."""
    found = run.predictions([position], CANDIDATES)
    ids = list(found.ids[0])
    values = adds(run, position, ids, site)
    return HeadAdditions(tuple(zip(labels_of(run.loaded, ids), found.probs[0], strict=True)), array(values))


def moves_of(run: Trace, site: Attention, position: int) -> Moves:
    """The additions of each head to the logits of the likeliest words. Raises as additions_of() does."""
    return moves(run, position, AMONG, site)


def words_of(run: Trace, moved: Moves, layer: int, head: int, additions: Tensor) -> HeadWords:
    """Of one head, from the moves of all and the additions of its looks [key]."""
    values = moved.values[layer, head]
    order = values.argsort().tolist()
    labels = labels_of(run.loaded, list(moved.tokens))

    def named(which: list[int]) -> tuple[tuple[str, float], ...]:
        return tuple((labels[i], float(values[i])) for i in which)

    raised = [i for i in reversed(order) if values[i] > 0][:MOVED]
    lowered = [i for i in order if values[i] < 0][:MOVED]
    return HeadWords(array(additions), named(raised), named(lowered), len(moved.tokens))
