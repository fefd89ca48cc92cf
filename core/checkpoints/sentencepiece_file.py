"""Reads SentencePiece models (tokenizer.model, spiece.model, source.spm) and builds a tokenizer that returns the same ids.

The file is a protocol buffer, ModelProto of sentencepiece_model.proto (Kudo & Richardson 2018, arXiv:1808.06226). It is parsed
here instead of by the sentencepiece library, because files are untrusted; tests compare the ids with that library.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import CheckpointError

MAX_FILE = 1 << 26  # the largest that is published, of 256,000 pieces, is 4 MB
MAX_PIECE_LENGTH = 512  # characters; merges are searched at each of them
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # SentencePiece.Type
TARGET = 7  # our own type: a piece that is generated, but never read from a text
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
KINDS = {3: "words", 4: "characters"}
SPACE = "▁"
Prefix = Literal["first", "always", "never"]
PREFIXED = ("first", "always")
NEVER = -1e4  # score of a piece that no text is split into
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
    """The parts of a file that determine ids."""

    file: str
    pieces: tuple[Piece, ...]
    kind: int = UNIGRAM
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    byte_fallback: bool = False
    suffix: bool = False  # a space belongs to the preceding word
    charsmap: bytes = field(default=b"", repr=False)
    dummy_prefix: bool = True
    squeezes: bool = True  # repeated spaces become one, and surrounding ones are removed
    escapes: bool = True  # a space becomes ▁

    def piece(self, number: int) -> str | None:
        return self.pieces[number].text if 0 <= number < len(self.pieces) else None


class MalformedFile(ValueError):
    """The file is malformed; the message says where."""


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a model. Raises CheckpointError naming a file that is damaged or no SentencePiece model. Every length is checked."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise CheckpointError(f"{path.name} is larger than {MAX_FILE >> 20} MB, which no published one is.")
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error
    try:
        return _model(path.name, data)
    except (MalformedFile, UnicodeDecodeError, struct.error) as error:
        raise CheckpointError(
            f"{path.name} is not a SentencePiece model that can be read ({error}). Download it again."
        ) from error


# Numbers of the fields of TrainerSpec and NormalizerSpec that are read; `charsmap` is bytes, the others are numbers.
TRAINER = {3: "kind", 24: "suffix", 35: "byte_fallback", 40: "unk_id", 41: "bos_id", 42: "eos_id", 43: "pad_id"}
NORMALIZER = {2: "charsmap", 3: "dummy_prefix", 4: "squeezes", 5: "escapes"}
FLAGS = ("suffix", "byte_fallback", "dummy_prefix", "squeezes", "escapes")


def _model(name: str, data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    settings: dict[str, Any] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(_bytes(value)))
        elif number in (2, 3):
            settings |= _settings(_bytes(value), TRAINER if number == 2 else NORMALIZER)
    if not pieces:
        raise MalformedFile("it has no pieces")
    if twins := len(pieces) - len({piece.text for piece in pieces}):
        raise MalformedFile(f"{twins} of its pieces are there twice")
    model = SentencePieceModel(name, tuple(pieces), **settings)
    if not 0 <= model.unk_id < len(pieces):
        raise MalformedFile(f"its unknown piece is number {model.unk_id} of {len(pieces)}")
    if model.byte_fallback and sum(piece.type == BYTE for piece in pieces) != 256:
        raise MalformedFile("it falls back to bytes and has no piece for each of them")
    return model


def _settings(data: bytes, names: Mapping[int, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for number, value in _fields(data):
        if (name := names.get(number)) is not None:
            values[name] = _bytes(value) if name == "charsmap" else _signed(value)
    return {name: bool(value) if name in FLAGS else value for name, value in values.items()}


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
        raise MalformedFile("one of its pieces has no text or no score")
    return Piece(text, score, kind)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, integer or bytes) of each field of a message."""
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
            raise MalformedFile(f"byte {at} begins a field of a kind that there is not")
        if number == 0 or size > len(data) - at:
            raise MalformedFile(f"it ends within a field of {size:,} bytes")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= len(data):
            raise MalformedFile("it ends within a number")
        byte = data[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value & (2**64 - 1), at + i + 1
    raise MalformedFile("a number in it is too long")


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise MalformedFile("a number in it is a text")
    return value - 2**64 if value >= 2**63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedFile("a text in it is a number")
    return value


def unread_rule(model: SentencePieceModel) -> str:
    """Why a model has unsupported rules; "" if all are supported."""
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
    """The tokenizer that splits a text as the model does, without special tokens around it.

    `before` lists the pieces in the order of their ids, if that differs from the file's. `steps` precede the model's normalisation.
    `prefix`: a space is added before the text ("first"), before each part between special tokens ("always") or nowhere, unless there
    is one; None: as in the file.
    """
    if prefix is not None:
        model = replace(model, dummy_prefix=False)
    pieces = model.pieces if before is None else before
    unk = next(i for i, piece in enumerate(pieces) if piece.type == UNKNOWN)
    make = _unigram if model.kind == UNIGRAM else _bpe
    tokenizer = Tokenizer(make(model, pieces, unk))
    tokenizer.normalizer = _normalizer(model, pieces, steps)
    if cuts := _cuts(pieces, prefix):
        tokenizer.pre_tokenizer = (
            cuts[0] if len(cuts) == 1 and prefix not in PREFIXED else pre_tokenizers.Sequence(cuts)
        )
    tokenizer.decoder = decode_spaces(strips=model.dummy_prefix or prefix in PREFIXED)
    tokenizer.add_tokens(
        [
            AddedToken(piece.text, special=piece.type != USER_DEFINED, normalized=piece.type == USER_DEFINED)
            for piece in pieces
            if piece.type in (UNKNOWN, CONTROL, USER_DEFINED)
        ]
    )
    return tokenizer


def _cuts(pieces: tuple[Piece, ...], prefix: Prefix | None) -> list[pre_tokenizers.PreTokenizer]:
    """Pre-tokenizers that add the prefix and split a text at its spaces."""
    cuts: list[pre_tokenizers.PreTokenizer] = []
    if prefix in PREFIXED:
        cuts.append(pre_tokenizers.Metaspace(SPACE, prepend_scheme=prefix, split=False))
    # Pieces with a space inside, or vocabularies without a piece for the space, have to be searched in the whole text.
    texts = {piece.text for piece in pieces if piece.type in (NORMAL, USER_DEFINED)}
    if SPACE in texts and not any(SPACE in text[1:] for text in texts):
        cuts.append(pre_tokenizers.Split(SPACE, "merged_with_next"))
    return cuts


def decode_spaces(strips: bool) -> decoders.Decoder:
    """Decoder of pieces with spaces and bytes; `strips` removes the space that was added before the text."""
    steps: list[decoders.Decoder] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strips else steps)


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
        # User-defined symbols are normalised as well, and must not get a space.
        symbols = "|".join(re.escape(piece.text) for piece in pieces if piece.type == USER_DEFINED)
        but = rf"(?!(?:{symbols})\z)" if symbols else ""
        made.append(normalizers.Replace(Regex(rf"\A{but}(?=[\s\S])"), SPACE))
    return normalizers.Sequence(made)


def _composed(charsmap: bytes) -> list[normalizers.Normalizer]:
    """A model's character rules, after letters and marks are composed to one character.

    Precompiled applies the shortest matching rule to a letter with its marks, sentencepiece the longest one.
    """
    rules = normalizers.Precompiled(charsmap)
    made: list[normalizers.Normalizer] = []
    if rules.normalize_str("e\u0301") == "é":
        made.append(normalizers.NFC())
    if rules.normalize_str("\uff8a") == "\u30cf":  # half-width katakana, whose marks are letters
        made += [normalizers.Replace(pair, whole) for pair, whole in HALF_WIDTH.items()]
    return [*made, rules]


def _unigram(model: SentencePieceModel, pieces: tuple[Piece, ...], unk: int) -> models.Model:
    """Splits a text into the most likely pieces (Kudo 2018, arXiv:1804.10959, §3.2)."""
    vocab = [(_hidden(i, piece), piece.score) for i, piece in enumerate(pieces)]
    return models.Unigram(vocab, unk_id=unk, byte_fallback=model.byte_fallback)


def _hidden(i: int, piece: Piece) -> str:
    """A piece's text; for an unused piece, a text that never occurs."""
    return f"\x00{i}" if piece.type == UNUSED else piece.text


def _bpe(model: SentencePieceModel, pieces: tuple[Piece, ...], unk: int) -> models.Model:
    """Merges neighbours into the piece with the highest score (Sennrich et al. 2016, arXiv:1508.07909)."""
    ids = {_hidden(i, piece): i for i, piece in enumerate(pieces)}
    scores = {
        piece.text: piece.score for piece in pieces if piece.type == NORMAL and len(piece.text) <= MAX_PIECE_LENGTH
    }
    merges = [
        (-score, ids[text[:cut]], ids[text[cut:]], (text[:cut], text[cut:]))
        for text, score in scores.items()
        for cut in range(1, len(text))
        if text[:cut] in scores and text[cut:] in scores
    ]
    merges.sort(key=lambda each: each[:3])
    return models.BPE(
        ids,
        [pair for *_, pair in merges],
        unk_token=pieces[unk].text,
        fuse_unk=True,
        byte_fallback=model.byte_fallback,
    )
