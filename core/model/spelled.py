"""Tokens from their spellings alone, as a tokenizer gives them ("Ġcat", "▁cat", "##ing", "[CLS]") and without the tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from .text import UNKNOWN, Tokens

SPECIAL = re.compile(r"\[[A-Z_]+\d*\]|</?[a-z_]+\d*>|<\|.+\|>|<(?:unused|extra_id_)\d+>", re.IGNORECASE)
PADDING = re.compile(r"\[PAD\]|<pad>|<\|pad\|>|<\|?(?:pad|fim_pad|padding)(?:_token)?\|?>", re.IGNORECASE)
CLOSING = re.compile(r"[.,!?;:%)\]}’”…]+")
NEWLINE, SPACE = "Ċ", "Ġ"


def spelled_tokens(strings: Sequence[str], padding: Sequence[bool] = (), second_from: int | None = None) -> Tokens:
    """The tokens of a text that is known by their spellings; the text is put together from these.

    The sign for a space tells which kind of vocabulary they are of: Ġ, ▁, </w>, spaces themselves, or none, where ## continues
    a word and all else begins one. Numbers in the vocabulary are not known: ids are −1, −2 and so on, the same for the same
    spelling. `padding` says which ones fill up, `second_from` where the second of two sentences begins.
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


def may_be_padding(string: str) -> bool:
    """Whether a token is called padding."""
    return bool(PADDING.fullmatch(string))


def _placed(strings: Sequence[str], special: Sequence[bool]) -> tuple[list[tuple[int, int]], str]:
    """The first character of each token in the text and the one after its last, and the text. Special tokens have none."""
    spoken = [string for string, s in zip(strings, special, strict=True) if not s]
    if any(SPACE in string or NEWLINE in string for string in spoken):
        found = _of_bytes(strings, special)
        if found is not None:
            return found
    text, offsets = "", []
    pieces = _way_of(spoken)
    for string, is_special in zip(strings, special, strict=True):
        piece = "" if is_special else pieces(string, text)
        start = len(text)
        text += piece
        offsets.append((start, len(text) - (piece != "" and string.endswith("</w>"))))
    return _without_first_space(offsets, text)


def _way_of(spoken: Sequence[str]) -> Callable[[str, str], str]:
    """(token, text before it) -> the characters that the token adds."""
    if any(SPACE in string or NEWLINE in string for string in spoken):
        return lambda string, _: string.replace(SPACE, " ").replace(NEWLINE, "\n")
    if any("▁" in string for string in spoken):
        return lambda string, _: string.replace("▁", " ")
    if any(string.endswith("</w>") for string in spoken):
        return lambda string, _: string.removesuffix("</w>") + " " * string.endswith("</w>")
    if any(string[:1].isspace() or string[-1:].isspace() for string in spoken):
        return lambda string, _: string
    return _wordpiece


def _wordpiece(string: str, before: str) -> str:
    if string.startswith("##") and len(string) > 2:
        return string[2:]
    joined = not before or CLOSING.fullmatch(string) or string in ("'", "-") or before.endswith(("'", "-", "(", "["))
    return string if joined else f" {string}"


def _of_bytes(strings: Sequence[str], special: Sequence[bool]) -> tuple[list[tuple[int, int]], str] | None:
    """The same for spellings of bytes, which give a letter beyond ASCII as several signs; None where they are no such spellings."""
    table = _bytes_of()
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
    at = [
        i for i, char in enumerate(text) for _ in char.encode("utf-8")
    ]  # of each byte the character that it is a part of
    offsets, start = [], 0
    for piece in spelled:
        stop = start + len(piece)
        place = at[start] if start < len(at) else len(text)
        offsets.append((place, at[stop - 1] + 1) if piece else (place, place))
        start = stop
    return _without_first_space(offsets, text)


def _without_first_space(offsets: list[tuple[int, int]], text: str) -> tuple[list[tuple[int, int]], str]:
    """The same without a space before the first word, which sentencepiece vocabularies put there."""
    if not text.startswith(" ") or len(text) < 2 or text[1].isspace() or any(span == (0, 1) for span in offsets):
        return offsets, text
    return [(max(0, start - 1), max(0, stop - 1)) for start, stop in offsets], text[1:]


@cache
def _bytes_of() -> dict[str, int]:
    """The byte that each sign of a byte-level vocabulary means: printable ones are themselves, others are counted from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
