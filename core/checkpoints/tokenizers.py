"""Builds the tokenizer of a folder from tokenizer.json or from the files of older tokenizers."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import CheckpointError
from ..model.text import is_tokenizer_fault
from .files import MAX_JSON, read_json
from .tokenizer_files import (
    CONTROL,
    MAX_FILE,
    NEVER,
    NORMAL,
    SPACE,
    TARGET,
    UNKNOWN,
    Piece,
    Prefix,
    SentencePieceModel,
    Stated,
    Token,
    add,
    bert_tokenizer,
    read_sentencepiece,
    read_stated,
    surround,
    surround_bert,
    tokenizer_of,
    unread_rule,
)

BEGUN = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
SOURCE, TARGET_FILE, VOCAB = "source.spm", "target.spm", "vocab.json"  # of Marian
TRANSLATORS = ("mbart", "m2m_100")  # multilingual: each text has the code of its language
FIRST_CODES = {"mbart": "en_XX", "m2m_100": "__en__", "nllb": "eng_Latn"}  # default languages
OF_25 = 25  # languages of the first mBART, which puts the code after the text; later models put it first
# Families with the ids of the file, whose texts begin with a special token.
OPENED = (
    *("llama", "mistral", "mixtral", "ministral", "gemma", "gemma2", "gemma3_text", "phi3", "helium", "minicpm3"),
    *("internlm2", "deepseek_v2", "seed_oss", "qwen2", "ernie4_5"),
)
# Published pre-tokenizer patterns of families with byte-rank vocabularies.
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
RANKED = {"llama": LLAMA3, **dict.fromkeys(("qwen2", "qwen3"), LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"))}
LLAMA3_MARKS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    *(f"<|reserved_special_token_{i}|>" for i in range(4)),
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|reserved_special_token_4|>",
    "<|eot_id|>",
    *(f"<|reserved_special_token_{i}|>" for i in range(5, 251)),
)
QWEN_MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
RANK = re.compile(rb"([A-Za-z0-9+/]+={0,2}) (\d{1,9})")


FAIRSEQ_MARKS = ("<s>", "<pad>", "</s>", "<unk>")
BERT_ROLES: dict[str, Token] = {"bos": "[CLS]", "eos": "[SEP]", "sep": "[SEP]", "cls": "[CLS]"}


def from_sentencepiece(folder: Path, model_type: str) -> Tokenizer | None:
    """The tokenizer of a folder with such a file; None if there is none, or if its rules are not supported.

    Raises CheckpointError naming a damaged file.
    """
    if model_type == "marian" and (folder / SOURCE).is_file() and (folder / VOCAB).is_file():
        return _marian(folder)
    known = model_type in (*BUILDERS, *TRANSLATORS, *RANKED)
    files = [
        path for path in (*sorted(folder.glob("*.tiktoken")), *(folder / name for name in BEGUN)) if path.is_file()
    ]
    if not files or not (known or files[0].suffix == ".tiktoken"):
        return None
    if files[0].suffix == ".tiktoken" or _is_ranks(files[0]):
        return _ranked(files[0], read_stated(folder), model_type)
    model = read_sentencepiece(files[0])
    if unread_rule(model):
        return None
    if model_type in TRANSLATORS:
        return _translator(folder, model, read_stated(folder), model_type)
    return BUILDERS[model_type](model, read_stated(folder)) if model_type in BUILDERS else None


def _roles(model: SentencePieceModel) -> dict[str, Token]:
    """Tokens that have a role in the file."""
    ids = {"bos": model.bos_id, "eos": model.eos_id, "unk": model.unk_id, "pad": model.pad_id}
    return {role: text for role, i in ids.items() if (text := model.piece(i)) is not None}


def _opened(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    tokenizer = tokenizer_of(model, prefix=_prefix(stated) if model.dummy_prefix else None)
    named = stated.named_or(_roles(model))
    add(tokenizer, stated, named)
    opens, closes = stated.settings.bool("add_bos_token", True), stated.settings.bool("add_eos_token", False)
    before = [str(named["bos"])] if opens and named.get("bos") is not None else []
    after = [str(named["eos"])] if closes and named.get("eos") is not None else []
    return surround(tokenizer, before, after)


def _prefix(stated: Stated) -> Prefix:
    """Whether a space is added before a text, as in LlamaTokenizer of transformers 5."""
    if not stated.settings.bool("add_prefix_space", True):
        return "never"
    return "always" if stated.settings.bool("legacy", False) else "first"


def _joined(tokenizer: Tokenizer, stated: Stated) -> Tokenizer:
    """With add_prefix_space=false, the tokenizers of XLM-RoBERTa and ALBERT drop the spaces between words."""
    if not stated.settings.bool("add_prefix_space", True):
        tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE, "removed")
    return tokenizer


def _t5(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Raffel et al. 2020: an end token, and sentinels after the vocabulary in reverse order."""
    tokenizer = tokenizer_of(model)
    if not stated.numbers:
        n = stated.settings.int("extra_ids", 100)
        if n > 1000:
            raise CheckpointError(f"{stated.settings.where}: extra_ids is {n}, and at most 1000 are supported.")
        tokenizer.add_tokens([AddedToken(f"<extra_id_{i}>", special=True) for i in reversed(range(n))])
    named = stated.named_or(_roles(model))
    add(tokenizer, stated, named)
    return surround(tokenizer, [], [str(named["eos"])])


def _fairseq_pieces(model: SentencePieceModel, last: Iterable[str]) -> tuple[Piece, ...]:
    """fairseq's four special tokens, the other pieces, each with the next id, and the tokens `last`."""
    first = (Piece(text, 0.0, UNKNOWN if text == "<unk>" else CONTROL) for text in FAIRSEQ_MARKS)
    return (*first, *model.pieces[3:], *(Piece(text, 0.0, CONTROL) for text in last))


def _fairseq(model: SentencePieceModel, stated: Stated, *, is_xglm: bool) -> Tokenizer:
    pieces = _fairseq_pieces(model, [f"<madeupword{i}>" for i in range(7)] if is_xglm else ["<mask>"])
    tokenizer = _joined(tokenizer_of(model, before=pieces), stated)
    roles: dict[str, Token] = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "sep": "</s>", "pad": "<pad>", "cls": "<s>"}
    if not is_xglm:
        roles["mask"] = AddedToken("<mask>", lstrip=True, special=True)
    add(tokenizer, stated, stated.named_or(roles))
    if is_xglm:
        return surround(tokenizer, ["</s>"], [])
    marks = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=marks
    )
    return tokenizer


def _pegasus(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Zhang et al. 2020, arXiv:1912.08777: tokens of the training precede the file's pieces, and a text ends with an end token."""
    offset = stated.settings.int("offset", 103)
    if not 2 < offset <= 1000:
        raise CheckpointError(f"{stated.settings.where}: offset is {offset}, and 3 to 1000 are supported.")
    marks = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, offset)))
    first = (Piece(text, 0.0, CONTROL) for text in marks)
    tokenizer = tokenizer_of(model, before=(*first, *model.pieces[2:]))
    named = stated.named_or({"eos": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask_2>"})
    add(tokenizer, stated, named)
    return surround(tokenizer, [], [str(named["eos"])])


def _translator(folder: Path, model: SentencePieceModel, stated: Stated, model_type: str) -> Tokenizer | None:
    """mBART (Liu et al. 2020, arXiv:2001.08210), M2M100 (Fan et al. 2020, arXiv:2010.11125) and NLLB (2022, arXiv:2207.04672).

    Language codes follow the vocabulary, in the order of the folder's list. The code of `src_lang` is put before a text or after its
    end. None if the folder lists no languages.
    """
    codes = _language_codes(stated)
    if not codes:
        return None
    roles: dict[str, Token] = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "sep": "</s>", "pad": "<pad>"}
    kind = "nllb" if model_type == "m2m_100" and not (folder / VOCAB).is_file() else model_type
    if kind == "m2m_100":
        pieces = (*_vocab_pieces(folder, model), *(Piece(text, 0.0, CONTROL) for text in codes))
    else:
        pieces = _fairseq_pieces(model, [*codes, "<mask>"])
        roles |= {"cls": "<s>", "mask": AddedToken("<mask>", lstrip=True, special=True)}
    tokenizer = tokenizer_of(model, before=pieces)
    add(tokenizer, stated, stated.named_or(roles))
    language = stated.settings.str("src_lang", "") or FIRST_CODES[kind]
    code = f"__{language}__" if kind == "m2m_100" and not language.startswith("__") else language
    if tokenizer.token_to_id(code) is None or code not in codes:
        raise CheckpointError(
            f"{stated.settings.where}: src_lang is {language}, which is none of the folder's languages."
        )
    is_after = len(codes) == OF_25 if kind == "mbart" else stated.settings.bool("legacy_behaviour", False)
    return surround(tokenizer, [], ["</s>", code]) if is_after else surround(tokenizer, [code], ["</s>"])


def _language_codes(stated: Stated) -> list[str]:
    texts = [str(token) for token in (*stated.numbers.values(), *stated.more)]
    return [text for text in dict.fromkeys(texts) if text not in (*FAIRSEQ_MARKS, "<mask>")]


def _vocab_pieces(folder: Path, model: SentencePieceModel) -> tuple[Piece, ...]:
    """The pieces in vocab.json by number, with the scores of the model."""
    scores = {piece.text: piece.score for piece in model.pieces if piece.type == NORMAL}
    return tuple(_marian_piece(text, scores) for text in _by_number(read_json(folder / VOCAB)))


def _by_number(vocab: dict[str, Any]) -> list[str]:
    """Pieces of a vocab.json in the order of their numbers."""
    texts = sorted(vocab, key=lambda text: vocab[text] if isinstance(vocab[text], int) else -1)
    if [vocab[text] for text in texts] != list(range(len(texts))) or "<unk>" not in vocab or "</s>" not in vocab:
        raise CheckpointError(
            f"{VOCAB} must number its pieces from 0 without a gap, <unk> and </s> among them. Download it again."
        )
    return texts


def _albert(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Lan et al. 2020; by default texts are lower-cased and accents removed."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not stated.settings.bool("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if stated.settings.bool("do_lower_case", True):
        steps.append(normalizers.Lowercase())
    tokenizer = _joined(tokenizer_of(model, steps=tuple(steps)), stated)
    mask = AddedToken("[MASK]", lstrip=True, special=True)
    return _between(tokenizer, stated, BERT_ROLES | {"unk": "<unk>", "pad": "<pad>", "mask": mask})


def _deberta(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """DebertaV2Tokenizer of transformers 5: the file's pieces with its own character rules. [MASK] follows the vocabulary."""
    tokenizer = tokenizer_of(replace(model, byte_fallback=False))
    steps: list[normalizers.Normalizer] = []
    if stated.settings.bool("do_lower_case", False):
        steps.append(normalizers.Lowercase())
    steps += [normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(), normalizers.Strip(left=False)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    prefix = "always" if stated.settings.bool("add_prefix_space", True) else "first"
    cuts = [pre_tokenizers.Punctuation("isolated")] if stated.settings.bool("split_by_punct", False) else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.Metaspace(SPACE, prepend_scheme=prefix)])
    tokenizer.decoder = decoders.Metaspace(SPACE, prepend_scheme=prefix)
    return _between(tokenizer, stated, BERT_ROLES | {"unk": "[UNK]", "pad": "[PAD]", "mask": "[MASK]"})


def _between(tokenizer: Tokenizer, stated: Stated, roles: Mapping[str, Token]) -> Tokenizer:
    """Add the tokens, and BERT's special tokens around a text and between two."""
    named = stated.named_or(roles)
    add(tokenizer, stated, named)
    return surround_bert(tokenizer, str(named["cls"]), str(named["sep"]))


def _marian(folder: Path) -> Tokenizer | None:
    """Marian splits a text by source.spm and numbers the pieces by vocab.json, which includes those of the target."""
    model = read_sentencepiece(folder / SOURCE)
    pieces = _vocab_pieces(folder, model)
    if unread_rule(model):
        return None
    tokenizer, stated = tokenizer_of(model, before=pieces), read_stated(folder)
    named = stated.named_or({"eos": "</s>", "unk": "<unk>", "pad": "<pad>"})
    add(tokenizer, stated, named)
    return surround(tokenizer, [], [str(named["eos"])])


def _marian_piece(text: str, scores: dict[str, float]) -> Piece:
    if text == "<unk>":
        return Piece(text, 0.0, UNKNOWN)
    if text in ("</s>", "<pad>", "<s>") or (text.startswith(">>") and text.endswith("<<")):
        return Piece(text, 0.0, CONTROL)
    return Piece(text, scores[text]) if text in scores else Piece(text, NEVER, TARGET)


def marian_notices(folder: Path, model_type: str) -> tuple[str, ...]:
    """Notices about a Marian folder for which published code may return other ids."""
    has_files = (folder / SOURCE).is_file() and (folder / VOCAB).is_file()
    if model_type != "marian" or (folder / "tokenizer.json").is_file() or not has_files:
        return ()
    vocab = read_json(folder / VOCAB)
    lost = [p.text for p in read_sentencepiece(folder / SOURCE).pieces if p.type == NORMAL and p.text not in vocab]
    notices = [f"A text for the decoder is cut by {SOURCE} too, and {TARGET_FILE} is not read."]
    if lost:
        notices.append(
            f"{SOURCE} has {len(lost):,} pieces that {VOCAB} does not number, such as {lost[0]}: smaller pieces are read in their place, "
            "where published code reads <unk>."
        )
    return tuple(notices)


def _is_ranks(path: Path) -> bool:
    with path.open("rb") as file:
        return RANK.fullmatch(file.readline(4096).rstrip(b"\r\n")) is not None


def _ranked(path: Path, stated: Stated, model_type: str) -> Tokenizer | None:
    """A vocabulary in tiktoken's format: each line has a piece in base64, and its rank, which is its id and its priority in merging."""
    if model_type not in RANKED:
        return None  # the pre-tokenizer is unknown
    ranks = _ranks(path)
    letters = _bytes_as_letters()
    spelling = {piece: "".join(letters[byte] for byte in piece) for piece in ranks}
    merges = _byte_merges(ranks, spelling)
    vocab = {spelling[piece]: rank for piece, rank in ranks.items()}
    # A word that is a piece is not merged, as in tiktoken.
    tokenizer = Tokenizer(models.BPE(vocab, merges, fuse_unk=False, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(RANKED[model_type]), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    is_llama = model_type == "llama"
    if not stated.numbers:
        marks = LLAMA3_MARKS if is_llama else QWEN_MARKS
        tokenizer.add_tokens([AddedToken(text, special=True, normalized=False) for text in marks])
    roles = {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"} if is_llama else {"eos": "<|endoftext|>"}
    named = stated.named_or(roles)
    add(tokenizer, stated, named)
    return surround(tokenizer, [str(named["bos"])] if is_llama and named.get("bos") is not None else [], [])


def _byte_merges(ranks: Mapping[bytes, int], spelling: Mapping[bytes, str]) -> list[tuple[str, str]]:
    """All splits of a piece into two others, ordered by the rank of the piece and of its first part."""
    merges = [
        (ranks[piece], ranks[piece[:cut]], spelling[piece[:cut]], spelling[piece[cut:]])
        for piece in ranks
        for cut in range(1, len(piece))
        if piece[:cut] in ranks and piece[cut:] in ranks
    ]
    merges.sort(key=lambda each: each[:2])
    return [each[2:] for each in merges]


def _ranks(path: Path) -> dict[bytes, int]:
    if path.stat().st_size > MAX_FILE:
        raise CheckpointError(f"{path.name} is larger than {MAX_FILE >> 20} MB, which no published one is.")
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line:
            continue
        match = RANK.fullmatch(line)
        try:
            piece = base64.b64decode(match[1], validate=True) if match else b""
        except binascii.Error:
            piece = b""
        if not match or not piece or piece in ranks:
            raise CheckpointError(
                f"{path.name}: line {number} is not a new piece in base64 and its number. Download the file again."
            )
        ranks[piece] = int(match[2])
    if sorted(ranks.values()) != list(range(len(ranks))):
        raise CheckpointError(f"{path.name} must number its pieces from 0 without a gap. Download the file again.")
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise CheckpointError(f"{path.name} has no piece for the byte {missing[0]}. Download the file again.")
    return ranks


def _bytes_as_letters() -> dict[int, str]:
    """GPT-2's character for each byte: the byte itself if it is printable, otherwise one from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


# Translators need the folder as well.
BUILDERS: Mapping[str, Callable[[SentencePieceModel, Stated], Tokenizer]] = {
    **dict.fromkeys(OPENED, _opened),
    **dict.fromkeys(("t5", "mt5", "umt5"), _t5),
    "xlm-roberta": partial(_fairseq, is_xglm=False),
    "xglm": partial(_fairseq, is_xglm=True),
    "albert": _albert,
    "pegasus": _pegasus,
    "deberta-v2": _deberta,
}


BYTE_LEVEL = ("gpt2", "opt", "roberta", "bart")  # families fully defined by vocab.json and merges.txt
NAMED = {  # default tokens of a family by role
    "gpt2": dict.fromkeys(("bos", "eos", "unk"), "<|endoftext|>"),
    "opt": {"bos": "</s>", "eos": "</s>", "unk": "<unk>", "pad": "<pad>"},
    "roberta": dict(bos="<s>", eos="</s>", unk="<unk>", sep="</s>", pad="<pad>", cls="<s>", mask="<mask>"),
}


def read_tokenizer(folder: Path, model_type: str) -> Tokenizer | None:
    """The tokenizer, without truncation; None if the files are missing or of an unsupported kind.

    Raises CheckpointError naming a damaged file.
    """
    if (folder / "tokenizer.json").is_file():
        return _built("tokenizer.json", lambda: Tokenizer.from_str(_text(folder / "tokenizer.json")))
    if (folder / "vocab.txt").is_file():
        return _built("vocab.txt", lambda: wordpiece(folder, read_stated(folder)))
    if model_type in BYTE_LEVEL and (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _built("vocab.json with merges.txt", lambda: byte_level(folder, read_stated(folder), model_type))
    tokenizer = from_sentencepiece(folder, model_type)
    return None if tokenizer is None else plain(tokenizer)


def _built(what: str, make: Callable[[], Tokenizer]) -> Tokenizer:
    try:
        return plain(make())
    except BaseException as error:
        if isinstance(error, CheckpointError) or not (isinstance(error, ValueError) or is_tokenizer_fault(error)):
            raise
        raise CheckpointError(f"{what} is not a tokenizer that can be read ({error}). Download it again.") from error


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """Switch off truncation and padding once, because a shared tokenizer must not be changed later."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_JSON:
            raise CheckpointError(
                f"{path.name} is larger than {MAX_JSON >> 20} MB, which no published file of that name is."
            )
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name} cannot be read as text. Download it again.") from error


def wordpiece(folder: Path, stated: Stated) -> Tokenizer:
    """BERT's tokenizer, from one piece per line."""
    vocab = {line.rstrip("\r\n"): i for i, line in enumerate(_text(folder / "vocab.txt").rstrip("\n").split("\n"))}
    named = stated.named_or({role: f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")})
    needed = {role: str(named[role] or f"[{role.upper()}]") for role in ("unk", "cls", "sep")}
    for role, name in needed.items():
        if name not in vocab and (role == "unk" or not stated.has(role, name)):
            raise CheckpointError(f"vocab.txt has no {name}, which BERT's tokenizer needs.")
    unk, cls, sep = needed.values()
    settings = stated.settings
    tokenizer = bert_tokenizer(
        vocab,
        unk,
        lowercase=settings.bool("do_lower_case", True),
        strip_accents=settings.bool("strip_accents", None),
        chinese=settings.bool("tokenize_chinese_chars", True),
    )
    add(tokenizer, stated, named)
    return surround_bert(tokenizer, cls, sep)


def byte_level(folder: Path, stated: Stated, model_type: str) -> Tokenizer:
    """GPT-2's byte-level tokenizer (Radford et al. 2019, §2.2), with the family's special tokens around a text.

    Defaults are those of transformers, and for OPT those of its published files, since transformers treats it as a GPT-2.
    """
    settings = stated.settings
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    spaced = settings.bool("add_prefix_space", False)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    tokenizer.decoder = decoders.ByteLevel()
    defaults = NAMED.get(model_type, NAMED["roberta"])
    if model_type == "opt":
        defaults = {role: name for role, name in defaults.items() if tokenizer.token_to_id(name) is not None}
    named = stated.named_or(defaults)
    add(tokenizer, stated, named)

    def numbered(role: str) -> tuple[str, int]:
        name = str(named.get(role) or NAMED.get(model_type, NAMED["roberta"])[role])
        number = tokenizer.token_to_id(name)
        if number is None or not (tokenizer.model.token_to_id(name) is not None or stated.has(role, name)):
            raise CheckpointError(f"vocab.json has no {name}, which the tokenizer of this family needs.")
        return name, number

    if model_type in ("roberta", "bart"):
        tokenizer.post_processor = processors.RobertaProcessing(
            numbered("sep"), numbered("cls"), trim_offsets=True, add_prefix_space=spaced
        )
        return tokenizer
    opens = settings.bool("add_bos_token", model_type == "opt") and not stated.denies("bos")
    closes = settings.bool("add_eos_token", False) and not stated.denies("eos")
    before, after = [numbered("bos")] * opens, [numbered("eos")] * closes
    marks = processors.TemplateProcessing(
        single=[*(name for name, _ in before), "$A", *(name for name, _ in after)], special_tokens=before + after
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), marks])
    return tokenizer
