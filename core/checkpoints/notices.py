"""Notices about a loaded model: unused tensors, files and adapters, and renumbered tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from ..model.config import ModelConfig
from .files import Stored, listed, quoted, weight_file
from .tensor_names import of_unused
from .unopened import ADAPTERS, TOKENIZERS, Contents, merge_line

# Safetensors files that may be ignored: the same weights for another program or rounded, and `unmasked`, a second model that
# core.learn.leakage stores next to the first.
OTHER_FORMS = re.compile(
    r"consolidated.*|(pytorch_)?model(-.*)?\.(fp16|bf16|fp32|non_ema)(-.*)?\.safetensors|adapter_.*|unmasked\.safetensors"
)

PARTS = (  # parts of a multimodal model, and patterns of their tensors
    (
        "projector",
        r"(^|\.)(multi_modal_projector|mm_projector|connector|embed_vision|aligner)\.|visual\.(deepstack_)?merger",
    ),
    ("vision tower", r"(^|\.)(visual|vision\w*|image_newline|image_encoder)(\.|$)"),
    ("audio tower", r"(^|\.)audio\w*\."),
)


def notices_of(
    contents: Contents,
    unused: tuple[str, ...],
    tensors: Mapping[str, Stored],
    config: ModelConfig,
    renumbered: Mapping[str, tuple[int, int]],
    whole: str = "",
) -> tuple[str, ...]:
    """Notices about a model loaded from a folder. `whole` is the title of the multimodal model that it is the text backbone of."""
    backbone, unused = left_out(whole, unused, tensors) if whole else (None, unused)
    notices = (
        backbone,
        of_unused(unused, tensors, config),
        _adapter(contents),
        _unread(contents, tensors),
        _renumbered(renumbered),
    )
    return tuple(filter(None, notices))


def _adapter(contents: Contents) -> str | None:
    """An adapter in the folder or in a nested one."""
    files = [name for name in contents.names if PurePosixPath(name).name in ADAPTERS]
    if not files:
        return None
    inside = files[0].rpartition("/")[0]
    adapter = contents.inside(inside) if inside else contents
    return (
        f"{files[-1]} lies beside the model and is not used: the numbers are those of the model without this adapter. "
        f"To see it, merge the two, and open the folder that this writes: {merge_line(adapter)}."
    )


def _unread(contents: Contents, tensors: Mapping[str, Stored]) -> str | None:
    """Other safetensors files in the folder."""
    read = {stored.file for stored in tensors.values()}
    others = [n for n in contents.ending(".safetensors") if n not in read and not OTHER_FORMS.fullmatch(n)]
    chosen = weight_file(contents.names)
    if not others or chosen is None:
        return None
    was, them = ("was", "it") if len(others) == 1 else ("were", "them")
    reason = f"{chosen} does not name {them}" if chosen.endswith(".json") else f"{chosen} holds the model"
    return f"{listed(others)} {was} not read: {reason}."


def without_tokenizer(contents: Contents) -> str:
    """Why a model cannot read text, and how to add a tokenizer."""
    files = [name for name in contents.here if name in TOKENIZERS or name.endswith((".tiktoken", ".spm"))]
    place = quoted(contents.title)
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


def _renumbered(tokens: Mapping[str, tuple[int, int]]) -> str | None:
    if not tokens:
        return None
    text, (stated, given) = next(iter(tokens.items()))
    return (
        f"The files number {len(tokens)} added token{'s' * (len(tokens) > 1)} with a gap, which is closed as in transformers: "
        f"{text} is {given} and not {stated}."
    )


def left_out(whole: str, unused: Iterable[str], tensors: Mapping[str, Stored]) -> tuple[str | None, tuple[str, ...]]:
    """Notice about the parts of a multimodal model that were not opened, and the unused tensors that belong to none of them."""
    by_part: dict[str, list[Stored]] = {}
    others = []
    for name in unused:
        part = next((part for part, pattern in PARTS if re.search(pattern, name)), None)
        if part is None:
            others.append(name)
        else:
            by_part.setdefault(part, []).append(tensors[name])
    parts = [
        f"its {part} ({len(group)} tensor{'s' * (len(group) > 1)}, {_size(sum(s.n_bytes for s in group))}: {group[0].name}{' …' * (len(group) > 1)})"
        for part, group in sorted(by_part.items(), reverse=True)
    ]
    left = f" Left out: {' and '.join(parts)}." if parts else ""
    return f"This is the text half of {whole}: it reads texts alone.{left}", tuple(others)


def _size(n_bytes: int) -> str:
    return (
        f"{n_bytes / 1e9:.1f} GB"
        if n_bytes >= 1e9
        else f"{n_bytes / 1e6:.1f} MB"
        if n_bytes >= 1e5
        else f"{n_bytes / 1e3:.1f} kB"
    )
