"""Tokens from the strings of a tokenizer ("Ġcat", "▁cat", "##ing", "[CLS]"), without the tokenizer."""

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


def may_be_padding(string: str) -> bool:
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
