"""Tokens added to a vocabulary after training, in the files next to a vocab.txt or vocab.json.

A tokenizer.json contains its own. Otherwise they are in tokenizer_config.json, with `added_tokens_decoder` in newer folders, and in
special_tokens_map.json and added_tokens.json in older ones. They are combined as in transformers 5
(PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__), because the order determines ids: numbered tokens first, by
number, then those with a role, then other special ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import CheckpointError
from .family import MAX_WHOLE, Theirs, shown
from .files import read_json

CONFIG, ROLES_FILE, OLDER = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
ROLE_KEYS = tuple(f"{role}_token" for role in ROLES)
FLAGS = ("lstrip", "rstrip", "single_word")

Token = AddedToken | str  # a string: a special token that does not absorb spaces


@dataclass(frozen=True)
class Stated:
    """Combined content of the three files."""

    settings: Theirs
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


def _optional(folder: Path, name: str) -> Theirs:
    """A JSON file; empty if it is missing."""
    return Theirs(read_json(folder / name) if (folder / name).is_file() else {}, name)


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


def _special(settings: Theirs, roles: Theirs) -> set[str]:
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


def _named(settings: Theirs) -> dict[str, Token | None]:
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
    settings = Theirs(value, f"{where}: {shown(key)}")
    if special is None:
        special = settings.bool("special", False)
    flags = {flag: settings.bool(flag, False) for flag in FLAGS}
    return AddedToken(
        settings.str("content"), **flags, normalized=settings.bool("normalized", not special), special=special
    )


def _list(settings: Theirs, key: str) -> list[Token]:
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
