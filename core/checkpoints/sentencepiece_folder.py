"""A folder's SentencePiece or tiktoken file as the tokenizer of its family: ids as the model has them, and marks around a text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import CheckpointError
from .added_tokens import Stated, Token, add, read_stated
from .files import read_json
from .sentencepiece_file import (
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
    read_sentencepiece,
    tokenizer_of,
    unread_rule,
)

BEGUN = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
SOURCE, TARGET_FILE, VOCAB = "source.spm", "target.spm", "vocab.json"  # of Marian
T5_LINE, FAIRSEQ = ("t5", "mt5", "umt5"), ("xlm-roberta", "xglm")
TRANSLATORS = ("mbart", "m2m_100")  # between many languages: a code of its language stands with each text
FIRST_CODES = {"mbart": "en_XX", "m2m_100": "__en__"}  # of a text whose language the folder does not name
NLLB_CODE = "eng_Latn"
OF_25 = 25  # languages of the first mBART, whose code comes after the text; all later ones have it before
# Families whose ids are those of the file, and whose texts begin with a mark of their own.
OPENED = [
    "llama",
    "mistral",
    "mixtral",
    "ministral",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "helium",
    "minicpm3",
    "internlm2",
    "deepseek_v2",
    "seed_oss",
    "qwen2",
    "ernie4_5",
]
# How families that keep their vocabulary as ranks of bytes cut a text, as their authors publish it.
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
RANKED = {
    "llama": LLAMA3,
    "qwen2": LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),
    "qwen3": LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),
}
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


def from_sentencepiece(folder: Path, model_type: str) -> Tokenizer | None:
    """The tokenizer of a folder that keeps it in one of these files; None where there is none, or one with rules that are not read.

    Raises CheckpointError naming a file that is damaged.
    """
    if model_type == "marian" and (folder / SOURCE).is_file() and (folder / VOCAB).is_file():
        return _marian(folder)
    if ranks := next((path for path in sorted(folder.glob("*.tiktoken")) if path.is_file()), None):
        return _ranked(ranks, read_stated(folder), model_type)
    file = next((folder / name for name in BEGUN if (folder / name).is_file()), None)
    if file is None or model_type not in (
        *OPENED,
        *FAIRSEQ,
        *T5_LINE,
        *RANKED,
        *TRANSLATORS,
        "albert",
        "pegasus",
        "deberta-v2",
    ):
        return None
    if _is_ranks(file):
        return _ranked(file, read_stated(folder), model_type)
    model = read_sentencepiece(file)
    if unread_rule(model):
        return None
    stated = read_stated(folder)
    if model_type in FAIRSEQ:
        return _fairseq(model, stated, model_type)
    if model_type in T5_LINE:
        return _t5(model, stated)
    if model_type == "albert":
        return _albert(model, stated)
    if model_type == "pegasus":
        return _pegasus(model, stated)
    if model_type == "deberta-v2":
        return _deberta(model, stated)
    if model_type in TRANSLATORS:
        return _translator(folder, model, stated, model_type)
    return _opened(model, stated) if model_type in OPENED else None


def _roles(model: SentencePieceModel) -> dict[str, Token]:
    """The tokens that the file itself gives a role."""
    ids = {"bos": model.bos_id, "eos": model.eos_id, "unk": model.unk_id, "pad": model.pad_id}
    return {role: text for role, i in ids.items() if (text := model.piece(i)) is not None}


def _opened(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    tokenizer = tokenizer_of(model, prefix=_prefix(stated) if model.dummy_prefix else None)
    named = stated.named_or(_roles(model))
    add(tokenizer, stated, named)
    opens, closes = stated.settings.bool("add_bos_token", True), stated.settings.bool("add_eos_token", False)
    before = [str(named["bos"])] if opens and named.get("bos") is not None else []
    after = [str(named["eos"])] if closes and named.get("eos") is not None else []
    return _marked(tokenizer, before, after)


def _prefix(stated: Stated) -> Prefix:
    """The rule for a space before a text, as LlamaTokenizer of transformers 5 reads it."""
    if not stated.settings.bool("add_prefix_space", True):
        return "never"
    return "always" if stated.settings.bool("legacy", False) else "first"


def _joined(tokenizer: Tokenizer, stated: Stated) -> Tokenizer:
    """With add_prefix_space=false, XLM-RoBERTa's and ALBERT's tokenizers read words without the spaces between them."""
    if not stated.settings.bool("add_prefix_space", True):
        tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE, "removed")
    return tokenizer


def _t5(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Raffel et al. 2020: a text ends with a mark, and sentinels follow the vocabulary, the first of them last."""
    tokenizer = tokenizer_of(model)
    if not stated.numbers:
        n = stated.settings.int("extra_ids", 100)
        if n > 1000:
            raise CheckpointError(f"{stated.settings.where}: extra_ids is {n}, and at most 1000 are supported.")
        tokenizer.add_tokens([AddedToken(f"<extra_id_{i}>", special=True) for i in reversed(range(n))])
    named = stated.named_or(_roles(model))
    add(tokenizer, stated, named)
    return _marked(tokenizer, [], [str(named["eos"])])


def _fairseq(model: SentencePieceModel, stated: Stated, model_type: str) -> Tokenizer:
    """fairseq's four marks come first, so that all other pieces have the next number."""
    first = [Piece(text, 0.0, UNKNOWN if text == "<unk>" else CONTROL) for text in ("<s>", "<pad>", "</s>", "<unk>")]
    last = ["<mask>"] if model_type == "xlm-roberta" else [f"<madeupword{i}>" for i in range(7)]
    pieces = (*first, *model.pieces[3:], *(Piece(text, 0.0, CONTROL) for text in last))
    tokenizer = _joined(tokenizer_of(model, before=pieces), stated)
    roles: dict[str, Token] = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "sep": "</s>", "pad": "<pad>", "cls": "<s>"}
    if model_type == "xlm-roberta":
        roles["mask"] = AddedToken("<mask>", lstrip=True, special=True)
    add(tokenizer, stated, stated.named_or(roles))
    if model_type == "xglm":
        return _marked(tokenizer, ["</s>"], [])
    marks = [(name, _number(tokenizer, name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=marks
    )
    return tokenizer


def _pegasus(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Zhang et al. 2020, arXiv:1912.08777: the file's own numbers come after marks of the training, and a text ends with a mark."""
    offset = stated.settings.int("offset", 103)
    if not 2 < offset <= 1000:
        raise CheckpointError(f"{stated.settings.where}: offset is {offset}, and 3 to 1000 are supported.")
    marks = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, offset)))
    first = (Piece(text, 0.0, CONTROL) for text in marks)
    tokenizer = tokenizer_of(model, before=(*first, *model.pieces[2:]))
    named = stated.named_or({"eos": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask_2>"})
    add(tokenizer, stated, named)
    return _marked(tokenizer, [], [str(named["eos"])])


def _translator(folder: Path, model: SentencePieceModel, stated: Stated, model_type: str) -> Tokenizer | None:
    """mBART (Liu et al. 2020, arXiv:2001.08210), M2M100 (Fan et al. 2020, arXiv:2010.11125) and NLLB (2022, arXiv:2207.04672): the
    codes of their languages follow the vocabulary, and that of `src_lang` stands with a text, before it or after its end.

    The languages are those that the folder lists, in that order, which numbers them: None where it lists none.
    """
    numbered = model_type == "m2m_100" and (folder / VOCAB).is_file()  # M2M100 has a list of its own
    codes = [str(token) for token in (*stated.numbers.values(), *stated.more)]
    codes = [text for text in dict.fromkeys(codes) if text not in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    if not codes:
        return None
    roles: dict[str, Token] = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "sep": "</s>", "pad": "<pad>"}
    if numbered:
        vocab = read_json(folder / VOCAB)
        texts = _by_number(vocab)
        scores = {piece.text: piece.score for piece in model.pieces if piece.type == NORMAL}
        before = tuple(_marian_piece(text, scores) for text in texts)
        last: list[str] = [*codes]
    else:
        first = [
            Piece(text, 0.0, UNKNOWN if text == "<unk>" else CONTROL) for text in ("<s>", "<pad>", "</s>", "<unk>")
        ]
        before = (*first, *model.pieces[3:])
        roles |= {"cls": "<s>", "mask": AddedToken("<mask>", lstrip=True, special=True)}
        last = [*codes, "<mask>"]
    tokenizer = tokenizer_of(model, before=(*before, *(Piece(text, 0.0, CONTROL) for text in last)))
    add(tokenizer, stated, stated.named_or(roles))
    is_nllb = model_type == "m2m_100" and not numbered
    said = stated.settings.str("src_lang", "") or (NLLB_CODE if is_nllb else FIRST_CODES[model_type])
    code = f"__{said}__" if numbered and not said.startswith("__") else said
    if tokenizer.token_to_id(code) is None or code not in codes:
        raise CheckpointError(f"{stated.settings.where}: src_lang is {said}, which is none of the folder's languages.")
    is_after = len(codes) == OF_25 if model_type == "mbart" else stated.settings.bool("legacy_behaviour", False)
    return _marked(tokenizer, [], ["</s>", code]) if is_after else _marked(tokenizer, [code], ["</s>"])


def _by_number(vocab: dict[str, Any]) -> list[str]:
    """The pieces of a vocab.json in the order of their numbers."""
    texts = sorted(vocab, key=lambda text: vocab[text] if isinstance(vocab[text], int) else -1)
    if [vocab[text] for text in texts] != list(range(len(texts))) or "<unk>" not in vocab or "</s>" not in vocab:
        raise CheckpointError(
            f"{VOCAB} must number its pieces from 0 without a gap, <unk> and </s> among them. Download it again."
        )
    return texts


def _albert(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """Lan et al. 2020, from lower-case letters without accents where the files do not say otherwise."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not stated.settings.bool("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if stated.settings.bool("do_lower_case", True):
        steps.append(normalizers.Lowercase())
    tokenizer = _joined(tokenizer_of(model, steps=tuple(steps)), stated)
    roles: dict[str, Token] = {
        "bos": "[CLS]",
        "eos": "[SEP]",
        "unk": "<unk>",
        "sep": "[SEP]",
        "pad": "<pad>",
        "cls": "[CLS]",
    }
    named = stated.named_or(roles | {"mask": AddedToken("[MASK]", lstrip=True, special=True)})
    add(tokenizer, stated, named)
    cls, sep = str(named["cls"]), str(named["sep"])
    return _between(tokenizer, cls, sep)


def _deberta(model: SentencePieceModel, stated: Stated) -> Tokenizer:
    """DebertaV2Tokenizer of transformers 5: pieces of the file, by rules for characters of its own. [MASK] follows the vocabulary."""
    tokenizer = tokenizer_of(replace(model, byte_fallback=False))
    steps: list[normalizers.Normalizer] = (
        [normalizers.Lowercase()] if stated.settings.bool("do_lower_case", False) else []
    )
    steps += [normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(), normalizers.Strip(left=False)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    prefix = "always" if stated.settings.bool("add_prefix_space", True) else "first"
    cuts = [pre_tokenizers.Punctuation("isolated")] if stated.settings.bool("split_by_punct", False) else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.Metaspace(SPACE, prepend_scheme=prefix)])
    tokenizer.decoder = decoders.Metaspace(SPACE, prepend_scheme=prefix)
    roles: dict[str, Token] = {
        "bos": "[CLS]",
        "eos": "[SEP]",
        "unk": "[UNK]",
        "sep": "[SEP]",
        "pad": "[PAD]",
        "cls": "[CLS]",
    }
    named = stated.named_or(roles | {"mask": "[MASK]"})
    add(tokenizer, stated, named)
    return _between(tokenizer, str(named["cls"]), str(named["sep"]))


def _between(tokenizer: Tokenizer, cls: str, sep: str) -> Tokenizer:
    """With BERT's marks around a text, and between two."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(name, _number(tokenizer, name)) for name in (cls, sep)],
    )
    return tokenizer


def _marian(folder: Path) -> Tokenizer | None:
    """Marian cuts a text by source.spm and numbers the pieces by vocab.json, which has those of the target as well."""
    model, vocab = read_sentencepiece(folder / SOURCE), read_json(folder / VOCAB)
    texts = _by_number(vocab)
    if unread_rule(model):
        return None
    scores = {piece.text: piece.score for piece in model.pieces if piece.type == NORMAL}
    pieces = tuple(_marian_piece(text, scores) for text in texts)
    tokenizer = tokenizer_of(model, before=pieces)
    stated = read_stated(folder)
    named = stated.named_or({"eos": "</s>", "unk": "<unk>", "pad": "<pad>"})
    add(tokenizer, stated, named)
    return _marked(tokenizer, [], [str(named["eos"])])


def _marian_piece(text: str, scores: dict[str, float]) -> Piece:
    if text == "<unk>":
        return Piece(text, 0.0, UNKNOWN)
    if text in ("</s>", "<pad>", "<s>") or (text.startswith(">>") and text.endswith("<<")):
        return Piece(text, 0.0, CONTROL)
    return Piece(text, scores[text]) if text in scores else Piece(text, NEVER, TARGET)


def marian_notices(folder: Path, model_type: str) -> tuple[str, ...]:
    """Sentences about a Marian folder whose texts published code may read as other ids."""
    if model_type != "marian" or (folder / "tokenizer.json").is_file() or not (folder / SOURCE).is_file():
        return ()
    if not (folder / VOCAB).is_file():
        return ()
    vocab = read_json(folder / VOCAB)
    lost = [p.text for p in read_sentencepiece(folder / SOURCE).pieces if p.type == NORMAL and p.text not in vocab]
    said = [f"A text for the decoder is cut by {SOURCE} too, and {TARGET_FILE} is not read."]
    if lost:
        said.append(
            f"{SOURCE} has {len(lost):,} pieces that {VOCAB} does not number, such as {lost[0]}: smaller pieces are read in their place, "
            "where published code reads <unk>."
        )
    return tuple(said)


def _marked(tokenizer: Tokenizer, before: Sequence[str], after: Sequence[str]) -> Tokenizer:
    """With marks around a text, and around each of a pair."""
    if before or after:
        second = [f"{name}:1" for name in (*before, "$B", *after)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[*before, "$A", *after],
            pair=[*before, "$A", *after, *second],
            special_tokens=[(name, _number(tokenizer, name)) for name in dict.fromkeys((*before, *after))],
        )
    return tokenizer


def _number(tokenizer: Tokenizer, name: str) -> int:
    number = tokenizer.token_to_id(name)
    if number is None:
        raise CheckpointError(f"The tokenizer has no {name}, which the files of this folder put around a text.")
    return number


# ranks of bytes


def _is_ranks(path: Path) -> bool:
    with path.open("rb") as file:
        return RANK.fullmatch(file.readline(4096).rstrip(b"\r\n")) is not None


def _ranked(path: Path, stated: Stated, model_type: str) -> Tokenizer | None:
    """A vocabulary in tiktoken's form: each line is a piece of bytes, in base64, and its rank, which is its id and its place in merging."""
    if model_type not in RANKED:
        return None  # the file does not say how a text is cut before its pieces are merged
    ranks = _ranks(path)
    letters = _bytes_as_letters()
    spelt = {piece: "".join(letters[byte] for byte in piece) for piece in ranks}
    merges = [
        (ranks[piece], ranks[piece[:cut]], spelt[piece[:cut]], spelt[piece[cut:]])
        for piece in ranks
        for cut in range(1, len(piece))
        if piece[:cut] in ranks and piece[cut:] in ranks
    ]
    merges.sort(key=lambda each: each[:2])
    vocab = {spelt[piece]: rank for piece, rank in ranks.items()}
    # A word that is a piece as a whole is read as that piece, as tiktoken has it.
    tokenizer = Tokenizer(models.BPE(vocab, [each[2:] for each in merges], fuse_unk=False, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(RANKED[model_type]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    if not stated.numbers:
        marks = LLAMA3_MARKS if model_type == "llama" else QWEN_MARKS
        tokenizer.add_tokens([AddedToken(text, special=True, normalized=False) for text in marks])
    named = stated.named_or(
        {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"} if model_type == "llama" else {"eos": "<|endoftext|>"}
    )
    add(tokenizer, stated, named)
    return _marked(tokenizer, [str(named["bos"])] if model_type == "llama" and named.get("bos") is not None else [], [])


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
    """GPT-2's letter for each byte: itself where it can be seen, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
