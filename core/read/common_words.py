"""The commonest words of a model's vocabulary, in any language: an edge to one of them says little about a sentence.

A vocabulary is ordered by frequency (BPE merges the commonest pieces first; WordPiece and Unigram list them so), so the words
with the lowest ids are the commonest in the text that the tokenizer was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from weakref import WeakKeyDictionary

from ..checkpoints import Loaded
from ..model.text import SPACE_SIGNS, Tokens
from ..run.predictions import labels_of
from .head_roles import is_ideograph

COMMON = 300  # common words of a small vocabulary
SHARE = 64  # a large vocabulary has one common word for this many pieces
COMMONEST = 5  # one in this many common words is among the commonest: nearly all articles, and few nouns
LONG = 4  # letters from which a word is long
LONGER = 5  # letters from which it is hardly ever an article, a preposition or an auxiliary, whatever the language

_known: WeakKeyDictionary[Loaded, tuple[str, ...]] = WeakKeyDictionary()  # the commonest first


def common_words(loaded: Loaded, one_in: int = 1) -> frozenset[str]:
    """The common words in lower case, or the first one in so many of them; none without a tokenizer.

    In a vocabulary that is not ordered by frequency these are arbitrary words.
    """
    if loaded.tokenizer is None:
        return frozenset()
    found = _known.get(loaded)
    if found is None:
        words = (word.casefold() for word in _words(loaded))
        found = _known[loaded] = tuple(islice(_distinct(words), max(COMMON, loaded.config.vocab_size // SHARE)))
    return frozenset(found[: len(found) // one_in])


def are_common(loaded: Loaded, tokens: Tokens, one_in: int = 1) -> list[bool]:
    """[pos]: True for tokens that are common words."""
    words, labels = common_words(loaded, one_in), tokens.labels
    # A byte-level vocabulary has only the commonest Chinese characters whole, such as 的, and the others in parts.
    has_parts = any(is_ideograph(label[0]) and label[1:2] == " " for label in labels if label)
    whole = [has_parts and len(label) == 1 and is_ideograph(label) for label in labels]
    return [is_whole or label.casefold() in words for is_whole, label in zip(whole, labels, strict=True)]


def are_long(tokens: Tokens, least: int = LONG) -> list[bool]:
    """[pos]: True for tokens with so many letters. Short words are less informative (Piantadosi et al. 2011, "Word lengths are
    optimized for efficient communication")."""
    return [sum(map(str.isalpha, label)) >= least for label in tokens.labels]


def _distinct(words: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for word in words:
        if word not in seen:
            seen.add(word)
            yield word


def _words(loaded: Loaded) -> Iterator[str]:
    """The pieces that begin a word and consist of letters, lowest id first."""
    assert loaded.tokenizer is not None
    pieces = [(i, loaded.tokenizer.id_to_token(i) or "") for i in range(loaded.tokenizer.get_vocab_size())]
    signs = tuple(sign for group in SPACE_SIGNS for sign in group)
    if not any(text.startswith(signs) for _, text in pieces):  # WordPiece marks what continues a word instead
        yield from (text for _, text in pieces if len(text) > 1 and text.isalpha())  # it lists single letters first
        return
    for i, text in pieces:
        if text.startswith(signs) and text[1:].isalpha():
            (label,) = labels_of(loaded, [i])  # a byte-level piece spells ü with other letters
            if label.isalpha():
                yield label
