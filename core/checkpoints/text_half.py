"""The text half of a model that also reads pictures or sound: its config.json inside the other one, and the parts that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .family import Theirs
from .files import Stored

# model_type of the whole -> its title, and the model_type of its text half where text_config does not say.
# Of these the text half alone, on a text without pictures, gives what the whole gives; of the others this is not shown.
WHOLES: dict[str, tuple[str, str]] = {
    "gemma3": ("Gemma 3", "gemma3_text"),
    "got_ocr2": ("GOT-OCR 2", "qwen2"),
    "idefics3": ("Idefics 3", "llama"),
    "internvl": ("InternVL", "qwen2"),
    "llava": ("LLaVA", "llama"),
    "llava_next": ("LLaVA-NeXT", "llama"),
    "llava_onevision": ("LLaVA-OneVision", "qwen2"),
    "mistral3": ("Mistral 3", "mistral"),
    "qwen2_5_vl": ("Qwen2.5-VL", "qwen2_5_vl_text"),
    "qwen2_audio": ("Qwen2-Audio", "qwen2"),
    "qwen2_vl": ("Qwen2-VL", "qwen2_vl_text"),
    "qwen3_vl": ("Qwen3-VL", "qwen3_vl_text"),
    "smolvlm": ("SmolVLM", "llama"),
    "vipllava": ("ViP-LLaVA", "llama"),
    "voxtral": ("Voxtral", "llama"),
}
# On a text alone the three positions of a token are one number, so these turn like the family that they came of.
SAME_AS = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"}

_LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 2048,
}
_QWEN_VL = {
    "vocab_size": 152064,
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
}
_QWEN = _LLAMA | {"vocab_size": 151936, "intermediate_size": 22016, "max_position_embeddings": 32768}
# The numbers that a text_config leaves out, which are those of its class in transformers. A config.json of its own states all.
LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA
    | {
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    "qwen2": _QWEN,
    "qwen3": _QWEN | {"head_dim": 128},
    "qwen2_vl_text": _QWEN_VL,
    "qwen2_5_vl_text": _QWEN_VL,
    "qwen3_vl_text": _QWEN | {"head_dim": 128, "max_position_embeddings": 128000, "rope_theta": 500_000.0},
    "gemma3_text": {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
}
# Keys of the whole that its text half has too. The first of these are the whole's to say where both say them.
OF_BOTH = ("architectures", "quantization_config", "tie_word_embeddings")
IF_ABSENT = ("eos_token_id", "bos_token_id", "pad_token_id", "auto_map", "torch_dtype", "dtype")

PARTS = (  # of a whole: the part as a person calls it, and names of its tensors
    (
        "projector",
        r"(^|\.)(multi_modal_projector|mm_projector|connector|embed_vision|aligner)\.|visual\.(deepstack_)?merger",
    ),
    ("vision tower", r"(^|\.)(visual|vision\w*|image_newline|image_encoder)(\.|$)"),
    ("audio tower", r"(^|\.)audio\w*\."),
)


def text_backbone(source_config: Theirs) -> Theirs:
    """The config.json of the text half of a model that has one; of any other model, the same.

    A key that it leaves out has the default of its class. Raises CheckpointError where text_config is not an object.
    """
    outer = source_config.any("model_type", None)
    if not isinstance(outer, str) or outer not in WHOLES:
        return source_config
    title, usual = WHOLES[outer]
    inner = source_config.inside("text_config")
    where = inner.where
    if not inner.values:  # Qwen2-VL's first files keep the text half's keys among the others
        inner, where = Theirs({k: v for k, v in source_config.values.items() if k != "model_type"}), source_config.where
    kind = inner.str("model_type", usual)
    # Where the whole does not say whether its head is the token table, files show it, whatever the half says of itself.
    values = {k: v for k, v in inner.values.items() if k not in ("model_type", "tie_word_embeddings")}
    inherited = {key: source_config.values[key] for key in OF_BOTH if key in source_config}
    missing = {key: source_config.values[key] for key in IF_ABSENT if key in source_config and key not in inner}
    stated = {key: value for key, value in LEFT_OUT.get(kind, {}).items() if key not in values}
    if any(inner.inside(key).values for key in ("rope_parameters", "rope_scaling")):
        values |= {key: _one_position(values[key]) for key in ("rope_parameters", "rope_scaling") if key in inner}
    return Theirs({**stated, **values, **missing, **inherited, "model_type": SAME_AS.get(kind, kind)}, where, title)


def _one_position(rope: Any) -> Any:
    """Rotary numbers without the shares of a head that turn by the row and the column of a picture."""
    kinds = {key: "default" for key in ("type", "rope_type") if isinstance(rope, dict) and rope.get(key) == "mrope"}
    return {**rope, **kinds} if kinds else rope


def left_out(whole: str, unused: Iterable[str], tensors: Mapping[str, Stored]) -> tuple[str | None, tuple[str, ...]]:
    """A sentence about the parts of a whole that were not opened, and the unused tensors that are of none of them."""
    found: dict[str, list[Stored]] = {}
    others = []
    for name in unused:
        part = next((part for part, pattern in PARTS if re.search(pattern, name)), None)
        if part is None:
            others.append(name)
        else:
            found.setdefault(part, []).append(tensors[name])
    parts = [
        f"its {part} ({len(held)} tensor{'s' * (len(held) > 1)}, {_size(sum(s.n_bytes for s in held))}: {held[0].name}{' …' * (len(held) > 1)})"
        for part, held in sorted(found.items(), reverse=True)
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
