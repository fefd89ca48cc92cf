"""A tokenizer from the files beside a checkpoint: tokenizer.json, or the vocab.txt or vocab.json with merges.txt of older ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import CheckpointError
from ..model.text import is_tokenizer_fault
from .family import Theirs
from .files import LARGEST_JSON, read_json

BYTE_LEVEL = ("gpt2", "opt", "roberta", "bart")  # families whose vocab.json and merges.txt are all there is to know


def read_tokenizer(folder: Path, model_type: str) -> Tokenizer | None:
    """The tokenizer, set to read whole texts; None when the files are of another kind (sentencepiece) or absent.

    Raises CheckpointError naming the file if it is there but damaged.
    """
    if (folder / "tokenizer.json").is_file():
        return _built("tokenizer.json", lambda: Tokenizer.from_str(_text(folder / "tokenizer.json")))
    path = folder / "tokenizer_config.json"
    settings = Theirs(read_json(path) if path.is_file() else {}, "tokenizer_config.json")
    if (folder / "vocab.txt").is_file():
        return _built("vocab.txt", lambda: wordpiece(folder, settings))
    if model_type in BYTE_LEVEL and (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _built("vocab.json with merges.txt", lambda: byte_level(folder, settings, model_type))
    return None


def _built(what: str, make: Callable[[], Tokenizer]) -> Tokenizer:
    try:
        return plain(make())
    except BaseException as error:
        if not is_tokenizer_fault(error):
            raise
        raise CheckpointError(f"{what} is not a tokenizer that can be read ({error}). Download it again.") from error


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """Without the truncation and padding that a file may switch on: texts are read whole, and a shared tokenizer is never set again."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise CheckpointError(
                f"{path.name} is larger than {LARGEST_JSON >> 20} MB, which no published file of that name is."
            )
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name} cannot be read as text. Download it again.") from error


def special(settings: Theirs, key: str, default: str) -> str:
    """A special token's text; newer files give an object with its `content`."""
    value = settings.any(key, default)
    return settings.inside(key).str("content", default) if isinstance(value, dict) else settings.str(key, default)


def wordpiece(folder: Path, settings: Theirs) -> Tokenizer:
    """BERT's, from one piece a line (Devlin et al. 2018, §3; Schuster & Nakajima 2012)."""
    vocab = {line.rstrip("\r\n"): i for i, line in enumerate(_text(folder / "vocab.txt").rstrip("\n").split("\n"))}
    names = {
        role: special(settings, f"{role}_token", f"[{role.upper()}]") for role in ("unk", "cls", "sep", "pad", "mask")
    }
    if missing := [names[role] for role in ("unk", "cls", "sep") if names[role] not in vocab]:
        raise CheckpointError(f"vocab.txt has no {missing[0]}, which BERT's tokenizer needs.")
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=names["unk"], max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.bool("tokenize_chinese_chars", True),
        strip_accents=settings.bool("strip_accents", None),
        lowercase=settings.bool("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = names["cls"], names["sep"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, vocab[cls]), (sep, vocab[sep])],
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens([name for name in names.values() if name in vocab])
    return tokenizer


def byte_level(folder: Path, settings: Theirs, model_type: str) -> Tokenizer:
    """GPT-2's, which reads bytes and so knows no unknown piece (Radford et al. 2019, §2.2), with the family's marks around a text."""
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    spaced = settings.bool("add_prefix_space", False)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    tokenizer.decoder = decoders.ByteLevel()
    start = {"gpt2": "<|endoftext|>", "opt": "</s>"}.get(model_type, "<s>")
    bos = special(settings, "bos_token", start)
    eos = special(settings, "eos_token", "<|endoftext|>" if model_type == "gpt2" else "</s>")

    def numbered(name: str) -> tuple[str, int]:
        number = tokenizer.token_to_id(name)
        if number is None:
            raise CheckpointError(f"vocab.json has no {name}, which the tokenizer of this family needs.")
        return name, number

    if model_type in ("roberta", "bart"):
        tokenizer.post_processor = processors.RobertaProcessing(
            numbered(eos), numbered(bos), trim_offsets=True, add_prefix_space=spaced
        )
    elif settings.bool("add_bos_token", model_type == "opt"):
        opening = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[numbered(bos)])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), opening])
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    names = [bos, eos, *(special(settings, f"{role}_token", f"<{role}>") for role in ("unk", "pad"))]
    tokenizer.add_special_tokens([name for name in dict.fromkeys(names) if tokenizer.token_to_id(name) is not None])
    mask = special(settings, "mask_token", "<mask>")
    if tokenizer.token_to_id(mask) is not None:  # it stands for a word with the space before it
        tokenizer.add_special_tokens([AddedToken(mask, lstrip=True, special=True)])
    return tokenizer
