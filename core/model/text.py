"""Tokens: a text as the model reads it, each token aligned with its characters."""

from __future__ import annotations

import operator
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Literal

from tokenizers import Encoding, Tokenizer

from ..errors import TextError

UNKNOWN = ("[UNK]", "<unk>", "<UNK>")  # unknown tokens of published vocabularies
SPACE_SIGNS = ({"Ġ"}, {"▁"})  # a space in byte-level and sentencepiece vocabularies
VISIBLE = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u00ad": "U+00AD", "\x7f": "␡"}
BLANKS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols by category, but invisible
MAX_SYMBOLS = 64  # listed in a sentence
INVISIBLE_CHARACTERS = ("Cc", "Cf")  # categories of invisible characters, which do not separate a mark from its letter
JOINERS = "\u200c\u200d"  # inside a word or an emoji they determine its shape; otherwise they are invisible


@dataclass(frozen=True)
class Tokens:
    """Aligned tuples with one entry per token. Offsets count characters of `text`, and cover all of its combining marks."""

    text: str
    ids: tuple[int, ...]
    strings: tuple[str, ...]  # the tokenizer's own spelling: "Ġcat", "##ing", "[CLS]"
    offsets: tuple[tuple[int, int], ...]  # first character, and the one after the last; (0, 0) if there are none
    word_ids: tuple[int | None, ...]
    sequence_ids: tuple[int | None, ...]
    special: tuple[bool, ...]  # part of the model's format: [CLS], </s>, <|endoftext|>
    type_ids: tuple[int, ...]
    padding: tuple[bool, ...]  # True for tokens that only pad a batch
    # Label of a token if its characters of `text` do not give it, because the composed form of the text gives the same tokens and
    # can be divided where this one cannot. None for nearly all tokens.
    own_labels: tuple[str | None, ...] = ()
    # Of a conversation rendered by a chat template (core.model.chat):
    roles: tuple[str | None, ...] = ()  # of the turn of each token: "user"; None outside of turns
    from_template: tuple[bool, ...] = ()  # True if the token comes from the template, not from a message

    def __post_init__(self) -> None:
        for name, none in (("own_labels", None), ("roles", None), ("from_template", False)):
            if not getattr(self, name):
                object.__setattr__(self, name, (none,) * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_chat(self) -> bool:
        """True if the text was rendered by a chat template."""
        return any(self.from_template)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Readable label of each token.

        It consists of the token's characters, composed (NFC, so é is one character), without the space before a word. Invisible
        characters are replaced by signs (␣ ↵ ⇥ U+200B). Special tokens are labelled by name, tokens that share a character with
        their part of it ("🎉 1/3"), and unknown pieces with the token that the model reads instead ("🎉 [UNK]").
        """
        spaces = tuple(self._is_space(i) for i in range(len(self)))
        parts = shared_characters([(0, 0) if space else span for space, span in zip(spaces, self.offsets, strict=True)])
        own = self.own_labels
        return tuple(own[i] or self._label(i, space, *parts[i]) for i, space in enumerate(spaces))

    def _is_space(self, i: int) -> bool:
        """True if the token consists of signs for spaces.

        It may have no characters: some tokenizers add one before the text, and some leave spaces out of their offsets.
        """
        return set(self.strings[i]) in SPACE_SIGNS and self.text[slice(*self.offsets[i])] != self.strings[i]

    def _label(self, i: int, space: bool, part: int, n_parts: int) -> str:
        start, end = self.offsets[i]
        if space:
            return "␣" * len(self.strings[i])
        if self.special[i] or self.padding[i] or start == end:
            return self.strings[i]
        label = visible(self.text[start:end])
        if self.strings[i] in UNKNOWN and self.text[start:end] != self.strings[i]:
            return f"{label} {self.strings[i]}"
        return label if n_parts == 1 else f"{label} {part}/{n_parts}"


def shared_characters(offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """For each token (k, n): the k-th of n neighbours with overlapping characters; (1, 1) without overlap.

    Byte-level vocabularies split an emoji or an accented letter into several tokens with the same offsets.
    """
    groups: list[list[int]] = []
    reach = -1  # the character after the last one seen in the group
    for i, (start, end) in enumerate(offsets):
        if start < end and start < reach:
            groups[-1].append(i)
        else:
            groups.append([i])
        reach = max(reach, end) if start < end else -1
    return [(k, len(group)) for group in groups for k in range(1, len(group) + 1)]


def visible(piece: str) -> str:
    """The piece, composed (NFC), with signs in place of invisible characters."""
    if len(piece) > 1 and piece[0] == " " and not piece[1].isspace():
        piece = piece[1:]
    if piece.isascii() and piece.isprintable() and " " not in piece:
        return piece  # fast path for most pieces
    return unicodedata.normalize("NFC", "".join(_mark(piece, i) for i in range(len(piece))))


def _mark(piece: str, i: int) -> str:
    char = piece[i]
    if char in VISIBLE:
        return VISIBLE[char]
    if char in JOINERS and 0 < i < len(piece) - 1:
        return char
    if ord(char) < 32:
        return chr(0x2400 + ord(char))  # Unicode's pictures of the control characters
    kind = unicodedata.category(char)
    if kind in ("Mn", "Me", "Mc"):
        if i:
            return char
        # An accent is shown on a placeholder. A variation selector has no shape.
        return f"U+{ord(char):04X}" if unicodedata.name(char, "").startswith("VARIATION SELECTOR") else f"◌{char}"
    return f"U+{ord(char):04X}" if kind[0] in "CZ" or char in BLANKS else char


def tokenize(tokenizer: Tokenizer | None, text: str, *, add_special_tokens: bool = True) -> Tokens:
    """Tokenize a text. Raises TextError without a tokenizer, and for a text that is empty, invalid or without any token.

    Without `add_special_tokens` the text is read as it is. A text rendered by a chat template contains its special tokens.
    Any number of threads may share one tokenizer: it is only read.
    """
    if tokenizer is None:
        raise TextError(
            "This model has no tokenizer, so it cannot read a text. Give token numbers instead: ids=[...], or 5 17 3 as the text."
        )
    _check_text(text)
    try:
        encoding = tokenizer.encode(text, add_special_tokens=add_special_tokens)
    except BaseException as error:  # e.g. a letter that a vocabulary without <unk> lacks
        if not is_tokenizer_fault(error):
            raise
        raise TextError(
            _unreadable(tokenizer, text) or f"This model's tokenizer cannot read the text: {error}. Try other words."
        ) from error
    reserved = _special_ids(tokenizer, without=UNKNOWN)
    tokens = Tokens(
        text=text,
        ids=tuple(encoding.ids),
        # Not encoding.tokens, which contains the text itself for an unknown piece.
        strings=tuple(_string(tokenizer, i) for i in encoding.ids),
        offsets=spans(tokenizer, text, encoding, add_special_tokens),
        word_ids=tuple(encoding.word_ids),
        sequence_ids=tuple(encoding.sequence_ids),
        special=tuple(
            bool(m) or i in reserved for m, i in zip(encoding.special_tokens_mask, encoding.ids, strict=True)
        ),
        type_ids=tuple(encoding.type_ids),
        padding=(False,) * len(encoding.ids),
    )
    if not any(sequence is not None for sequence in tokens.sequence_ids):
        raise TextError(
            "This model finds nothing to read in the text: it holds only spaces or characters that the model ignores. Type a word."
        )
    composed = _composed(tokenizer, text, encoding, add_special_tokens)
    if composed is None:
        return tokens
    labels = replace(tokens, text=composed[0], offsets=composed[1]).labels
    own = (label if label != plain else None for label, plain in zip(labels, tokens.labels, strict=True))
    return replace(tokens, own_labels=tuple(own))


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise TextError(f"The text must be a string, not {type(text).__name__}.")
    if not text:
        raise TextError("The text is empty. Type a sentence.")
    if (at := lone_surrogate(text)) is not None:
        raise TextError(
            f"Character {at + 1} of the text is half of a character (U+{ord(text[at]):04X}) and cannot be read. Delete it or type it again."
        )


def _special_ids(tokenizer: Tokenizer | None, without: tuple[str, ...] = ()) -> set[int]:
    if tokenizer is None:
        return set()
    added = tokenizer.get_added_tokens_decoder().items()
    return {i for i, token in added if token.special and token.content not in without}


def spans(
    tokenizer: Tokenizer, text: str, encoding: Encoding, add_special_tokens: bool = True
) -> tuple[tuple[int, int], ...]:
    """The characters of each token of the encoding: (first, after the last).

    A tokenizer's own offsets leave out characters that it drops (BERT: vowel signs and accents), and differ between é as one character
    and as e with a combining mark. Here a mark belongs to its letter, and a text with the same tokens as its composed form (NFC) is
    divided like it.
    """
    composed = _composed(tokenizer, text, encoding, add_special_tokens)
    return with_marks(text, encoding.offsets if composed is None else _offsets_in(text, *composed))


def _composed(
    tokenizer: Tokenizer, text: str, encoding: Encoding, add_special_tokens: bool
) -> tuple[str, tuple[tuple[int, int], ...]] | None:
    """The composed form of the text and the spans of its tokens, if it is a different text with the same tokens."""
    composed = unicodedata.normalize("NFC", text)
    if composed == text:
        return None
    try:
        other = tokenizer.encode(composed, add_special_tokens=add_special_tokens)
    except BaseException as error:
        if not is_tokenizer_fault(error):
            raise
        return None
    return (composed, with_marks(composed, other.offsets)) if other.ids == encoding.ids else None


def with_marks(text: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The offsets, widened until every combining mark of the text is covered by one of them.

    A mark belongs to all tokens that end where it begins; invisible characters in between do not count. If there are none, because
    its letter is not a token, it belongs to the next token or to the one before.
    """
    if text.isascii():
        return tuple(offsets)
    covered = bytearray(len(text))
    by_start: dict[int, list[int]] = {}
    by_end: dict[int, list[int]] = {}
    for i, (start, end) in enumerate(offsets):
        covered[start:end] = b"\1" * (end - start)
        if start < end:
            by_start.setdefault(start, []).append(i)
            by_end.setdefault(end, []).append(i)
    starts, ends = sorted(by_start), sorted(by_end)
    widened = list(offsets)
    for first, last in _uncovered_marks(text, covered):
        base = first
        while base and not covered[base - 1] and unicodedata.category(text[base - 1]) in INVISIBLE_CHARACTERS:
            base -= 1
        after, before = bisect_left(starts, last), bisect_right(ends, first) - 1
        if base not in by_end and after < len(starts) and (starts[after] == last or before < 0):
            for i in by_start[starts[after]]:
                widened[i] = min(first, widened[i][0]), widened[i][1]
        elif before >= 0:
            for i in by_end[ends[before]]:
                widened[i] = widened[i][0], max(last, widened[i][1])
    return tuple(widened)


def _uncovered_marks(text: str, covered: Sequence[int]) -> list[tuple[int, int]]:
    """(first, after the last) of the runs of combining marks that no token covers, which may include invisible characters."""
    runs: list[tuple[int, int]] = []
    for i, char in enumerate(text):
        if covered[i] or unicodedata.category(char)[0] != "M":
            continue
        if runs and all(unicodedata.category(between) in INVISIBLE_CHARACTERS for between in text[runs[-1][1] : i]):
            runs[-1] = runs[-1][0], i + 1
        else:
            runs.append((i, i + 1))
    return runs


def _offsets_in(text: str, composed: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Offsets in the composed form of a text as offsets in the text. Both forms have the same decomposition (NFD)."""
    theirs, ours = (
        list(accumulate((len(unicodedata.normalize("NFD", char)) for char in form), initial=0))
        for form in (composed, text)
    )
    moved = []
    for start, end in offsets:
        stop = bisect_left(ours, theirs[end])
        moved.append((bisect_right(ours, theirs[start]) - 1 if start < end else stop, stop))
    return tuple(moved)


def _unreadable(tokenizer: Tokenizer, text: str) -> str | None:
    """Error message of a model with a vocabulary of a few symbols, for a text with another symbol; None for other models."""
    vocabulary = tokenizer.get_vocab()
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    symbols = sorted(vocabulary.keys() - special, key=vocabulary.__getitem__)
    other = next((char for char in text if char not in vocabulary and not char.isspace()), None)
    if other is None or len(symbols) > MAX_SYMBOLS or any(len(symbol) != 1 for symbol in symbols):
        return None
    return f"This model has no token for “{visible(other)}”. It reads {' '.join(symbols)} and nothing else."


def is_tokenizer_fault(error: BaseException) -> bool:
    """True if the tokenizers library raised it, for a text or a file that it cannot handle.

    The library raises Exception itself, not a subclass. For an inconsistent file it panics, with a BaseException that cannot be
    imported and that handlers of Exception would miss.
    """
    return type(error) is Exception or type(error).__name__ == "PanicException"


def lone_surrogate(text: str) -> int | None:
    """Index of the first unpaired half of a UTF-16 pair; None if there is none."""
    return next((i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)


def pad(batch: Sequence[Tokens], pad_id: int, pad_string: str, side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    """Pad every text to the length of the longest, on one side."""
    longest = max((len(tokens) for tokens in batch), default=0)
    fill = Tokens("", (pad_id,), (pad_string,), ((0, 0),), (None,), (None,), (True,), (0,), (True,))
    names = [field.name for field in fields(Tokens) if field.name != "text"]
    padded = []
    for tokens in batch:
        n = longest - len(tokens)
        columns = {name: (getattr(fill, name) * n, getattr(tokens, name)) for name in names}
        joined = {name: a + b if side == "left" else b + a for name, (a, b) in columns.items()}
        padded.append(Tokens(text=tokens.text, **joined))
    return tuple(padded)


def from_ids(tokenizer: Tokenizer | None, ids: Sequence[int]) -> Tokens:
    """Tokens of ids. The text is the one that the tokenizer decodes.

    Without a tokenizer, or for an unknown id, the string is the number. Raises TextError for an empty list or a negative id. The model
    checks the upper limit.
    """
    try:
        numbers = tuple(map(operator.index, ids))
    except TypeError as error:
        raise TextError("Token numbers must be whole numbers, e.g. ids=[101, 7592, 102].") from error
    if not numbers:
        raise TextError("There are no token numbers. Give at least one, e.g. ids=[101, 7592, 102].")
    if (bad := min(numbers)) < 0:
        raise TextError(f"Token number {bad} is negative. They count from 0.")
    reserved = _special_ids(tokenizer)
    try:
        text, offsets = _decoded(tokenizer, numbers)
    except BaseException as error:
        if not is_tokenizer_fault(error):
            raise
        raise TextError(f"This model's tokenizer cannot write these token numbers out: {error}. Try others.") from error
    n = len(numbers)
    return Tokens(
        text=text,
        ids=numbers,
        strings=tuple(_string(tokenizer, i) for i in numbers),
        offsets=offsets,
        word_ids=(None,) * n,
        sequence_ids=tuple(None if i in reserved else 0 for i in numbers),
        special=tuple(i in reserved for i in numbers),
        type_ids=(0,) * n,
        padding=(False,) * n,
    )


def _string(tokenizer: Tokenizer | None, i: int) -> str:
    string = tokenizer.id_to_token(i) if tokenizer is not None and i < 2**32 else None
    return str(i) if string is None else string


def _decoded(tokenizer: Tokenizer | None, ids: tuple[int, ...]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text of these ids, and the offsets of each.

    The piece of a token is the text that it adds after the previous token, because "##ing" and "▁cat" are decoded differently at the
    start. Tokens that are bytes of one character share its offsets.
    """
    if tokenizer is None:
        return "", ((0, 0),) * len(ids)
    text, offsets, waiting = "", [], []
    for i, current in enumerate(ids):
        waiting.append(current)
        piece = _added_text(tokenizer, ids[max(0, i + 1 - len(waiting) - 1) : i + 1 - len(waiting)], tuple(waiting))
        if "\ufffd" in piece and len(waiting) < 4 and i + 1 < len(ids):
            continue
        offsets += [(len(text), len(text) + len(piece))] * len(waiting)
        text += piece
        waiting = []
    return text, tuple(offsets)


def _added_text(tokenizer: Tokenizer, before: tuple[int, ...], ids: tuple[int, ...]) -> str:
    known = [i for i in ids if i < 2**32 and tokenizer.id_to_token(i) is not None]
    context = [i for i in before if i < 2**32 and tokenizer.id_to_token(i) is not None]
    prefix, joined = (tokenizer.decode(part, skip_special_tokens=False) for part in (context, context + known))
    return (
        joined.removeprefix(prefix) if joined.startswith(prefix) else tokenizer.decode(known, skip_special_tokens=False)
    )


SPECIAL = re.compile(r"\[[A-Z_]+\d*\]|</?[a-z_]+\d*>|<\|.+\|>|<(?:unused|extra_id_)\d+>", re.IGNORECASE)
PADDING = re.compile(r"\[PAD\]|<pad>|<\|pad\|>|<\|?(?:pad|fim_pad|padding)(?:_token)?\|?>", re.IGNORECASE)
CLOSING = re.compile(r"[.,!?;:%)\]}’”…]+")
NEWLINE, SPACE = "Ċ", "Ġ"


def tokens_from_strings(strings: Sequence[str], padding: Sequence[bool] = (), second_from: int | None = None) -> Tokens:
    """Tokens from their strings, from which the text is assembled.

    The kind of vocabulary follows from its sign for a space: Ġ, ▁, </w>, spaces, or none, where ## continues a word and all other
    tokens begin one. The ids are unknown, and therefore −1, −2 and so on, equal for equal strings. `padding` marks padding tokens, and
    `second_from` is the index of the first token of the second sentence.
    """
    special = [bool(SPECIAL.fullmatch(string)) and string not in UNKNOWN for string in strings]
    offsets, text = _placed(strings, special)
    number = {string: -1 - i for i, string in enumerate(dict.fromkeys(strings))}
    words, word, end = [], -1, -1
    for i, (start, stop) in enumerate(offsets):
        if special[i] or start == stop:
            words.append(None)
            end = -1
            continue
        word += start != end or text[start].isspace()
        words.append(word)
        end = stop
    second = [second_from is not None and i >= second_from for i in range(len(strings))]
    return Tokens(
        text=text,
        ids=tuple(number[string] for string in strings),
        strings=tuple(strings),
        offsets=tuple(offsets),
        word_ids=tuple(words),
        sequence_ids=tuple(None if s else int(two) for s, two in zip(special, second, strict=True)),
        special=tuple(special),
        type_ids=tuple(map(int, second)),
        padding=tuple(padding) or (False,) * len(strings),
    )


def looks_like_padding(string: str) -> bool:
    """True if the token has the name of a padding token."""
    return bool(PADDING.fullmatch(string))


def _placed(strings: Sequence[str], special: Sequence[bool]) -> tuple[list[tuple[int, int]], str]:
    """(first, after the last) character of each token, and the text. Special tokens have no characters."""
    plain = [string for string, s in zip(strings, special, strict=True) if not s]
    if any(SPACE in string or NEWLINE in string for string in plain):
        placed = _placed_bytes(strings, special)
        if placed is not None:
            return placed
    text, offsets = "", []
    pieces = _decoder_of(plain)
    for string, is_special in zip(strings, special, strict=True):
        piece = "" if is_special else pieces(string, text)
        start = len(text)
        text += piece
        offsets.append((start, len(text) - (piece != "" and string.endswith("</w>"))))
    return _without_first_space(offsets, text)


def _decoder_of(plain: Sequence[str]) -> Callable[[str, str], str]:
    """A function (token, text before it) -> the characters of the token, by the kind of vocabulary."""
    if any(SPACE in string or NEWLINE in string for string in plain):
        return lambda string, _: string.replace(SPACE, " ").replace(NEWLINE, "\n")
    if any("▁" in string for string in plain):
        return lambda string, _: string.replace("▁", " ")
    if any(string.endswith("</w>") for string in plain):
        return lambda string, _: string.removesuffix("</w>") + " " * string.endswith("</w>")
    if any(string[:1].isspace() or string[-1:].isspace() for string in plain):
        return lambda string, _: string
    return _wordpiece


def _wordpiece(string: str, before: str) -> str:
    if string.startswith("##") and len(string) > 2:
        return string[2:]
    joined = not before or CLOSING.fullmatch(string) or string in ("'", "-") or before.endswith(("'", "-", "(", "["))
    return string if joined else f" {string}"


def _placed_bytes(strings: Sequence[str], special: Sequence[bool]) -> tuple[list[tuple[int, int]], str] | None:
    """_placed() for a byte-level vocabulary, in which a non-ASCII letter has several signs; None for others."""
    table = _byte_of_sign()
    spelled = []
    for string, is_special in zip(strings, special, strict=True):
        if not is_special and not all(char in table for char in string):
            return None
        spelled.append(b"" if is_special else bytes(table[char] for char in string))
    whole = b"".join(spelled)
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        return None
    char_of = [i for i, char in enumerate(text) for _ in char.encode("utf-8")]  # character index of each byte
    offsets, start = [], 0
    for piece in spelled:
        stop = start + len(piece)
        first = char_of[start] if start < len(char_of) else len(text)
        offsets.append((first, char_of[stop - 1] + 1) if piece else (first, first))
        start = stop
    return _without_first_space(offsets, text)


def _without_first_space(offsets: list[tuple[int, int]], text: str) -> tuple[list[tuple[int, int]], str]:
    """The same without the space that sentencepiece vocabularies add before the first word."""
    if not text.startswith(" ") or len(text) < 2 or text[1].isspace() or any(span == (0, 1) for span in offsets):
        return offsets, text
    return [(max(0, start - 1), max(0, stop - 1)) for start, stop in offsets], text[1:]


@cache
def _byte_of_sign() -> dict[str, int]:
    """Sign of a byte-level vocabulary -> byte. Printable bytes are their own sign; others have signs from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
