"""A tokenizer from the metadata of a GGUF file: the vocabulary is there, its rules are known by name."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ...errors import CheckpointError
from ...model.text import is_tokenizer_fault
from ..family import Theirs, shown
from .header import Header
from .pre_tokenizers import RULES, Rules

UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 2, 3, 4, 5, 6  # of tokenizer.ggml.token_type; 1 is a plain piece
SPACE = "▁"
MAX_PIECE_LENGTH = 512  # letters; no published piece that is merged comes near, and each letter is a place to cut it
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

    def list(self, key: str, kind: type) -> builtins.list[Any]:
        """A list with an entry for each token; empty where the file has none."""
        values = self.said.any(key, [])
        if not isinstance(values, list) or (values and not isinstance(values[0], kind)):
            raise CheckpointError(f"{self.said.where}.{key} is {shown(values)}, but it must be a list of numbers.")
        if values and len(values) != len(self.tokens):
            raise CheckpointError(
                f"{self.said.where}.{key} has {len(values):,} entries, but there are {len(self.tokens):,} tokens."
            )
        return values

    def of_type(self, *types: int) -> builtins.list[int]:
        return [i for i, kind in enumerate(self.types) if kind in types]

    def id(self, role: str) -> int | None:
        """The token of a role; None where the file names none, or one that the vocabulary does not have."""
        value = self.said.int(f"{role}_token_id", None)
        return value if value is not None and value < len(self.tokens) else None

    def merges(self) -> builtins.list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        for merge in self.said.strings("merges"):
            first, space, second = merge[1:].partition(" ")  # a piece may begin with a space
            if not space:
                raise CheckpointError(f"{self.said.where}.merges has {shown(merge)}, which is not two pieces.")
            pairs.append((merge[0] + first, second))
        return pairs

    def added(self) -> builtins.list[AddedToken]:
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
    """Why a model reads no text, in a sentence, as tokenizer_of() would say it; "" where it does. No tokenizer is made for that."""
    vocabulary = Vocabulary(header, n_rows)
    try:
        if _kind_of(vocabulary) is byte_level:
            _rules_of(vocabulary)
    except NotRead as reason:
        return f"{reason}, {NO_TEXT}"
    return ""


def _kind_of(vocabulary: Vocabulary) -> Callable[[Vocabulary], Tokenizer]:
    kind = vocabulary.said.str("model", "no_vocab")
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
    """How a byte-level vocabulary cuts a text."""
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
    return RULES[name]


def byte_level(vocabulary: Vocabulary) -> Tokenizer:
    """GPT-2's kind: pieces of bytes that are merged pair by pair (Radford et al. 2019, §2.2)."""
    rules = _rules_of(vocabulary)
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


def sentencepiece(vocabulary: Vocabulary) -> Tokenizer:
    """Llama's kind: pieces that are merged by their scores, bytes where there is none (Kudo & Richardson 2018, §3.1).

    Its merges are all ways to put a piece together from two others, those of the best piece first.
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
    spaced = vocabulary.said.bool("add_space_prefix", True)
    steps: list[normalizers.Normalizer] = [normalizers.Prepend(SPACE)] if spaced else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    back: list[decoders.Decoder] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)] if spaced else back)
    tokenizer.add_tokens(vocabulary.added())
    if (marks := vocabulary.marks(True, False)) is not None:
        tokenizer.post_processor = marks
    return tokenizer


def _merges_of(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    scores = vocabulary.list("scores", float)
    if not scores:
        raise NotRead("Its vocabulary has neither merges nor scores")
    if str(vocabulary.arch).startswith("gemma"):  # whose scores are not the order of its merges; that of its tokens is
        scores = [-float(i) for i in range(len(vocabulary.tokens))]
    ids, hidden = vocabulary.ids, {*vocabulary.of_type(UNKNOWN, CONTROL, UNUSED, BYTE)}
    found: list[tuple[float, int, int, tuple[str, str]]] = []
    for i, token in enumerate(vocabulary.tokens):
        if i in hidden or len(token) > MAX_PIECE_LENGTH:
            continue
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if ids.get(left, -1) not in hidden and ids.get(right, -1) not in hidden and left in ids and right in ids:
                found.append((-scores[i], -len(left), -len(right), (left, right)))
    found.sort(key=lambda each: each[:3])
    return [pair for *_, pair in found]


def wordpiece(vocabulary: Vocabulary) -> Tokenizer:
    """BERT's kind. llama.cpp writes a piece that begins a word with ▁ before it, and one inside a word without the ##."""
    hidden = {*vocabulary.of_type(UNKNOWN, CONTROL, USER_DEFINED, UNUSED)}

    def spelt(i: int, token: str) -> str:
        if i in hidden or (token.startswith("[") and token.endswith("]") and len(token) > 2):
            return token
        return token[1:] if token.startswith(SPACE) else f"##{token}"

    tokens = [spelt(i, token) for i, token in enumerate(vocabulary.tokens)]
    ids = {token: i for i, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise CheckpointError(f"{vocabulary.where} has pieces of words in its vocabulary that are the same.")
    named: dict[str, int | None] = {
        "[UNK]": vocabulary.id("unknown"),
        "[CLS]": _first(vocabulary.id("cls"), vocabulary.id("bos")),
        "[SEP]": _first(vocabulary.id("seperator"), vocabulary.id("eos")),  # as the format spells it
    }
    unknown, opening, closing = (_first(i, ids.get(text)) for text, i in named.items())
    if unknown is None or opening is None or closing is None:
        raise NotRead("Its vocabulary has no [UNK], [CLS] or [SEP]")
    # The format says nothing of capitals but in newer files: a vocabulary that has them reads them.
    plain = not any(token != token.lower() for i, token in enumerate(tokens) if i not in hidden and token[:1] != "[")
    lower = vocabulary.said.bool("normalizer.lowercase", plain)
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=tokens[unknown], max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=vocabulary.said.bool("normalizer.strip_accents", None),
        lowercase=lower,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_tokens(
        vocabulary.added() or [AddedToken(tokens[i], special=True) for i in (unknown, opening, closing)]
    )
    cls, sep = tokens[opening], tokens[closing]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[f"{cls}:0", "$A:0", f"{sep}:0"],
        pair=[f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"],
        special_tokens=[(cls, opening), (sep, closing)],
    )
    return tokenizer


def unigram(vocabulary: Vocabulary) -> Tokenizer:
    """T5's kind: the likeliest way to put a text together from pieces (Kudo 2018, arXiv:1804.10959)."""
    scores = vocabulary.list("scores", float)
    if not scores:
        raise NotRead("Its vocabulary has no scores")
    unknown = _first(vocabulary.id("unknown"), 2)
    tokenizer = Tokenizer(models.Unigram(list(zip(vocabulary.tokens, scores, strict=True)), unk_id=unknown))
    if charsmap := vocabulary.said.any("precompiled_charsmap", []):
        tokenizer.normalizer = normalizers.Precompiled(bytes(each % 256 for each in charsmap))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    tokenizer.add_tokens(vocabulary.added())
    if (marks := vocabulary.marks(False, True)) is not None:
        tokenizer.post_processor = marks
    return tokenizer


def _first(*ids: int | None) -> int | None:
    return next((i for i in ids if i is not None), None)


KINDS: Mapping[str, Callable[[Vocabulary], Tokenizer]] = {
    "gpt2": byte_level,
    "llama": sentencepiece,
    "bert": wordpiece,
    "t5": unigram,
}
