"""Sentences about a loaded model that a person should know: tensors and adapters that take no part, and tokens with another number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from ..model.config import ModelConfig
from .files import Stored, weight_file
from .tensor_names import of_unused
from .text_half import left_out
from .unopened import ADAPTERS, TOKENIZERS, Contents, listed, merge_line, quoted

# Weights that another program reads, or the same ones rounded, beside the ones that were read: no part of the model is missing.
# unmasked: of another model, which core.learn.leakage keeps beside the one that it began as.
OTHER_FORMS = re.compile(
    r"consolidated.*|(pytorch_)?model(-.*)?\.(fp16|bf16|fp32|non_ema)(-.*)?\.safetensors|adapter_.*|unmasked\.safetensors"
)


def notices_of(
    found: Contents,
    unused: tuple[str, ...],
    tensors: Mapping[str, Stored],
    config: ModelConfig,
    renumbered: Mapping[str, tuple[int, int]],
    whole: str = "",
) -> tuple[str, ...]:
    """Sentences about a model that was loaded from a folder: tensors and files that take no part, tokens with another number.

    `whole` is the title of the model whose text half this is.
    """
    half, unused = left_out(whole, unused, tensors) if whole else (None, unused)
    said = (half, of_unused(unused, tensors, config), _adapter(found), _unread(found, tensors), _renumbered(renumbered))
    return tuple(sentence for sentence in said if sentence)


def _adapter(found: Contents) -> str | None:
    """An adapter in the folder, or in one inside."""
    files = [name for name in found.names if PurePosixPath(name).name in ADAPTERS]
    if not files:
        return None
    inside = files[0].rpartition("/")[0]
    adapter = found.inside(inside) if inside else found
    return (
        f"{files[-1]} lies beside the model and is not used: the numbers are those of the model without this adapter. "
        f"To see it, merge the two, and open the folder that this writes: {merge_line(adapter)}."
    )


def _unread(found: Contents, tensors: Mapping[str, Stored]) -> str | None:
    """Other safetensors files in the folder, that were not read."""
    read = {stored.file for stored in tensors.values()}
    others = [n for n in found.ending(".safetensors") if n not in read and not OTHER_FORMS.fullmatch(n)]
    chosen = weight_file(found.names)
    if not others or chosen is None:
        return None
    by = (
        f"{chosen} does not name {'it' if len(others) == 1 else 'them'}"
        if chosen.endswith(".json")
        else f"{chosen} holds the model"
    )
    return f"{listed(others)} {'was' if len(others) == 1 else 'were'} not read: {by}."


def without_tokenizer(found: Contents) -> str:
    """Why a model reads no text, and what gives it a tokenizer."""
    files = [name for name in found.here if name in TOKENIZERS or name.endswith((".tiktoken", ".spm"))]
    place = quoted(found.title)
    if not files:
        return (
            "There is no tokenizer among its files, so it reads token numbers only: ids=[...]. If you have the tokenizer's name on the Hub: "
            f'`import transformers; transformers.AutoTokenizer.from_pretrained("OWNER/NAME").save_pretrained({place})`.'
        )
    kind = TOKENIZERS.get(files[0], "tiktoken")
    return (
        f"Its tokenizer is only there as {listed(files)} ({kind}), which is not read, so it reads token numbers only: ids=[...]. Write it as "
        "tokenizer.json, where transformers and sentencepiece are installed: "
        f"`import transformers; transformers.AutoTokenizer.from_pretrained({place}).save_pretrained({place})`."
    )


def _renumbered(found: Mapping[str, tuple[int, int]]) -> str | None:
    if not found:
        return None
    text, (stated, given) = next(iter(found.items()))
    return (
        f"The files number {len(found)} added token{'s' * (len(found) > 1)} with a gap, which is closed as in transformers: "
        f"{text} is {given} and not {stated}."
    )
