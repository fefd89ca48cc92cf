"""Tokens added to a vocabulary after its training, as the files beside a vocab.txt or vocab.json state them.

A tokenizer.json holds its own. Without one, three files do: tokenizer_config.json, with `added_tokens_decoder` in newer
folders; special_tokens_map.json and added_tokens.json in older ones. They are put together as transformers does
(PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__ of its version 5), because a token's number follows
from the order: first those that have a number, by that number, then those that have a role, then the other special ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from ..errors import CheckpointError
from .family import MAX_WHOLE, Theirs, shown
from .files import read_json

CONFIG, ROLES_FILE, OLDER = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
ROLE_KEYS = tuple(f"{role}_token" for role in ROLES)
FLAGS = ("lstrip", "rstrip", "single_word")

Token = AddedToken | str  # text alone: a special token that takes no spaces with it


@dataclass(frozen=True)
class Stated:
    """The content of the three files together."""

    settings: Theirs
    numbers: Mapping[int, AddedToken]  # in the order of these numbers
    named: Mapping[str, Token | None]  # by role: None where the files say that there is none
    more: tuple[Token, ...]

    def has(self, role: str, text: str) -> bool:
        """Whether the files say that this text is a token, even if the vocabulary does not have it."""
        return self.named.get(role) is not None or any(token.content == text for token in self.numbers.values())

    def denies(self, role: str) -> bool:
        """Whether the files say that no token has this role."""
        return role in self.named and self.named[role] is None

    def named_or(self, defaults: Mapping[str, Token]) -> dict[str, Token | None]:
        """The token of each role, in the order in which those that the vocabulary lacks are numbered."""
        known = {**defaults, **self.named}
        return {role: known.get(role) for role in (*ROLES, *(name for name in known if name not in ROLES))}


def read_stated(folder: Path) -> Stated:
    """Raises CheckpointError naming the file and the key that is damaged."""
    settings = Theirs(read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}, CONFIG)
    values = _named(settings)
    more = _list(settings, "extra_special_tokens") or _list(settings, "additional_special_tokens")
    numbered: dict[int, AddedToken] = {}
    if "added_tokens_decoder" in settings:
        for number, value in settings.inside("added_tokens_decoder").values.items():
            where = f"{CONFIG}: added_tokens_decoder"
            numbered[_whole(number, where)] = _object(value, where, number)
    else:
        said = Theirs(read_json(folder / ROLES_FILE) if (folder / ROLES_FILE).is_file() else {}, ROLES_FILE)
        # As transformers has it, an object in the settings and the older name of the list make no numbered token special.
        plain = {key: value for key, value in settings.values.items() if isinstance(value, str)} | _named(said)
        special = [str(plain[key]) for key in ROLE_KEYS if plain.get(key)]
        values |= _named(said)
        more += [token for token in _list(said, "extra_special_tokens") if token not in more]
        numbered = _older(folder, {*special, *(token for token in more if isinstance(token, str))})
        more = more or _list(said, "additional_special_tokens")
    by_text = {token.content: token for token in numbered.values()}
    named: dict[str, Token | None] = {}
    for key, value in values.items():
        role = key.removesuffix("_token")
        named[role] = by_text.get(str(value), value) if role in ROLES else value
    return Stated(settings, dict(sorted(numbered.items())), named, tuple(more))


def add(tokenizer: Tokenizer, stated: Stated, named: Mapping[str, Token | None]) -> None:
    """Add them to a tokenizer that has its normalizer already: a token that is not special is normalized too."""
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
    """Tokens whose number in the files is not the one that the tokenizer gives them: text -> both. It closes gaps between numbers."""
    if tokenizer is None or (folder / "tokenizer.json").is_file():
        return {}
    found = {
        token.content: (number, tokenizer.token_to_id(token.content))
        for number, token in read_stated(folder).numbers.items()
    }
    return {text: (stated, given) for text, (stated, given) in found.items() if given is not None and given != stated}


def _older(folder: Path, special: set[str]) -> dict[int, AddedToken]:
    """The tokens that added_tokens.json numbers. A token that is not special is normalized like the text around it."""
    if not (folder / OLDER).is_file():
        return {}
    return {
        _whole(number, OLDER): AddedToken(text, normalized=text not in special, special=text in special)
        for text, number in read_json(folder / OLDER).items()
    }


def _whole(number: Any, where: str) -> int:
    """A token's number: a whole one, or the digits of one, as the keys of an object are."""
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number[:20])
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_WHOLE:
        raise CheckpointError(f"{where} numbers a token {shown(number)}, but it must be a whole number.")
    return number


def _named(said: Theirs) -> dict[str, Token | None]:
    """The tokens that have a role, and those of other names that end in _token."""
    found = {key: _token(value, said.where, key) for key, value in said.values.items() if key.endswith("_token")}
    return {key: token for key, token in found.items() if token is not None or key in ROLE_KEYS}


def _token(value: Any, where: str, key: str) -> Token | None:
    """A token as its text or as an object; None for null, and for a setting that is no token, such as add_bos_token."""
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
    """A token with its flags. `special` None: the object says whether it is."""
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: {shown(key)} is {shown(value)}, but it must be an object in braces.")
    said = Theirs(value, f"{where}: {shown(key)}")
    if special is None:
        special = said.bool("special", False)
    flags = {flag: said.bool(flag, False) for flag in FLAGS}
    return AddedToken(said.str("content"), **flags, normalized=said.bool("normalized", not special), special=special)


def _list(said: Theirs, key: str) -> list[Token]:
    """Special tokens without a role: a list, or an object that gives each a name."""
    values = said.any(key, [])
    values = list(values.values()) if isinstance(values, dict) else values
    if not isinstance(values, list):
        raise CheckpointError(f"{said.where}: {key} is {shown(values)}, but it must be a list of tokens.")
    found = [_token(value, said.where, key) for value in values]
    if None in found:
        raise CheckpointError(f"{said.where}: {key} must be a list of tokens, each in quotes or an object in braces.")
    return [token for token in found if token is not None]
