"""Reads the tokenizer of a folder: tokenizer.json, or vocab.txt, or vocab.json with merges.txt, or a SentencePiece model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from ..errors import CheckpointError
from ..model.text import is_tokenizer_fault
from .added_tokens import Stated, add, bert_tokenizer, read_stated, surround_bert
from .files import MAX_JSON
from .sentencepiece_folder import from_sentencepiece

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
