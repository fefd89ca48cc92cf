"""Builds a tokenizer from the metadata of a GGUF file."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ...errors import CheckpointError
from ...model.text import is_tokenizer_fault
from ..family import SourceConfig, shown
from ..tokenizer_files import MAX_PIECE_LENGTH, SPACE, bert_tokenizer, decode_spaces, surround, surround_bert
from . import Header

_CONTRACTED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTED}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_QWEN2 = rf"{_CONTRACTED}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+%s|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*%s"
    rf"|\p{{N}}%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
)
_TEKKEN = _CASED % ("", "", "")
_GPT4O = _CASED % (f"{_CONTRACTED}?", f"{_CONTRACTED}?", "{1,3}")


@dataclass(frozen=True)
class Rules:
    """Rules of a pre-tokenizer."""

    steps: Callable[[], list[pre_tokenizers.PreTokenizer]]
    whole_words: bool = False  # words in the vocabulary are never split (ignore_merges)
    opens: bool = False  # by default a text begins with BOS
    composed: bool = False  # characters are composed first (NFC)

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        return pre_tokenizers.Sequence(self.steps())

    def normalizer(self) -> normalizers.Normalizer | None:
        return normalizers.NFC() if self.composed else None


def _gpt2() -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.ByteLevel(add_prefix_space=False)]


def _single_digits() -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Digits(individual_digits=True), *_gpt2()]


def _cut(*patterns: str, digits: bool = False) -> Callable[[], list[pre_tokenizers.PreTokenizer]]:
    def steps() -> list[pre_tokenizers.PreTokenizer]:
        return [
            *(pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns),
            *([pre_tokenizers.Digits(individual_digits=True)] if digits else []),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]

    return steps


_LLAMA3_RULES = Rules(_cut(_LLAMA3), whole_words=True, opens=True)
_QWEN2_RULES = Rules(_cut(_QWEN2), composed=True)
RULES: dict[str, Rules] = {
    **dict.fromkeys(("gpt-2", "phi-2", "exaone4", "roberta-bpe"), Rules(_gpt2)),
    **dict.fromkeys(("olmo", "mpt"), Rules(_gpt2, composed=True)),  # GPT-NeoX's
    **dict.fromkeys(("smollm", "starcoder", "refact"), Rules(_single_digits)),
    "command-r": Rules(_single_digits, composed=True),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "midm-2.0"), _LLAMA3_RULES),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Rules(_cut(_LLAMA3))),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), _QWEN2_RULES),
    "stablelm2": Rules(_cut(_QWEN2)),
    "tekken": Rules(_cut(_TEKKEN), whole_words=True, opens=True),
    **dict.fromkeys(("gpt-4o", "kanana2"), Rules(_cut(_GPT4O))),
    "deepseek-coder": Rules(_cut(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", digits=True)),
    "deepseek-v3": Rules(
        _cut(
            r"\p{N}{1,3}",
            "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}",
        )
    ),
}


UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 2, 3, 4, 5, 6  # tokenizer.ggml.token_type; 1 is a normal piece
NO_TEXT = "so it reads token numbers only: ids=[...]."


class NotRead(Exception):
    """The vocabulary is not supported; the model opens without one."""


class Vocabulary:
    """Tokens of a file and their metadata. Raises CheckpointError if they are inconsistent."""

    def __init__(self, header: Header, n_rows: int):
        self.where = header.name
        self.metadata = SourceConfig(
            {k.removeprefix("tokenizer.ggml."): v for k, v in header.values.items() if k.startswith("tokenizer.ggml.")},
            f"{header.name}: tokenizer.ggml",
        )
        self.arch = header.values.get("general.architecture")
        tokens = list(self.metadata.strings("tokens"))
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

    def list(self, key: str, kind: type) -> builtins.list[Any]:
        """A list with one entry per token; empty if the file has none."""
        values = self.metadata.any(key, [])
        if not isinstance(values, list) or (values and not isinstance(values[0], kind)):
            raise CheckpointError(f"{self.metadata.where}.{key} is {shown(values)}, but it must be a list of numbers.")
        if values and len(values) != len(self.tokens):
            raise CheckpointError(
                f"{self.metadata.where}.{key} has {len(values):,} entries, but there are {len(self.tokens):,} tokens."
            )
        return values

    def of_type(self, *types: int) -> builtins.list[int]:
        return [i for i, kind in enumerate(self.types) if kind in types]

    def id(self, role: str) -> int | None:
        """The token of a role; None if the file names none, or one outside of the vocabulary."""
        value = self.metadata.int(f"{role}_token_id", None)
        return value if value is not None and value < len(self.tokens) else None

    def merges(self) -> builtins.list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        for merge in self.metadata.strings("merges"):
            first, space, second = merge[1:].partition(" ")  # a piece may begin with a space
            if not space:
                raise CheckpointError(f"{self.metadata.where}.merges has {shown(merge)}, which is not two pieces.")
            pairs.append((merge[0] + first, second))
        return pairs

    def added(self) -> builtins.list[AddedToken]:
        """Tokens that are matched before a text is split. Control tokens are special."""
        spaced = self.arch == "phi3"  # its turn tokens absorb the following spaces
        return [
            AddedToken(
                self.tokens[i],
                special=self.types[i] != USER_DEFINED,
                normalized=False,
                rstrip=spaced and self.types[i] == CONTROL and self.tokens[i] not in ("<unk>", "<s>", "<|endoftext|>"),
            )
            for i in self.of_type(UNKNOWN, CONTROL, USER_DEFINED)
        ]

    def surround(self, tokenizer: Tokenizer, *, opens: bool, closes: bool) -> Tokenizer:
        """Put BOS before a text and EOS after it, as in the file, or else by the defaults `opens` and `closes`."""
        bos, eos = self.id("bos"), self.id("eos")
        before = [self.tokens[bos]] if self.metadata.bool("add_bos_token", opens) and bos is not None else []
        after = [self.tokens[eos]] if self.metadata.bool("add_eos_token", closes) and eos is not None else []
        return surround(tokenizer, before, after)


def tokenizer_of(header: Header, n_rows: int) -> tuple[Tokenizer | None, str]:
    """The tokenizer of a model with `n_rows` rows in its token table, or None and the reason if it is not supported.

    Raises CheckpointError if the vocabulary is inconsistent or does not fit the model.
    """
    vocabulary = Vocabulary(header, n_rows)
    try:
        tokenizer = _kind_of(vocabulary)(vocabulary)
    except NotRead as reason:
        return None, f"{reason}, {NO_TEXT}"
    except BaseException as error:  # the tokenizers package raises Exception itself, and panics
        if isinstance(error, CheckpointError) or not (isinstance(error, Exception) or is_tokenizer_fault(error)):
            raise
        raise CheckpointError(f"{header.name} has a vocabulary that makes no tokenizer ({error}).") from error
    if tokenizer.get_vocab_size() != len(vocabulary.tokens):
        raise CheckpointError(f"{header.name} has a vocabulary whose tokens do not keep their numbers.")
    return tokenizer, ""


def without_text(header: Header, n_rows: int) -> str:
    """The reason of tokenizer_of() without building a tokenizer; "" if the vocabulary is supported."""
    vocabulary = Vocabulary(header, n_rows)
    try:
        if _kind_of(vocabulary) is byte_level:
            _rules_of(vocabulary)
    except NotRead as reason:
        return f"{reason}, {NO_TEXT}"
    return ""


def _kind_of(vocabulary: Vocabulary) -> Callable[[Vocabulary], Tokenizer]:
    kind = vocabulary.metadata.str("model", "no_vocab")
    if kind not in KINDS:
        raise NotRead(
            "It has no vocabulary"
            if kind in ("no_vocab", "none")
            else f"Its vocabulary is of the kind {shown(kind)}, which is not read here (read are {', '.join(KINDS)})"
        )
    if not vocabulary.tokens:
        raise NotRead("It has no vocabulary")
    return KINDS[kind]


def _rules_of(vocabulary: Vocabulary) -> Rules:
    """Pre-tokenizer rules of a byte-level vocabulary."""
    name = vocabulary.metadata.str("pre", "gpt-2" if vocabulary.arch == "gpt2" else "default")
    if name not in RULES:
        raise NotRead(
            (
                "It does not say which pre-tokenizer cuts a text before its words are looked up"
                if name == "default"
                else f"It names the pre-tokenizer {shown(name)}, which is not known here (known are {', '.join(sorted(RULES))})"
            )
            + ", and another one would give other tokens"
        )
    return RULES[name]


def byte_level(vocabulary: Vocabulary) -> Tokenizer:
    """GPT-2's kind: byte pieces, merged pair by pair (Radford et al. 2019, §2.2)."""
    rules = _rules_of(vocabulary)
    tokenizer = Tokenizer(
        models.BPE(vocabulary.ids, vocabulary.merges(), ignore_merges=rules.whole_words, fuse_unk=False)
    )
    if (normalizer := rules.normalizer()) is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = rules.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(vocabulary.added())
    return vocabulary.surround(tokenizer, opens=rules.opens, closes=False)


def sentencepiece(vocabulary: Vocabulary) -> Tokenizer:
    """Llama's kind: pieces merged by their scores, with bytes as a fallback (Kudo & Richardson 2018, §3.1).

    Merges are all splits of a piece into two others, ordered by the score of the piece.
    """
    byte_pieces = vocabulary.of_type(BYTE)
    unknown = vocabulary.id("unknown")
    tokenizer = Tokenizer(
        models.BPE(
            vocabulary.ids,
            vocabulary.merges() or _merges_of(vocabulary),
            unk_token=None if unknown is None else vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=bool(byte_pieces),
        )
    )
    spaced = vocabulary.metadata.bool("add_space_prefix", True)
    steps: list[normalizers.Normalizer] = [normalizers.Prepend(SPACE)] if spaced else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decode_spaces(strips=spaced)
    tokenizer.add_tokens(vocabulary.added())
    return vocabulary.surround(tokenizer, opens=True, closes=False)


def _merges_of(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    scores = vocabulary.list("scores", float)
    if not scores:
        raise NotRead("Its vocabulary has neither merges nor scores")
    if str(vocabulary.arch).startswith("gemma"):  # merges follow the order of its tokens, not their scores
        scores = [-float(i) for i in range(len(vocabulary.tokens))]
    hidden = {*vocabulary.of_type(UNKNOWN, CONTROL, UNUSED, BYTE)}
    pieces = {token: i for token, i in vocabulary.ids.items() if i not in hidden}
    merges = [
        (-scores[i], -cut, cut - len(token), (token[:cut], token[cut:]))
        for token, i in pieces.items()
        if len(token) <= MAX_PIECE_LENGTH
        for cut in range(1, len(token))
        if token[:cut] in pieces and token[cut:] in pieces
    ]
    merges.sort(key=lambda each: each[:3])
    return [pair for *_, pair in merges]


def wordpiece(vocabulary: Vocabulary) -> Tokenizer:
    """BERT's kind. llama.cpp marks a piece at the beginning of a word with ▁, and removes the ## of the others."""
    hidden = {*vocabulary.of_type(UNKNOWN, CONTROL, USER_DEFINED, UNUSED)}

    def spelling(i: int, token: str) -> str:
        if i in hidden or (token.startswith("[") and token.endswith("]") and len(token) > 2):
            return token
        return token[1:] if token.startswith(SPACE) else f"##{token}"

    tokens = [spelling(i, token) for i, token in enumerate(vocabulary.tokens)]
    ids = {token: i for i, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise CheckpointError(f"{vocabulary.where} has pieces of words in its vocabulary that are the same.")
    named: dict[str, int | None] = {
        "[UNK]": vocabulary.id("unknown"),
        "[CLS]": _first(vocabulary.id("cls"), vocabulary.id("bos")),
        "[SEP]": _first(vocabulary.id("seperator"), vocabulary.id("eos")),  # sic
    }
    unknown, opening, closing = (_first(i, ids.get(text)) for text, i in named.items())
    if unknown is None or opening is None or closing is None:
        raise NotRead("Its vocabulary has no [UNK], [CLS] or [SEP]")
    # Only newer files state whether texts are lower-cased; otherwise a vocabulary without capitals is.
    plain = not any(token != token.lower() for i, token in enumerate(tokens) if i not in hidden and token[:1] != "[")
    tokenizer = bert_tokenizer(
        ids,
        tokens[unknown],
        lowercase=vocabulary.metadata.bool("normalizer.lowercase", plain),
        strip_accents=vocabulary.metadata.bool("normalizer.strip_accents", None),
    )
    tokenizer.add_tokens(
        vocabulary.added() or [AddedToken(tokens[i], special=True) for i in (unknown, opening, closing)]
    )
    return surround_bert(tokenizer, tokens[opening], tokens[closing])


def unigram(vocabulary: Vocabulary) -> Tokenizer:
    """T5's kind: splits a text into the most likely pieces (Kudo 2018, arXiv:1804.10959)."""
    scores = vocabulary.list("scores", float)
    if not scores:
        raise NotRead("Its vocabulary has no scores")
    unknown = _first(vocabulary.id("unknown"), 2)
    tokenizer = Tokenizer(models.Unigram(list(zip(vocabulary.tokens, scores, strict=True)), unk_id=unknown))
    if charsmap := vocabulary.metadata.any("precompiled_charsmap", []):
        tokenizer.normalizer = normalizers.Precompiled(bytes(each % 256 for each in charsmap))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    tokenizer.add_tokens(vocabulary.added())
    return vocabulary.surround(tokenizer, opens=False, closes=True)


def _first(*ids: int | None) -> int | None:
    return next((i for i in ids if i is not None), None)


KINDS: Mapping[str, Callable[[Vocabulary], Tokenizer]] = {
    "gpt2": byte_level,
    "llama": sentencepiece,
    "bert": wordpiece,
    "t5": unigram,
}
