"""Text backbone of a multimodal model: its config.json inside the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .family import Theirs, without

# model_type of the whole model -> its title, and the default model_type of its text backbone. Listed are models whose backbone is
# shown to compute the same as the whole model on a text without pictures.
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
# In a text the three positions of a token are equal, so these rotate like the family that they are based on.
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
# Defaults of the classes in transformers for keys that a text_config leaves out.
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
# Keys of the whole model that also apply to its backbone: the first override the backbone's, the others fill gaps.
OF_BOTH = ("architectures", "quantization_config", "tie_word_embeddings")
IF_ABSENT = ("eos_token_id", "bos_token_id", "pad_token_id", "auto_map", "torch_dtype", "dtype")


def text_backbone(source_config: Theirs) -> Theirs:
    """The config.json of the text backbone of a multimodal model; the config.json of any other model is returned unchanged.

    Absent keys get the defaults of the backbone's class. Raises CheckpointError if text_config is not an object.
    """
    outer = source_config.any("model_type", None)
    if not isinstance(outer, str) or outer not in WHOLES:
        return source_config
    title, usual = WHOLES[outer]
    inner = source_config.inside("text_config")
    if not inner.values:  # Qwen2-VL's first files have the backbone's keys at the top level
        inner = Theirs(without(source_config.values, "model_type"), source_config.where)
    kind = inner.str("model_type", usual)
    # Whether the head is tied follows from the files unless the whole model states it; the backbone's own key is ignored.
    values = without(inner.values, "model_type", "tie_word_embeddings")
    scalings = ("rope_parameters", "rope_scaling")
    if any(inner.inside(key).values for key in scalings):
        values |= {key: _one_position(values[key]) for key in scalings if key in inner}
    inherited = {key: source_config.values[key] for key in IF_ABSENT if key in source_config and key not in inner}
    inherited |= {key: source_config.values[key] for key in OF_BOTH if key in source_config}
    defaults = without(LEFT_OUT.get(kind, {}), *values)
    return Theirs({**defaults, **values, **inherited, "model_type": SAME_AS.get(kind, kind)}, inner.where, title)


def _one_position(rope: Any) -> Any:
    """Rotary settings without the shares of a head that encode rows and columns of a picture."""
    kinds = {key: "default" for key in ("type", "rope_type") if isinstance(rope, dict) and rope.get(key) == "mrope"}
    return {**rope, **kinds} if kinds else rope
