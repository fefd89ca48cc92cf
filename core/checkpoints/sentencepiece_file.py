"""A SentencePiece model (tokenizer.model, spiece.model, source.spm) read by its own format, and the tokenizer that gives the same ids.

The file is a protocol buffer, ModelProto of sentencepiece_model.proto (Kudo & Richardson 2018, arXiv:1808.06226). It is read here
and not by the library that wrote it, so that a stranger's file meets no code but this; tests hold the ids against that library.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import CheckpointError

MAX_FILE = 1 << 26  # the largest that is published, of 256,000 pieces, is 4 MB
MAX_PIECE_LENGTH = 512  # letters; each is a place to cut it
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # SentencePiece.Type
TARGET = 7  # of our own: a piece that is written, and read in no text
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
KINDS = {3: "words", 4: "characters"}
SPACE = "▁"
Prefix = Literal["first", "always", "never"]
NEVER = -1e4  # the score of a piece that no text is put together from
HALF_WIDTH = {
    pair: whole
    for letter in range(0xFF66, 0xFF9E)
    for mark in "\uff9e\uff9f"
    if len(whole := unicodedata.normalize("NFKC", pair := chr(letter) + mark)) == 1
}


@dataclass(frozen=True)
class Piece:
    text: str
    score: float
    type: int = NORMAL


@dataclass(frozen=True)
class SentencePieceModel:
    """The content of a file that decides on ids."""

    file: str
    pieces: tuple[Piece, ...]
    kind: int = UNIGRAM
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    byte_fallback: bool = False
    suffix: bool = False  # a space belongs to the word before it
    charsmap: bytes = field(default=b"", repr=False)
    dummy_prefix: bool = True
    squeezes: bool = True  # several spaces become one, and those around the text none
    escapes: bool = True  # a space becomes ▁

    def piece(self, number: int) -> str | None:
        return self.pieces[number].text if 0 <= number < len(self.pieces) else None


class NotWhole(ValueError):
    """A file that is not what it says: where, and why."""


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Raises CheckpointError naming a file that is damaged or no SentencePiece model. Every length is held against the file."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise CheckpointError(f"{path.name} is larger than {MAX_FILE >> 20} MB, which no published one is.")
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error
    try:
        return _model(path.name, data)
    except (NotWhole, UnicodeDecodeError, struct.error) as error:
        raise CheckpointError(
            f"{path.name} is not a SentencePiece model that can be read ({error}). Download it again."
        ) from error


def _model(name: str, data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    said: dict[str, object] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(_bytes(value)))
        elif number == 2:
            trainer = {
                3: "kind",
                24: "suffix",
                35: "byte_fallback",
                40: "unk_id",
                41: "bos_id",
                42: "eos_id",
                43: "pad_id",
            }
            said |= {trainer[n]: _signed(v) for n, v in _fields(_bytes(value)) if n in trainer}
        elif number == 3:
            rules = {3: "dummy_prefix", 4: "squeezes", 5: "escapes"}
            for n, v in _fields(_bytes(value)):
                if n == 2:
                    said["charsmap"] = _bytes(v)
                elif n in rules:
                    said[rules[n]] = _signed(v)
    if not pieces:
        raise NotWhole("it has no pieces")
    twins = len(pieces) - len({piece.text for piece in pieces})
    if twins:
        raise NotWhole(f"{twins} of its pieces are there twice")
    flags = ("suffix", "byte_fallback", "dummy_prefix", "squeezes", "escapes")
    said = {key: bool(value) if key in flags else value for key, value in said.items()}
    found = SentencePieceModel(name, tuple(pieces), **said)  # type: ignore[arg-type]
    if not 0 <= found.unk_id < len(pieces):
        raise NotWhole(f"its unknown piece is number {found.unk_id} of {len(pieces)}")
    if found.byte_fallback and sum(piece.type == BYTE for piece in pieces) != 256:
        raise NotWhole("it falls back to bytes and has no piece for each of them")
    return found


def _piece(data: bytes) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _fields(data):
        if number == 1:
            text = _bytes(value).decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", _bytes(value))
        elif number == 3:
            kind = _signed(value)
    if not text or score != score or abs(score) > 1e30:
        raise NotWhole("one of its pieces has no text or no score")
    return Piece(text, score, kind)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers, and whole numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise NotWhole(f"byte {at} begins a field of a kind that there is not")
        if number == 0 or size > len(data) - at:
            raise NotWhole(f"it ends within a field of {size:,} bytes")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= len(data):
            raise NotWhole("it ends within a number")
        byte = data[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value & (2**64 - 1), at + i + 1
    raise NotWhole("a number in it is too long")


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise NotWhole("a number in it is a text")
    return value - 2**64 if value >= 2**63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise NotWhole("a text in it is a number")
    return value


def unread_rule(model: SentencePieceModel) -> str:
    """Why a model's rules are not those of the tokenizer that is made here; "" where they are."""
    if model.kind in KINDS:
        return f"{model.file} divides texts into {KINDS[model.kind]}, which is not read"
    if model.kind not in (UNIGRAM, BPE):
        return f"{model.file} divides texts in a way that is not known (model_type {model.kind})"
    if model.suffix or not model.escapes:
        return f"{model.file} keeps spaces in a way that is not read"
    return ""


def tokenizer_of(
    model: SentencePieceModel,
    *,
    before: tuple[Piece, ...] | None = None,
    steps: tuple[normalizers.Normalizer, ...] = (),
    prefix: Prefix | None = None,
) -> Tokenizer:
    """The tokenizer that reads a text as the model does, without marks around it.

    `before`: the pieces in the order of their ids, where that is another than the file's. `steps` come before the model's own rules.
    `prefix`: whether a space is put before a text ("first"), before each part of it between special tokens ("always") or nowhere,
    unless there is one; None as the file says.
    """
    if prefix is not None:
        model = replace(model, dummy_prefix=False)
    pieces = model.pieces if before is None else before
    unk = next(i for i, piece in enumerate(pieces) if piece.type == UNKNOWN)
    make = _unigram if model.kind == UNIGRAM else _bpe
    tokenizer = Tokenizer(make(model, pieces, unk))
    tokenizer.normalizer = _normalizer(model, pieces, steps)
    # A piece with a space inside, or a vocabulary without the space alone, has to be looked for in the whole text.
    texts = {piece.text for piece in pieces if piece.type in (NORMAL, USER_DEFINED)}
    if SPACE in texts and not any(SPACE in text[1:] for text in texts):
        tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE, "merged_with_next")
    if prefix in ("first", "always"):
        metaspace = pre_tokenizers.Metaspace(SPACE, prepend_scheme=prefix, split=False)
        cuts = [] if tokenizer.pre_tokenizer is None else [tokenizer.pre_tokenizer]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([metaspace, *cuts])
    back: list[decoders.Decoder] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    strips = model.dummy_prefix or prefix in ("first", "always")
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)] if strips else back)
    tokenizer.add_tokens(
        [
            AddedToken(piece.text, special=piece.type != USER_DEFINED, normalized=piece.type == USER_DEFINED)
            for piece in pieces
            if piece.type in (UNKNOWN, CONTROL, USER_DEFINED)
        ]
    )
    return tokenizer


def _normalizer(
    model: SentencePieceModel, pieces: tuple[Piece, ...], steps: tuple[normalizers.Normalizer, ...]
) -> normalizers.Normalizer:
    made = list(steps)
    if model.charsmap:
        made += _composed(model.charsmap)
    if model.squeezes:
        made += [normalizers.Replace(Regex(rf"\A +|[ {SPACE}]+\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    made.append(normalizers.Replace(" ", SPACE))
    if model.dummy_prefix:
        # Each symbol of the vocabulary goes through these rules too, and none of them begins with a space.
        symbols = "|".join(re.escape(piece.text) for piece in pieces if piece.type == USER_DEFINED)
        but = rf"(?!(?:{symbols})\z)" if symbols else ""
        made.append(normalizers.Replace(Regex(rf"\A{but}(?=[\s\S])"), SPACE))
    return normalizers.Sequence(made)


def _composed(charsmap: bytes) -> list[normalizers.Normalizer]:
    """A model's rules for characters, after letters and marks have become one character as those rules have it.

    Precompiled applies to a letter with its marks the shortest rule that fits, where sentencepiece takes the longest.
    """
    rules = normalizers.Precompiled(charsmap)
    made: list[normalizers.Normalizer] = []
    if rules.normalize_str("e\u0301") == "é":
        made.append(normalizers.NFC())
    if rules.normalize_str("\uff8a") == "\u30cf":  # katakana of half width, whose marks are letters
        made += [normalizers.Replace(pair, whole) for pair, whole in HALF_WIDTH.items()]
    return [*made, rules]


def _unigram(model: SentencePieceModel, pieces: tuple[Piece, ...], unk: int) -> models.Model:
    """The likeliest way to put a text together from pieces (Kudo 2018, arXiv:1804.10959, §3.2)."""
    vocab = [(_hidden(i, piece), piece.score) for i, piece in enumerate(pieces)]
    return models.Unigram(vocab, unk_id=unk, byte_fallback=model.byte_fallback)


def _hidden(i: int, piece: Piece) -> str:
    """A piece's text; of one that is never used, a text that no one writes."""
    return f"\x00{i}" if piece.type == UNUSED else piece.text


def _bpe(model: SentencePieceModel, pieces: tuple[Piece, ...], unk: int) -> models.Model:
    """Neighbours are merged into the piece with the best score (Sennrich et al. 2016, arXiv:1508.07909)."""
    ids = {_hidden(i, piece): i for i, piece in enumerate(pieces)}
    merged = {
        piece.text: piece.score for piece in pieces if piece.type == NORMAL and len(piece.text) <= MAX_PIECE_LENGTH
    }
    found: list[tuple[float, int, int, tuple[str, str]]] = []
    for text, score in merged.items():
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in merged and right in merged:
                found.append((-score, ids[left], ids[right], (left, right)))
    found.sort(key=lambda each: each[:3])
    return models.BPE(
        ids,
        [pair for *_, pair in found],
        unk_token=pieces[unk].text,
        fuse_unk=True,
        byte_fallback=model.byte_fallback,
    )
