"""Labels of texts with combining marks: no mark is lost, and forms of a text that read the same are labelled the same."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from functools import cache

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import core
from core.errors import TextError
from core.model.text import Tokens, tokenize, with_marks
from tests.core import test_text

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
WORDS = (
    "Café résumé", "Ångström", "مُحَمَّدٌ", "هٰذَا ٱلْكِتَابُ", "हिन्दी क़लम", "ภาษาไทยก็", "กำลัง", "Việt Nam tiếng", "한국어 각", "שָׁלוֹם", "ﬁ ½ ①",
    "Ελλάδα ΐ", "Ḍ̇ q̣̇", "ṩ", "a\u0301\u0323\u0302b", "x\u0301y\u20dd", "می\u200cخواهم", "क्\u200dष", "ᄒ\u1161", "e\u200d\u0301", "1\u0338 =\u0338",
)  # fmt: skip
ALPHABET = "aeo bE.,\n\u0301\u0323\u0302\u0307\u0338\u20dd\u0e47\u0e31ก\u093c\u094dकहि\u064f\u0651محéộÅΐ각ᄒ\u1161\u11a8ﬁ½\u200d\u200c🎉ş"


def cased() -> Tokenizer:
    """A wordpiece that keeps marks, as BERT's cased one: what it cannot spell is unknown as a whole."""
    tokenizer = test_text.wordpiece()
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    return tokenizer


def composing(form: type) -> Callable[[], Tokenizer]:
    """Bytes of a text that the tokenizer brings to one form first, as Qwen's does."""

    def make() -> Tokenizer:
        tokenizer = test_text.byte_level()
        tokenizer.normalizer = form()
        return tokenizer

    return make


def dropping() -> Tokenizer:
    """Characters of a small vocabulary; marks and all others are left out, as a model without <unk> leaves them."""
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate("aeobE.,1xyq")}, []))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@cache
def shipped(name: str) -> Tokenizer:
    found = core.load(name).tokenizer
    assert found is not None
    return found


MAKERS: dict[str, Callable[[], Tokenizer]] = {
    **test_text.KINDS,
    "cased": cased,
    "composing": composing(normalizers.NFC),
    "taking apart": composing(normalizers.NFD),
    "composing, compatible": composing(normalizers.NFKC),
    "dropping": dropping,
    **{name: lambda name=name: shipped(name) for name in ("minilm", "storyteller", "translator")},
}


def texts() -> list[str]:
    draw = random.Random(7)
    made = ["".join(draw.choices(ALPHABET, k=draw.randint(1, 12))) for _ in range(400)]
    return [*WORDS, " ".join(WORDS), *made]


def lost_marks(tokens: Tokens) -> list[str]:
    covered = {i for start, end in tokens.offsets for i in range(start, end)}
    marks = [i for i, char in enumerate(tokens.text) if unicodedata.category(char)[0] == "M"]
    return [f"U+{ord(tokens.text[i]):04X} at {i}" for i in marks if i not in covered]


def read(tokenizer: Tokenizer, text: str) -> Tokens | None:
    try:
        return tokenize(tokenizer, text)
    except TextError:
        return None


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_no_mark_is_lost_and_forms_that_read_the_same_are_labelled_the_same(make: Callable[[], Tokenizer]) -> None:
    tokenizer, n_read, n_same = make(), 0, 0
    for text in texts():
        forms = {form: read(tokenizer, unicodedata.normalize(form, text)) for form in FORMS}
        as_typed = read(tokenizer, text)
        for tokens in (as_typed, *forms.values()):
            if tokens is not None:
                n_read += 1
                assert not lost_marks(tokens), (text, tokens.strings, tokens.offsets)
                assert all(0 <= start <= end <= len(tokens.text) for start, end in tokens.offsets)
        # NFKC is another text: ﬁ becomes two letters. What is taken apart and what is composed are one.
        for composed, apart in (("NFC", "NFD"), ("NFKC", "NFKD")):
            one, other = forms[composed], forms[apart]
            if one is not None and other is not None and one.ids == other.ids:
                n_same += one.text != other.text
                assert one.labels == other.labels, (text, one.offsets, other.offsets)
        if as_typed is not None and (one := forms["NFC"]) is not None and as_typed.ids == one.ids:
            assert as_typed.labels == one.labels, (text, one.offsets, as_typed.offsets)
    assert n_read > 500  # otherwise nothing was tried
    if tokenizer.normalizer is not None and make is not test_text.byte_fallback:
        assert n_same > 20


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("Café résumé", ["Café", "résumé"]),
        ("Việt tiếng", None),
        ("naïve Ångström", None),
    ],
)
def test_the_default_model_shows_accents_in_both_forms(text: str, labels: list[str] | None) -> None:
    composed, apart = (tokenize(shipped("minilm"), unicodedata.normalize(form, text)) for form in ("NFC", "NFD"))
    assert composed.ids == apart.ids and composed.labels == apart.labels
    joined = "".join(composed.labels[1:-1])
    assert joined == unicodedata.normalize("NFC", text).replace(" ", "")
    assert labels is None or list(composed.labels[1:-1]) == labels


def test_scripts_whose_marks_the_model_drops_are_shown_whole() -> None:
    for text in ("ภาษาไทยก็", "مُحَمَّدٌ", "हिन्दी", "שָׁלוֹם"):
        tokens = tokenize(shipped("minilm"), text)
        joined = "".join(label.removesuffix(" [UNK]").removeprefix("◌") for label in tokens.labels[1:-1])
        assert joined == unicodedata.normalize("NFC", text).replace(" ", "")


@pytest.mark.parametrize(
    ("text", "offsets", "widened"),
    [
        ("abc", [(0, 1), (2, 3)], [(0, 1), (2, 3)]),
        ("e\u0301x", [(0, 1), (2, 3)], [(0, 2), (2, 3)]),
        ("e\u0301\u0302", [(0, 1)], [(0, 3)]),
        ("e\u0301", [(0, 1), (0, 1)], [(0, 2), (0, 2)]),  # parts of one letter
        ("e\u200d\u0301x", [(0, 1), (3, 4)], [(0, 3), (3, 4)]),  # a joiner between
        ("a \u0301b", [(0, 1), (3, 4)], [(0, 1), (2, 4)]),  # on a space: with the next token
        ("a \u0301 b", [(0, 1), (4, 5)], [(0, 3), (4, 5)]),  # or the last one
        ("\u0301 a", [(0, 0), (2, 3)], [(0, 0), (0, 3)]),
        ("é\u0301", [(0, 2)], [(0, 2)]),
    ],
)
def test_a_mark_goes_with_what_it_stands_on(
    text: str, offsets: list[tuple[int, int]], widened: list[tuple[int, int]]
) -> None:
    assert list(with_marks(text, offsets)) == widened


def test_words_and_long_texts() -> None:
    """Every vowel sign of a long text, in time that grows with the text alone."""
    text = "مُحَمَّدٌ " * 4000
    tokens = tokenize(shipped("minilm"), text)
    assert not lost_marks(tokens)
