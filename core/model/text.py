"""Tokens: a text as the model reads it, each piece aligned with the characters it came from."""

from __future__ import annotations

import operator
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal

from tokenizers import Encoding, Tokenizer

from ..errors import TextError

UNKNOWN = ("[UNK]", "<unk>", "<UNK>")  # what published vocabularies call a piece that they do not hold
SPACE_SIGNS = ({"Ġ"}, {"▁"})  # how byte-level and sentencepiece vocabularies write a space
VISIBLE = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u00ad": "U+00AD", "\x7f": "␡"}
BLANKS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols by their category, with nothing drawn
MOST_SYMBOLS = 64  # that a sentence can list
UNDRAWN = ("Cc", "Cf")  # categories of characters that leave a mark on the letter before them where it was
JOINERS = "\u200c\u200d"  # inside a word or an emoji they decide its shape; alone they are nothing to see


@dataclass(frozen=True)
class Tokens:
    """Aligned tuples, one entry a token. Offsets count characters of `text`; every combining mark of it is some token's."""

    text: str
    ids: tuple[int, ...]
    strings: tuple[str, ...]  # the tokenizer's own spelling: "Ġcat", "##ing", "[CLS]"
    offsets: tuple[tuple[int, int], ...]  # first character, and the one after the last; (0, 0) where there are none
    word_ids: tuple[int | None, ...]
    sequence_ids: tuple[int | None, ...]
    special: tuple[bool, ...]  # put there by, or reserved for, the model's format: [CLS], </s>, <|endoftext|>
    type_ids: tuple[int, ...]
    padding: tuple[bool, ...]  # True where the token only fills a batch up
    # A token's label where its characters of `text` do not give it: the composed form of this text is read the same, and is
    # divided where this one cannot be. None nearly everywhere.
    own_labels: tuple[str | None, ...] = ()
    # Of a conversation that a chat template wrote out (core.model.chat):
    roles: tuple[str | None, ...] = ()  # whose turn each token is in: "user"; None where it is in none
    from_template: tuple[bool, ...] = ()  # whether the template wrote it, and no message

    def __post_init__(self) -> None:
        for name, none in (("own_labels", None), ("roles", None), ("from_template", False)):
            if not getattr(self, name):
                object.__setattr__(self, name, (none,) * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_chat(self) -> bool:
        """Whether a chat template wrote the text out."""
        return any(self.from_template)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a person reads for each token.

        The letters of the text that the token stands for, composed (é is one character, NFC), without the one space before a
        word; special tokens by name;
        characters that leave no mark shown as one (␣ ↵ ⇥ U+200B). Tokens that share a character say which part of it they
        are ("🎉 1/3"); a piece that the vocabulary does not hold is followed by what the model reads instead ("🎉 [UNK]").
        """
        spaces = tuple(self._is_space(i) for i in range(len(self)))
        parts = shared_characters([(0, 0) if space else span for space, span in zip(spaces, self.offsets, strict=True)])
        own = self.own_labels
        return tuple(own[i] or self._label(i, space, *parts[i]) for i, space in enumerate(spaces))

    def _is_space(self, i: int) -> bool:
        """Whether the token is nothing but the sign for spaces, which may have no characters: some tokenizers put one
        before the text, and some leave spaces out of their offsets."""
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
    """For each token (k, n): the k-th of n neighbours whose characters overlap; (1, 1) for one that shares none.

    Byte-level vocabularies cut an emoji or an accented letter into several tokens, and all of them point at it.
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
    """The piece, composed (NFC), with every character that leaves no mark replaced by one that does."""
    if len(piece) > 1 and piece[0] == " " and not piece[1].isspace():
        piece = piece[1:]
    if piece.isascii() and piece.isprintable() and " " not in piece:
        return piece  # most pieces of most texts, and a long text has many
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
        # An accent needs a letter to sit on; a variation selector has no shape even then.
        return f"U+{ord(char):04X}" if unicodedata.name(char, "").startswith("VARIATION SELECTOR") else f"◌{char}"
    return f"U+{ord(char):04X}" if kind[0] in "CZ" or char in BLANKS else char


def tokenize(tokenizer: Tokenizer | None, text: str, *, add_special_tokens: bool = True) -> Tokens:
    """Raises TextError for what holds no token: no tokenizer, an empty text, half a character, nothing but spaces.

    Without `add_special_tokens` a text is read as it is, which names those tokens itself where it has them, as one that a chat
    template wrote does. Any number of threads may share one tokenizer: it is read, never set.
    """
    if tokenizer is None:
        raise TextError(
            "This model has no tokenizer, so it cannot read a text. Give token numbers instead: ids=[...], or 5 17 3 as the text."
        )
    if not isinstance(text, str):
        raise TextError(f"The text must be a string, not {type(text).__name__}.")
    if not text:
        raise TextError("The text is empty. Type a sentence.")
    if (at := lone_surrogate(text)) is not None:
        raise TextError(
            f"Character {at + 1} of the text is half of a character (U+{ord(text[at]):04X}) and cannot be read. Delete it or type it again."
        )
    try:
        encoding = tokenizer.encode(text, add_special_tokens=add_special_tokens)
    except BaseException as error:  # e.g. a letter that a vocabulary without <unk> lacks
        if not is_tokenizer_fault(error):
            raise
        raise TextError(
            _unreadable(tokenizer, text) or f"This model's tokenizer cannot read the text: {error}. Try other words."
        ) from error
    reserved = {
        i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special and token.content not in UNKNOWN
    }
    tokens = Tokens(
        text=text,
        ids=tuple(encoding.ids),
        # Not encoding.tokens, which has the text itself where a piece is unknown.
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
    found = _composed(tokenizer, text, encoding, add_special_tokens)
    if found is not None:
        twin = replace(tokens, text=found[0], offsets=found[1])
        own = [label if label != ours else None for label, ours in zip(twin.labels, tokens.labels, strict=True)]
        tokens = replace(tokens, own_labels=tuple(own))
    return tokens


def spans(
    tokenizer: Tokenizer, text: str, encoding: Encoding, add_special_tokens: bool = True
) -> tuple[tuple[int, int], ...]:
    """The characters of the text that each token of its encoding stands for, from the first to the one after the last.

    A tokenizer's own offsets leave out characters that it drops (BERT: vowel signs and accents) and differ between texts that look the
    same, é as one character and as e with a mark. Here a mark goes with its letter, and a text that reads the same
    once it is composed (NFC) is divided as its composed form is.
    """
    found = _composed(tokenizer, text, encoding, add_special_tokens)
    return with_marks(text, encoding.offsets if found is None else _moved(found[1], found[0], text))


def _composed(
    tokenizer: Tokenizer, text: str, encoding: Encoding, add_special_tokens: bool
) -> tuple[str, tuple[tuple[int, int], ...]] | None:
    """The composed form of the text and the spans of its tokens, where it is another text that gives the same tokens."""
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
    """The offsets, widened until every combining mark of the text is in one of them.

    A mark goes with all tokens that end where it begins, characters between them that draw nothing apart. Where there are
    none, because its letter is no token, it goes with the next token or the last one before.
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
    found = list(offsets)
    lost = [i for i, char in enumerate(text) if not covered[i] and unicodedata.category(char)[0] == "M"]
    for first, last in _runs(text, lost):
        base = first
        while base and not covered[base - 1] and unicodedata.category(text[base - 1]) in UNDRAWN:
            base -= 1
        after, before = bisect_left(starts, last), bisect_right(ends, first) - 1
        if base not in by_end and after < len(starts) and (starts[after] == last or before < 0):
            for i in by_start[starts[after]]:
                found[i] = min(first, found[i][0]), found[i][1]
        elif before >= 0:
            for i in by_end[ends[before]]:
                found[i] = found[i][0], max(last, found[i][1])
    return tuple(found)


def _runs(text: str, lost: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of neighbouring characters, each the first and the one after the last; between them at most characters without a shape."""
    runs: list[tuple[int, int]] = []
    for i in lost:
        if runs and all(unicodedata.category(char) in UNDRAWN for char in text[runs[-1][1] : i]):
            runs[-1] = runs[-1][0], i + 1
        else:
            runs.append((i, i + 1))
    return runs


def _moved(offsets: Sequence[tuple[int, int]], composed: str, text: str) -> tuple[tuple[int, int], ...]:
    """Offsets in the composed form of a text as offsets in the text: both count the same characters once these are taken apart."""
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
    """What a model that reads a few symbols and nothing else has to say about a text with another one in it."""
    vocabulary = tokenizer.get_vocab()
    marks = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    symbols = sorted(vocabulary.keys() - marks, key=vocabulary.__getitem__)
    other = next((char for char in text if char not in vocabulary and not char.isspace()), None)
    if other is None or len(symbols) > MOST_SYMBOLS or any(len(symbol) != 1 for symbol in symbols):
        return None
    return f"This model has no token for “{visible(other)}”. It reads {' '.join(symbols)} and nothing else."


def is_tokenizer_fault(error: BaseException) -> bool:
    """Whether the tokenizers library raised it, for a text or a file that it cannot handle.

    It raises Exception itself, never a kind of it; where its file lies it panics, with a BaseException that has no name to
    import and that would get past every handler above.
    """
    return type(error) is Exception or type(error).__name__ == "PanicException"


def lone_surrogate(text: str) -> int | None:
    """Where the first half of a UTF-16 pair stands that has lost its other half; None if there is none."""
    return next((i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)


def pad(batch: Sequence[Tokens], pad_id: int, pad_string: str, side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    """Every text filled up to the longest of them, on one side."""
    longest = max((len(tokens) for tokens in batch), default=0)
    fill = Tokens("", (pad_id,), (pad_string,), ((0, 0),), (None,), (None,), (True,), (0,), (True,))
    return tuple(_filled(tokens, fill, longest - len(tokens), side) for tokens in batch)


def _filled(tokens: Tokens, fill: Tokens, n: int, side: Literal["left", "right"]) -> Tokens:
    columns = {f.name: getattr(tokens, f.name) for f in fields(Tokens) if f.name != "text"}
    filler = {name: getattr(fill, name) * n for name in columns}
    joined = {name: filler[name] + own if side == "left" else own + filler[name] for name, own in columns.items()}
    return Tokens(text=tokens.text, **joined)


def from_ids(tokenizer: Tokenizer | None, ids: Sequence[int]) -> Tokens:
    """Tokens for ids given instead of a text; the text is what the tokenizer makes of them.

    Without a tokenizer, or for a number that it does not know, the string is the number itself. Raises TextError for no
    numbers at all or a negative one; whether the model has them all is the model's to say.
    """
    try:
        numbers = tuple(map(operator.index, ids))
    except TypeError as error:
        raise TextError("Token numbers must be whole numbers, e.g. ids=[101, 7592, 102].") from error
    if not numbers:
        raise TextError("There are no token numbers. Give at least one, e.g. ids=[101, 7592, 102].")
    if (bad := min(numbers)) < 0:
        raise TextError(f"Token number {bad} is negative. They count from 0.")
    strings = tuple(_string(tokenizer, i) for i in numbers)
    reserved = (
        set()
        if tokenizer is None
        else {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    )
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
        strings=strings,
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
    """The text of these ids, and where in it each one stands.

    A piece is what a token adds to the token before it, since "##ing" or "▁cat" read differently at the start. Bytes of
    one character wait for each other, and share its offsets.
    """
    if tokenizer is None:
        return "", ((0, 0),) * len(ids)
    text, offsets, waiting = "", [], []
    for i, current in enumerate(ids):
        waiting.append(current)
        piece = _added(tokenizer, ids[max(0, i + 1 - len(waiting) - 1) : i + 1 - len(waiting)], tuple(waiting))
        if "\ufffd" in piece and len(waiting) < 4 and i + 1 < len(ids):
            continue
        offsets += [(len(text), len(text) + len(piece))] * len(waiting)
        text += piece
        waiting = []
    return text, tuple(offsets)


def _added(tokenizer: Tokenizer, before: tuple[int, ...], ids: tuple[int, ...]) -> str:
    known = [i for i in ids if i < 2**32 and tokenizer.id_to_token(i) is not None]
    context = [i for i in before if i < 2**32 and tokenizer.id_to_token(i) is not None]
    alone, joined = (
        tokenizer.decode(context, skip_special_tokens=False),
        tokenizer.decode(context + known, skip_special_tokens=False),
    )
    return (
        joined.removeprefix(alone) if joined.startswith(alone) else tokenizer.decode(known, skip_special_tokens=False)
    )
