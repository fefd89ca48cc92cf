"""Next words of a run: the likeliest after each token, beside the text's own, and the probability of words that are asked about."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import TextError
from ..model.text import from_ids, tokenize
from ..read.conditional_loss import given, probabilities
from ..trace import Trace
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


def word_chances_of(run: Trace, words: Sequence[str], position: int | None) -> tuple[float | None, ...]:
    """The probability of each word as the next one, None for a word of several tokens. Raises as conditional_loss.probabilities."""
    ids = [_single(run, word) for word in words]
    chances = iter(probabilities(run, [id for id in ids if id is not None], position).tolist())
    return tuple(None if id is None else next(chances) for id in ids)


def _single(run: Trace, word: str) -> int | None:
    """The token of a word that follows another, with its space; None where it is no single token."""
    try:
        ids = tokenize(run.loaded.tokenizer, f" {word.strip()}", add_special_tokens=False).ids
    except TextError:
        return None
    return ids[0] if len(ids) == 1 else None
