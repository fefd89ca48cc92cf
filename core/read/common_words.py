"""The commonest words of a model's vocabulary, in any language: a look at one of them says little of a sentence.

A vocabulary is made from the commonest pieces up (BPE merges them in that order, WordPiece and Unigram list them so), so the
words with the lowest numbers are the commonest of what its tokenizer was made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from ..checkpoints import Loaded
from ..model.text import SPACE_SIGNS, Tokens
from ..run.predictions import labels_of
from .head_roles import is_ideograph

COMMON = 300  # words of a small vocabulary
SHARE = 64  # of a large one as many as one in this many of its pieces
COMMONEST = 5  # one in this many of the common words is among the commonest: nearly all articles, and few nouns
LONG = 4  # letters from which a word is long
LONGER = 5  # and from which it is hardly ever an article, a preposition or an auxiliary, in a language that is not known either

_known: WeakKeyDictionary[Loaded, tuple[str, ...]] = WeakKeyDictionary()  # the commonest first


def common_words(loaded: Loaded, one_in: int = 1) -> frozenset[str]:
    """The commonest, in lower case: 300, or one in 64 of a large vocabulary's pieces, or the first one in so many of these; none
    where there is no tokenizer.

    Of a vocabulary in another order these are any words.
    """
    if loaded.tokenizer is None:
        return frozenset()
    found = _known.get(loaded)
    if found is None:
        words: dict[str, None] = {}
        most = max(COMMON, loaded.config.vocab_size // SHARE)
        for word in _words(loaded):
            words[word.casefold()] = None
            if len(words) == most:
                break
        found = _known[loaded] = tuple(words)
    return frozenset(found[: len(found) // one_in])


def are_common(loaded: Loaded, tokens: Tokens, one_in: int = 1) -> list[bool]:
    """Whether each token is one of them, [pos]."""
    words, labels = common_words(loaded, one_in), tokens.labels
    # Of Chinese a byte-level vocabulary has the commonest characters whole, such as 的, and others in parts.
    has_parts = any(is_ideograph(label[0]) and label[1:2] == " " for label in labels if label)
    whole = [has_parts and len(label) == 1 and is_ideograph(label) for label in labels]
    return [is_whole or label.casefold() in words for is_whole, label in zip(whole, labels, strict=True)]


def are_long(tokens: Tokens, least: int = LONG) -> list[bool]:
    """Whether each token has four letters or more, or so many, [pos]: short words tell less (Piantadosi et al. 2011, "Word lengths are
    optimized for efficient communication")."""
    return [sum(map(str.isalpha, label)) >= least for label in tokens.labels]


def _words(loaded: Loaded) -> Iterator[str]:
    """The pieces that begin a word and are letters alone, the lowest number first."""
    assert loaded.tokenizer is not None
    n, piece = loaded.tokenizer.get_vocab_size(), loaded.tokenizer.id_to_token
    signs = tuple(sign for group in SPACE_SIGNS for sign in group)
    pieces = [(i, text) for i in range(n) if (text := piece(i))]
    if any(text.startswith(signs) for _, text in pieces):
        begin = (i for i, text in pieces if text.startswith(signs) and text[1:].isalpha())
        yield from (label for i in begin if (label := labels_of(loaded, [i])[0]).isalpha())  # ü is not spelt ü there
    else:  # WordPiece marks what continues a word, and lists single letters first
        yield from (text for _, text in pieces if len(text) > 1 and text.isalpha())
