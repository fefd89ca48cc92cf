"""Labels that a person can read, faithful to what the model reads, and refusals that say what to do."""

from __future__ import annotations

import json
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from core.errors import TextError
from core.model.text import Tokens, from_ids, pad, shared_characters, tokenize, visible


def wordpiece() -> Tokenizer:
    """BERT's kind: lower case, ## inside words, [UNK] for what it does not know."""
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "un",
        "##believ",
        "##able",
        "naive",
        "日",
        "e",
        ".",
    ]
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(words[:5])
    return tokenizer


def byte_level(trim_offsets: bool = False) -> Tokenizer:
    """GPT-2's kind: bytes, a few merges, Ġ for a space."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("t", "h"), ("th", "e"), ("Ġ", "ð")]
    vocab = {piece: i for i, piece in enumerate([*alphabet, *("".join(pair) for pair in merges), "<|end|>"])}
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


def byte_fallback() -> Tokenizer:
    """Llama's kind: ▁ for a space, one put before the text, bytes for what it does not know."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", "c", "a", "t", "s", "▁c", "at", "▁cat", "▁▁"]
    merges = [("▁", "c"), ("a", "t"), ("▁c", "at"), ("▁", "▁")]
    model = models.BPE(
        {piece: i for i, piece in enumerate(pieces)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.add_special_tokens(pieces[:3])
    return tokenizer


def unigram() -> Tokenizer:
    """T5's kind: ▁ for a space, NFKC, </s> at the end."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁cat", -1.0), ("s", -2.0), ("fi", -2.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return tokenizer


KINDS = {"wordpiece": wordpiece, "byte level": byte_level, "byte fallback": byte_fallback, "unigram": unigram}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize(
    ("make", "text", "labels"),
    [
        (wordpiece, "The cat.", ["[CLS]", "The", "cat", ".", "[SEP]"]),
        (wordpiece, "unbelievable", ["[CLS]", "un", "believ", "able", "[SEP]"]),
        (wordpiece, "Naïve 🎉 日", ["[CLS]", "Naïve", "🎉 [UNK]", "日", "[SEP]"]),
        (wordpiece, "the [MASK]", ["[CLS]", "the", "[MASK]", "[SEP]"]),
        (wordpiece, "👩\u200d💻", ["[CLS]", "👩\u200d💻 [UNK]", "[SEP]"]),
        (byte_level, "cat cat", ["cat", "cat"]),
        (byte_level, "thecat  cat", ["the", "cat", "␣", "cat"]),
        (byte_level, "é", ["é 1/2", "é 2/2"]),
        (byte_level, "a 🎉", ["a", "🎉 1/4", "🎉 2/4", "🎉 3/4", "🎉 4/4"]),
        (byte_level, "a\n\t\x00\x7f", ["a", "↵", "⇥", "␀", "␡"]),
        (byte_level, "e\u0301", ["e", "◌\u0301 1/2", "◌\u0301 2/2"]),
        (byte_level, "<|end|>the", ["<|end|>", "the"]),
        (byte_fallback, "cats cat", ["<s>", "cat", "s", "cat"]),
        (byte_fallback, "🎉", ["<s>", "␣", "🎉 1/4", "🎉 2/4", "🎉 3/4", "🎉 4/4"]),
        (byte_fallback, " cat", ["<s>", "␣", "cat"]),
        (unigram, "cats\n日", ["cat", "s", "↵日 <unk>", "</s>"]),
        (unigram, "ﬁ", ["␣", "ﬁ", "</s>"]),
    ],
)
def test_labels(make: type, text: str, labels: list[str]) -> None:
    assert list(tokenize(make(), text).labels) == labels


def test_labels_where_spaces_are_left_out_of_the_offsets() -> None:
    """RoBERTa's tokenizers trim them; a token that is nothing but spaces must still be seen."""
    tokens = tokenize(byte_level(trim_offsets=True), "cat  cat")
    assert tokens.offsets[1] in ((4, 4), (3, 4))
    assert list(tokens.labels) == ["cat", "␣", "cat"]


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (" cat", "cat"),
        ("  ", "␣␣"),
        (" ", "␣"),
        (" \n", "␣↵"),
        ("a\u00a0b", "a⍽b"),
        ("a\u202eb", "aU+202Eb"),
        ("\u200d", "U+200D"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\ufe0f", "U+FE0F"),
        ("\u0301", "◌\u0301"),
        ("\u3000", "U+3000"),
        ("\u2028", "U+2028"),
        ("\ue000", "U+E000"),
        ("\u3164", "U+3164"),
        ("<b>&", "<b>&"),
    ],
)
def test_every_character_leaves_a_mark(piece: str, shown: str) -> None:
    assert visible(piece) == shown


def test_nothing_invisible_gets_through() -> None:
    """Alone, every code point of the first two planes is shown as something that has a shape."""
    for number in range(0x20000):
        char = chr(number)
        if not 0xD800 <= number <= 0xDFFF:
            kinds = {unicodedata.category(shown)[0] for shown in visible(char)}
            assert kinds and not kinds & {"C", "Z"}, f"U+{number:04X}"


def test_parts_of_a_character_are_counted() -> None:
    spans = [(0, 1), (0, 1), (0, 0), (1, 3), (2, 4), (3, 4), (4, 5)]
    assert shared_characters(spans) == [(1, 2), (2, 2), (1, 1), (1, 3), (2, 3), (3, 3), (1, 1)]


@every_kind
@pytest.mark.parametrize(
    ("text", "says"),
    [("", "empty"), ("a\ud800", "Character 2"), ("\udfff", "Character 1"), (None, "string"), (b"cat", "string")],
)
def test_what_is_not_text_is_refused(make: type, text: str, says: str) -> None:
    with pytest.raises(TextError, match=says):
        tokenize(make(), text)


@pytest.mark.parametrize("text", [" ", "\n\t  ", "\x00\x00", "\u200b"])
def test_a_text_that_leaves_no_token_is_refused(text: str) -> None:
    with pytest.raises(TextError, match="nothing to read"):
        tokenize(wordpiece(), text)


def test_no_tokenizer_says_what_still_works() -> None:
    with pytest.raises(TextError, match=r"ids=\[\.\.\.\]"):
        tokenize(None, "cat")


def test_a_word_that_the_vocabulary_cannot_spell_is_refused() -> None:
    strict = Tokenizer(models.WordLevel({"cat": 0}, unk_token="<none>"))
    strict.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(TextError, match="cannot read"):
        tokenize(strict, "dog")


@every_kind
@pytest.mark.parametrize(
    "text", ["cat", "The  cat\n日 🎉 e\u0301 \u202e <b>x</b>", "x" * 3000, "\u200d" * 5, "🏴\U000e0067\U000e007f"]
)
def test_columns_are_aligned_and_offsets_lie_in_the_text(make: type, text: str) -> None:
    try:
        tokens = tokenize(make(), text)
    except TextError:
        assert make is wordpiece  # which drops joiners, and so is left with nothing
        return
    for column in (tokens.strings, tokens.offsets, tokens.word_ids, tokens.sequence_ids, tokens.special, tokens.labels):
        assert len(column) == len(tokens)
    assert len(tokens.type_ids) == len(tokens.padding) == len(tokens)
    assert all(0 <= start <= end <= len(text) for start, end in tokens.offsets)
    assert all(label for label in tokens.labels)
    assert not any(tokens.padding)


def test_special_tokens_are_told_from_what_was_typed() -> None:
    tokens = tokenize(wordpiece(), "the [MASK] xyz")
    assert tokens.strings == ("[CLS]", "the", "[MASK]", "[UNK]", "[SEP]")
    assert tokens.special == (True, False, True, False, True)
    assert tokens.sequence_ids == (None, 0, 0, 0, None)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_fills_up_to_the_longest(side: str) -> None:
    long, short = (tokenize(wordpiece(), text) for text in ("the cat the cat .", "cat"))
    batch = pad([long, short], 0, "[PAD]", side)  # type: ignore[arg-type]
    assert batch[0] == long
    assert len(batch[1]) == len(long) == 7
    real = slice(4, 7) if side == "left" else slice(0, 3)
    assert batch[1].ids[real] == short.ids and batch[1].labels[real] == short.labels
    assert sum(batch[1].padding) == 4 and not any(batch[1].padding[real])
    assert batch[1].labels.count("[PAD]") == 4
    assert batch[1].text == short.text


def test_padding_nothing_gives_nothing() -> None:
    assert pad([], 0, "[PAD]", "right") == ()


@every_kind
@pytest.mark.parametrize("text", ["cat cats", "cat 🎉 é", "the  cat"])
def test_ids_read_back_as_the_text_they_came_from(make: type, text: str) -> None:
    """Numbers alone give the same strings, and labels that differ only where the text is lost."""
    tokenizer = make()
    there = tokenize(tokenizer, text)
    back = from_ids(tokenizer, there.ids)
    assert (back.ids, back.strings) == (there.ids, there.strings)
    if not any(string in ("[UNK]", "<unk>") for string in there.strings):
        assert [label.lower() for label in back.labels] == [label.lower() for label in there.labels]


def test_ids_without_a_tokenizer_are_their_own_names() -> None:
    tokens = from_ids(None, [3, 1, 4])
    assert tokens.strings == tokens.labels == ("3", "1", "4")
    assert not any(tokens.special)


def test_ids_that_the_tokenizer_does_not_know_are_numbers() -> None:
    assert from_ids(wordpiece(), [6, 999, 2**40]).labels == ("cat", "999", str(2**40))


@pytest.mark.parametrize(
    ("ids", "says"),
    [([], "no token numbers"), ([3, -1], "-1"), (["x"], "whole"), (None, "whole"), ([1.5], "whole"), ("12", "whole")],
)
def test_ids_that_are_none_are_refused(ids: list[int], says: str) -> None:
    with pytest.raises(TextError, match=says):
        from_ids(wordpiece(), ids)


def test_many_threads_share_one_tokenizer() -> None:
    tokenizer = byte_level()
    before = json.loads(tokenizer.to_str())
    texts = [f"cat {i} the cat " * (i % 7 + 1) for i in range(200)]
    alone = [tokenize(tokenizer, text) for text in texts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda text: tokenize(tokenizer, text), texts))
    finally:
        sys.setswitchinterval(interval)
    assert together == alone
    assert json.loads(tokenizer.to_str()) == before


def test_tokens_are_values() -> None:
    one, other = tokenize(wordpiece(), "the cat"), tokenize(wordpiece(), "the cat")
    assert one == other and hash(one) == hash(other)
    assert isinstance(one, Tokens) and len({one, other}) == 1
