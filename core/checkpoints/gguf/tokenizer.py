"""A tokenizer from the metadata of a GGUF file: the vocabulary is there, its rules are known by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, processors

from ...errors import CheckpointError
from ..family import Theirs, shown
from .header import Header
from .pre_tokenizers import RULES

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # of tokenizer.ggml.token_type; 1 is a plain piece, 5 unused, 6 a byte
NO_TEXT = "so it reads token numbers only: ids=[...]."


class NotRead(Exception):
    """Why a vocabulary is not read, in a sentence: the model opens without one."""


class Vocabulary:
    """The tokens of a file and what it says of them. Raises CheckpointError where it contradicts itself."""

    def __init__(self, header: Header, n_rows: int):
        self.where = header.name
        self.said = Theirs(
            {k.removeprefix("tokenizer.ggml."): v for k, v in header.values.items() if k.startswith("tokenizer.ggml.")},
            f"{header.name}: tokenizer.ggml",
        )
        self.arch = header.values.get("general.architecture")
        tokens = list(self.said.strings("tokens"))
        if len(tokens) > n_rows:
            raise CheckpointError(
                f"{header.name} has {len(tokens):,} tokens, but token_embd.weight has rows for {n_rows:,} of them."
            )
        tokens = [token or f"[EMPTY_{i}]" for i, token in enumerate(tokens)]
        self.ids = {token: i for i, token in enumerate(tokens)}
        if len(self.ids) < len(tokens):
            twin = next(token for i, token in enumerate(tokens) if self.ids[token] != i)
            raise CheckpointError(f"{header.name} has the token {shown(twin)} twice in its vocabulary.")
        self.tokens = tokens
        self.types: list[Any] = self.list("token_type", int)

    def list(self, key: str, kind: type) -> list[Any]:
        """A list with an entry for each token; empty where the file has none."""
        values = self.said.any(key, [])
        if not isinstance(values, list) or (values and not isinstance(values[0], kind)):
            raise CheckpointError(f"{self.said.where}.{key} is {shown(values)}, but it must be a list of numbers.")
        if values and len(values) != len(self.tokens):
            raise CheckpointError(
                f"{self.said.where}.{key} has {len(values):,} entries, but there are {len(self.tokens):,} tokens."
            )
        return values

    def of_type(self, *types: int) -> list[int]:
        return [i for i, kind in enumerate(self.types) if kind in types]

    def id(self, role: str) -> int | None:
        """The token of a role; None where the file names none, or one that the vocabulary does not have."""
        value = self.said.int(f"{role}_token_id", None)
        return value if value is not None and value < len(self.tokens) else None

    def merges(self) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        for merge in self.said.strings("merges"):
            first, space, second = merge[1:].partition(" ")  # a piece may begin with a space
            if not space:
                raise CheckpointError(f"{self.said.where}.merges has {shown(merge)}, which is not two pieces.")
            pairs.append((merge[0] + first, second))
        return pairs

    def added(self) -> list[AddedToken]:
        """Tokens that are found in a text before it is divided. Those of the model's format are special."""
        spaced = self.arch == "phi3"  # whose marks of a turn take the spaces after them along
        return [
            AddedToken(
                self.tokens[i],
                special=self.types[i] != USER_DEFINED,
                normalized=False,
                rstrip=spaced and self.types[i] == CONTROL and self.tokens[i] not in ("<unk>", "<s>", "<|endoftext|>"),
            )
            for i in self.of_type(UNKNOWN, CONTROL, USER_DEFINED)
        ]

    def marks(self, opens: bool, closes: bool) -> processors.PostProcessor | None:
        """BOS before a text and EOS after it, as the file says or else as is usual for its kind."""
        bos, eos = self.id("bos"), self.id("eos")
        before = [bos] if self.said.bool("add_bos_token", opens) and bos is not None else []
        after = [eos] if self.said.bool("add_eos_token", closes) and eos is not None else []
        if not before and not after:
            return None
        named = {f"{self.tokens[i]}": i for i in (*before, *after)}
        return processors.TemplateProcessing(
            single=[*(self.tokens[i] for i in before), "$A", *(self.tokens[i] for i in after)],
            pair=[
                *(self.tokens[i] for i in before),
                "$A",
                *(self.tokens[i] for i in after),
                *(f"{self.tokens[i]}:1" for i in before),
                "$B:1",
                *(f"{self.tokens[i]}:1" for i in after),
            ],
            special_tokens=list(named.items()),
        )


def tokenizer_of(header: Header, n_rows: int) -> tuple[Tokenizer | None, str]:
    """The tokenizer of a model with `n_rows` rows in its token table, and why there is none, in a sentence, where it is not read.

    Raises CheckpointError where the vocabulary contradicts itself or the model.
    """
    vocabulary = Vocabulary(header, n_rows)
    kind = vocabulary.said.str("model", "no_vocab")
    try:
        if kind not in KINDS:
            raise NotRead(
                "It has no vocabulary"
                if kind in ("no_vocab", "none")
                else f"Its vocabulary is of the kind {shown(kind)}, which is not read here (read are {', '.join(KINDS)})"
            )
        if not vocabulary.tokens:
            raise NotRead("It has no vocabulary")
        tokenizer = KINDS[kind](vocabulary)
    except NotRead as reason:
        return None, f"{reason}, {NO_TEXT}"
    except CheckpointError:
        raise
    except Exception as error:  # the tokenizers package raises Exception itself
        raise CheckpointError(f"{header.name} has a vocabulary that makes no tokenizer ({error}).") from error
    if (tokenizer.get_vocab_size()) != len(vocabulary.tokens):
        raise CheckpointError(f"{header.name} has a vocabulary whose tokens do not keep their numbers.")
    return tokenizer, ""


def byte_level(vocabulary: Vocabulary) -> Tokenizer:
    """GPT-2's kind: pieces of bytes that are merged pair by pair (Radford et al. 2019, §2.2)."""
    name = vocabulary.said.str("pre", "gpt-2" if vocabulary.arch == "gpt2" else "default")
    if name not in RULES:
        raise NotRead(
            (
                "It does not say which pre-tokenizer cuts a text before its words are looked up"
                if name == "default"
                else f"It names the pre-tokenizer {shown(name)}, which is not known here (known are {', '.join(sorted(RULES))})"
            )
            + ", and another one would give other tokens"
        )
    rules = RULES[name]
    tokenizer = Tokenizer(
        models.BPE(vocabulary.ids, vocabulary.merges(), ignore_merges=rules.whole_words, fuse_unk=False)
    )
    if (normalizer := rules.normalizer()) is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = rules.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(vocabulary.added())
    if (marks := vocabulary.marks(rules.opens, False)) is not None:
        tokenizer.post_processor = marks
    return tokenizer


KINDS: Mapping[str, Any] = {"gpt2": byte_level}
