"""Tokenizer files: tokenizer_config.json with its added tokens, and SentencePiece models."""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import CheckpointError
from .family import MAX_WHOLE, SourceConfig, shown
from .files import read_json

CONFIG, ROLES_FILE, OLDER = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
ROLE_KEYS = tuple(f"{role}_token" for role in ROLES)
ADDED_TOKEN_FLAGS = ("lstrip", "rstrip", "single_word")

Token = AddedToken | str  # a string: a special token that does not absorb spaces


@dataclass(frozen=True)
class Stated:
    """Combined content of the three files."""

    settings: SourceConfig
    numbers: Mapping[int, AddedToken]  # in the order of these numbers
    named: Mapping[str, Token | None]  # by role; None: the files state that there is none
    more: tuple[Token, ...]

    def has(self, role: str, text: str) -> bool:
        """True if the files state that this text is a token, even if it is not in the vocabulary."""
        return self.named.get(role) is not None or any(token.content == text for token in self.numbers.values())

    def denies(self, role: str) -> bool:
        """True if the files state that no token has this role."""
        return role in self.named and self.named[role] is None

    def named_or(self, defaults: Mapping[str, Token]) -> dict[str, Token | None]:
        """The token of each role, in the order in which tokens missing from the vocabulary are numbered."""
        known = {**defaults, **self.named}
        return {role: known.get(role) for role in (*ROLES, *(name for name in known if name not in ROLES))}


def _optional(folder: Path, name: str) -> SourceConfig:
    """A JSON file; empty if it is missing."""
    return SourceConfig(read_json(folder / name) if (folder / name).is_file() else {}, name)


def read_stated(folder: Path) -> Stated:
    """Raises CheckpointError naming a damaged file and key."""
    settings = _optional(folder, CONFIG)
    values = _named(settings)
    more = _list(settings, "extra_special_tokens") or _list(settings, "additional_special_tokens")
    where = f"{CONFIG}: added_tokens_decoder"
    if "added_tokens_decoder" in settings:
        decoder = settings.inside("added_tokens_decoder").values
        numbered = {_whole(number, where): _object(value, where, number) for number, value in decoder.items()}
    else:
        roles = _optional(folder, ROLES_FILE)
        special = _special(settings, roles)
        values |= _named(roles)
        more += [token for token in _list(roles, "extra_special_tokens") if token not in more]
        numbered = _older(folder, special | {token for token in more if isinstance(token, str)})
        more = more or _list(roles, "additional_special_tokens")
    by_text = {token.content: token for token in numbered.values()}
    named: dict[str, Token | None] = {}
    for key, value in values.items():
        role = key.removesuffix("_token")
        named[role] = by_text.get(str(value), value) if role in ROLES else value
    return Stated(settings, dict(sorted(numbered.items())), named, tuple(more))


def _special(settings: SourceConfig, roles: SourceConfig) -> set[str]:
    """Texts of tokens with a role, which make numbered tokens special. As in transformers, objects in the settings do not count."""
    plain = {key: value for key, value in settings.values.items() if isinstance(value, str)} | _named(roles)
    return {str(plain[key]) for key in ROLE_KEYS if plain.get(key)}


def add(tokenizer: Tokenizer, stated: Stated, named: Mapping[str, Token | None]) -> None:
    """Add the tokens to a tokenizer, after its normalizer is set, which also applies to tokens that are not special."""
    tokens: list[Token] = [*stated.numbers.values()]
    known = {token.content for token in stated.numbers.values()}
    for token in (*named.values(), *stated.more):
        if token is not None and str(token) not in known and token not in tokens:
            tokens.append(token)
    roles = {str(token) for token in named.values() if token is not None}
    made = [AddedToken(token, special=True) if isinstance(token, str) else token for token in tokens]
    for token in made:
        token.special = token.special or token.content in roles
    tokenizer.add_tokens(made)
    tokenizer.encode_special_tokens = stated.settings.bool("split_special_tokens", False)


def renumbered(folder: Path, tokenizer: Tokenizer | None) -> dict[str, tuple[int, int]]:
    """text -> (number in the files, id in the tokenizer) of tokens for which they differ, because the tokenizer closes gaps."""
    if tokenizer is None or (folder / "tokenizer.json").is_file():
        return {}
    numbers = {token.content: number for number, token in read_stated(folder).numbers.items()}
    ids = {text: (number, tokenizer.token_to_id(text)) for text, number in numbers.items()}
    return {text: (number, given) for text, (number, given) in ids.items() if given is not None and given != number}


def _older(folder: Path, special: set[str]) -> dict[int, AddedToken]:
    """Tokens in added_tokens.json. Those that are not special are normalized like the surrounding text."""
    if not (folder / OLDER).is_file():
        return {}
    return {
        _whole(number, OLDER): AddedToken(text, normalized=text not in special, special=text in special)
        for text, number in read_json(folder / OLDER).items()
    }


def _whole(number: Any, where: str) -> int:
    """A token's number, from an integer or the digits of a key."""
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number[:20])
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_WHOLE:
        raise CheckpointError(f"{where} numbers a token {shown(number)}, but it must be a whole number.")
    return number


def _named(settings: SourceConfig) -> dict[str, Token | None]:
    """Tokens under keys that end in _token."""
    tokens = {
        key: _token(value, settings.where, key) for key, value in settings.values.items() if key.endswith("_token")
    }
    return {key: token for key, token in tokens.items() if token is not None or key in ROLE_KEYS}


def _token(value: Any, where: str, key: str) -> Token | None:
    """A token from a string or an object; None for null, and for settings such as add_bos_token."""
    if isinstance(value, dict):
        return _object(value, where, key, special=None if value.get("__type") else True)
    if isinstance(value, str):
        return value
    if value is not None and key in ROLE_KEYS:
        raise CheckpointError(
            f"{where}: {key} is {shown(value)}, but it must be a word in quotes or an object in braces."
        )
    return None


def _object(value: Any, where: str, key: str, special: bool | None = None) -> AddedToken:
    """A token with its flags. `special` is read from the object if it is None."""
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: {shown(key)} is {shown(value)}, but it must be an object in braces.")
    settings = SourceConfig(value, f"{where}: {shown(key)}")
    if special is None:
        special = settings.bool("special", False)
    flags = {flag: settings.bool(flag, False) for flag in ADDED_TOKEN_FLAGS}
    return AddedToken(
        settings.str("content"), **flags, normalized=settings.bool("normalized", not special), special=special
    )


def _list(settings: SourceConfig, key: str) -> list[Token]:
    """Special tokens without a role, from a list or an object of named tokens."""
    values = settings.any(key, [])
    values = list(values.values()) if isinstance(values, dict) else values
    if not isinstance(values, list):
        raise CheckpointError(f"{settings.where}: {key} is {shown(values)}, but it must be a list of tokens.")
    tokens = [_token(value, settings.where, key) for value in values]
    if None in tokens:
        raise CheckpointError(
            f"{settings.where}: {key} must be a list of tokens, each in quotes or an object in braces."
        )
    return [token for token in tokens if token is not None]


def surround(tokenizer: Tokenizer, before: Sequence[str], after: Sequence[str]) -> Tokenizer:
    """Put special tokens around a text, and around each text of a pair."""
    if before or after:
        second = [f"{name}:1" for name in (*before, "$B", *after)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[*before, "$A", *after],
            pair=[*before, "$A", *after, *second],
            special_tokens=_numbered(tokenizer, *before, *after),
        )
    return tokenizer


def surround_bert(tokenizer: Tokenizer, cls: str, sep: str) -> Tokenizer:
    """Put BERT's special tokens around a text, and between two."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[f"{cls}:0", "$A:0", f"{sep}:0"],
        pair=[f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"],
        special_tokens=_numbered(tokenizer, cls, sep),
    )
    return tokenizer


def _numbered(tokenizer: Tokenizer, *names: str) -> list[tuple[str, int]]:
    numbered: list[tuple[str, int]] = []
    for name in dict.fromkeys(names):
        if (number := tokenizer.token_to_id(name)) is None:
            raise CheckpointError(f"The tokenizer has no {name}, which the files of this folder put around a text.")
        numbered.append((name, number))
    return numbered


def bert_tokenizer(
    vocab: dict[str, int], unk: str, *, lowercase: bool, strip_accents: bool | None, chinese: bool = True
) -> Tokenizer:
    """BERT's tokenizer without special tokens (Devlin et al. 2018, §3; Schuster & Nakajima 2012)."""
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=unk, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


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
