"""next_words_of(): what a model is about to write after each token, beside what its text goes on with."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.text import from_ids
from ..read.conditional_loss import given
from ..run.trace import Trace
from .answers import NextWord


def next_words_of(run: Trace, positions: Sequence[int], k: int) -> tuple[NextWord, ...]:
    """One for each position. Raises TextError for a model that does not write the next word, IndexError for a position."""
    tokens = run.source if run.target is None else run.target
    real = [not padding for padding in tokens.padding]
    asked = list(positions)
    followed = [i for i in asked if 0 <= i < len(tokens) - 1 and real[i] and real[i + 1]]
    own = given(run, followed)  # first: it says why a model that does not write has none
    found = run.predictions(asked, k)
    chances = zip(followed, own.probabilities.tolist(), own.ranks.tolist(), strict=True)
    known = {position: (probability, rank) for position, probability, rank in chances}
    # One at a time: next to another one a token may read differently.
    labels = {i: from_ids(run.loaded.tokenizer, (i,)).labels[0] for ids in found.ids for i in ids}
    return tuple(
        NextWord(
            position,
            tuple((labels[i], p) for i, p in zip(ids, probs, strict=True)),
            known.get(position),
            run.config.vocab_size,
        )
        for position, ids, probs in zip(asked, found.ids, found.probs, strict=True)
    )
