"""Converts the metadata of llama.cpp's architectures to config.json, and their tensor layouts to those of the published families.

Sources: convert_hf_to_gguf.py and the hparams of llama.cpp (MIT), whose changes are reverted here, and the metadata of the format
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError
from ..family import SourceConfig, shown
from . import Header

Change = Callable[[Tensor], Tensor]  # of a tensor's layout, from llama.cpp's to that of the published family
ROPE_FREQS = "rope_freqs.weight"


class Metadata:
    """Metadata of a model and shapes of its tensors. Getters are those of Theirs, for keys below the architecture."""

    def __init__(
        self, header: Header, shapes: Mapping[builtins.str, tuple[builtins.int, ...]], factors: Tensor | None = None
    ):
        self.all = SourceConfig(header.values, header.name)
        self.where = header.name
        self.arch: str = self.all.str("general.architecture")
        self.shapes = shapes
        self.factors = factors  # divisors of the rotary frequencies, if the file has them

    def __contains__(self, key: builtins.str) -> builtins.bool:
        return f"{self.arch}.{key}" in self.all

    def int(self, key: builtins.str, *default: Any) -> Any:
        return self.all.int(f"{self.arch}.{key}", *default)

    def float(self, key: builtins.str, *default: Any) -> Any:
        return self.all.float(f"{self.arch}.{key}", *default)

    def bool(self, key: builtins.str, *default: Any) -> Any:
        return self.all.bool(f"{self.arch}.{key}", *default)

    def str(self, key: builtins.str, *default: Any) -> Any:
        return self.all.str(f"{self.arch}.{key}", *default)

    def has(self, tensor: builtins.str) -> builtins.bool:
        return tensor in self.shapes

    def refused(self, key: builtins.str, value: Any, why: builtins.str) -> CheckpointError:
        return CheckpointError(f"{self.where}: {self.arch}.{key} is {shown(value)}, but {why}.")


@dataclass(frozen=True)
class Architecture:
    """One architecture of llama.cpp: its family, and how to revert the conversion."""

    name: str  # general.architecture
    model_type: str
    config: Callable[[Metadata], dict[str, Any]]
    # Tensor's name without the layer ("blk.attn_q.weight") -> function from metadata to the change of its layout.
    changes: Mapping[str, Callable[[Metadata], Change]] = field(default_factory=dict)
    every_norm: Change | None = None  # of tensors whose name ends in norm.weight


def _shared(m: Metadata) -> dict[str, Any]:
    """Values of every architecture, under Llama's keys."""
    if experts := m.int("expert_count", 0):
        raise m.refused("expert_count", experts, "a mixture of experts has no single MLP to show and is not supported")
    return {
        "hidden_size": m.int("embedding_length"),
        "num_hidden_layers": m.int("block_count"),
        "num_attention_heads": _heads(m),
        "intermediate_size": m.int("feed_forward_length"),
        "max_position_embeddings": m.int("context_length"),
        "vocab_size": m.shapes.get("token_embd.weight", (0,))[0],
    }


def _heads(m: Metadata) -> int:
    if not (heads := m.int("attention.head_count")):
        raise m.refused("attention.head_count", 0, "it must be at least 1")
    return heads


def _llama_line(m: Metadata) -> dict[str, Any]:
    values = _shared(m)
    heads = values["num_attention_heads"]
    width = m.int("attention.key_length", values["hidden_size"] // heads)
    if (d_v := m.int("attention.value_length", width)) != width:
        raise m.refused(
            "attention.value_length",
            d_v,
            f"queries and keys are {width} wide, and one width for all three is supported",
        )
    values |= {
        "num_key_value_heads": m.int("attention.head_count_kv", heads),
        "head_dim": width,
        "rms_norm_eps": m.float("attention.layer_norm_rms_epsilon"),
        "rope_theta": m.float("rope.freq_base", 10_000.0),
        "tie_word_embeddings": not m.has("output.weight"),
    }
    if (rotary := m.int("rope.dimension_count", width)) != width:
        values["partial_rotary_factor"] = rotary / width
    if (scaling := _rope_scaling(m, values)) is not None:
        values["rope_scaling"] = scaling
    return values


def _rope_scaling(m: Metadata, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """rope_scaling of config.json; None without scaling."""
    kind = m.str("rope.scaling.type", "none")
    old = m.float("rope.scale_linear", 1.0)  # of files without rope.scaling.type
    if m.factors is not None:
        if kind not in ("none", "linear", "llama3") or (kind == "linear" and m.float("rope.scaling.factor", 1.0) != 1):
            raise m.refused("rope.scaling.type", kind, f"{ROPE_FREQS} is there as well, and only one can be meant")
        return _llama3(m, m.factors.cpu().double(), values)
    if kind == "none":
        return {"rope_type": "linear", "factor": old} if old not in (0.0, 1.0) else None
    factor = m.float("rope.scaling.factor", old)
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor} if factor not in (0.0, 1.0) else None
    if kind != "yarn":
        raise m.refused("rope.scaling.type", kind, "supported are none, linear and yarn")
    scaling = {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": m.int("rope.scaling.original_context_length", 0)
        or values["max_position_embeddings"],
    }
    for key in ("beta_fast", "beta_slow"):
        if f"rope.scaling.yarn_{key}" in m:
            scaling[key] = m.float(f"rope.scaling.yarn_{key}")
    if (more := m.float("rope.scaling.attn_factor", 1.0)) != 1:
        scaling["attention_factor"] = more * (0.1 * math.log(max(factor, 1.0)) + 1)
    return scaling


def _llama3(m: Metadata, factors: Tensor, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Llama 3's scaling, reconstructed from the divisors of the frequencies, because the file does not contain its four settings.

    Between the two bounds 1/factor_i is linear in 1/wavelength_i; slope and intercept determine the settings.
    """
    width = values["head_dim"]
    if tuple(factors.shape) != (width // 2,) or not bool(((factors >= 1) & torch.isfinite(factors)).all()):
        raise CheckpointError(
            f"{m.where}: {ROPE_FREQS} holds {list(factors.shape)} numbers that are no factors of the {width // 2} rotary frequencies."
        )
    factor = factors.max().item()
    if factor == 1:
        return None
    turns = values["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width) / (
        2 * math.pi
    )  # per token
    smooth = (1 / factors - 1 / factor) / (1 - 1 / factor)  # 0: fully scaled, 1: not scaled
    between = (smooth > 1e-3) & (smooth < 1 - 1e-3)
    candidates = [(8192, 1.0, 4.0)]  # as published
    if int(between.sum()) >= 2:
        x, y = turns[between], smooth[between]
        slope = (((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()).item()
        low = (slope * x.mean() - y.mean()).item()  # y = (x · length - low) / (high - low), with high - low = 1
        candidates += (
            [(round(slope * 3), 3 * low, 3 * low + 3), (round(slope / low), 1.0, 1 + 1 / low)] if low > 0 else []
        )
    for length, low, high in candidates:
        again = ((turns * length - low) / (high - low)).clamp(0, 1)
        if length >= 1 and torch.allclose(1 / ((1 - again) / factor + again), factors, rtol=1e-4):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": low,
                "high_freq_factor": high,
                "original_max_position_embeddings": length,
            }
    raise CheckpointError(
        f"{m.where}: {ROPE_FREQS} scales rotary frequencies otherwise than Llama 3 does, which is not supported."
    )


def _llama(m: Metadata) -> dict[str, Any]:
    return _llama_line(m) | {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": m.has("blk.0.attn_q.bias"),
        "mlp_bias": m.has("blk.0.ffn_up.bias"),
    }


def _halves(heads: int) -> Change:
    """Rows [head, pair, two] -> [head, two, pair]: llama.cpp rotates neighbouring features, published code the halves of a head."""

    def change(rows: Tensor) -> Tensor:
        return rows.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)

    return change


def _of_queries(m: Metadata) -> Change:
    return _halves(_heads(m))


def _of_keys(m: Metadata) -> Change:
    return _halves(m.int("attention.head_count_kv", 0) or _heads(m))


LLAMA = Architecture(
    "llama",
    "llama",
    _llama,
    # Only this architecture has its rows permuted for llama.cpp's rotary positions.
    changes={
        "blk.attn_q.weight": _of_queries,
        "blk.attn_q.bias": _of_queries,
        "blk.attn_k.weight": _of_keys,
        "blk.attn_k.bias": _of_keys,
    },
)


def _qwen2(m: Metadata) -> dict[str, Any]:
    return _llama_line(m) | {"architectures": ["Qwen2ForCausalLM"]}


def _qwen3(m: Metadata) -> dict[str, Any]:
    return _llama_line(m) | {"architectures": ["Qwen3ForCausalLM"]}


def _gemma(m: Metadata, largest: int) -> dict[str, Any]:
    """`largest`: number of layers of the one size that scales scores by d_model / n_heads instead of d_head."""
    values = _llama_line(m)
    scale = values["head_dim"]
    if values["num_hidden_layers"] == largest:
        scale = values["hidden_size"] // values["num_attention_heads"]
    return values | {"query_pre_attn_scalar": scale, "sliding_window": m.int("attention.sliding_window")}


def _gemma2(m: Metadata) -> dict[str, Any]:
    # llama.cpp's defaults; 0 means none.
    caps = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    stated = {key: m.float(key, default) or None for key, default in caps.items()}
    return _gemma(m, 46) | stated | {"architectures": ["Gemma2ForCausalLM"]}


def _gemma3(m: Metadata) -> dict[str, Any]:
    values = _gemma(m, 62)
    rope = {
        "full_attention": {
            "rope_type": "default",
            **(values.pop("rope_scaling", None) or {}),
            "rope_theta": m.float("rope.freq_base", 1e6),
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": m.float("rope.freq_base_swa", 10_000.0)},
    }
    every = m.int("attention.sliding_window_pattern", 6)
    caps = {key: m.float(key, 0.0) or None for key in ("attn_logit_softcapping", "final_logit_softcapping")}
    return (
        values
        | caps
        | {"rope_parameters": rope, "sliding_window_pattern": every, "architectures": ["Gemma3ForCausalLM"]}
    )


def _phi3(m: Metadata) -> dict[str, Any]:
    values = _llama_line(m)
    if m.has("rope_factors_long.weight") or m.has("rope_factors_short.weight"):
        raise CheckpointError(
            f"{m.where}: Phi-3 for long texts (longrope) is not read from a GGUF file. Open its safetensors files instead."
        )
    if window := m.int("attention.sliding_window", 0):
        values["sliding_window"] = window
    return values | {"architectures": ["Phi3ForCausalLM"]}


def _gpt2(m: Metadata) -> dict[str, Any]:
    values = _shared(m)
    return {
        "n_embd": values["hidden_size"],
        "n_layer": values["num_hidden_layers"],
        "n_head": values["num_attention_heads"],
        "n_inner": values["intermediate_size"],
        "n_positions": values["max_position_embeddings"],
        "vocab_size": values["vocab_size"],
        "layer_norm_epsilon": m.float("attention.layer_norm_epsilon"),
        "architectures": ["GPT2LMHeadModel"],
    }


def _gpt_neox(m: Metadata) -> dict[str, Any]:
    values = _shared(m)
    width = values["hidden_size"] // values["num_attention_heads"]
    rope = {"rope_type": "default", "rope_theta": m.float("rope.freq_base", 10_000.0)}
    rope["partial_rotary_factor"] = m.int("rope.dimension_count", width) / max(width, 1)
    return values | {
        "layer_norm_eps": m.float("attention.layer_norm_epsilon"),
        "use_parallel_residual": m.bool("use_parallel_residual", True),
        "attention_bias": m.has("blk.0.attn_qkv.bias"),
        "hidden_act": "gelu",
        "tie_word_embeddings": not m.has("output.weight"),
        "rope_parameters": (_rope_scaling(m, values) or {}) | rope if "rope.scaling.type" in m else rope,
        "architectures": ["GPTNeoXForCausalLM"],
    }


def _bert(m: Metadata) -> dict[str, Any]:
    if m.bool("attention.causal", False):
        raise m.refused("attention.causal", True, "a BERT whose tokens see only those before them is not supported")
    return _shared(m) | {
        "layer_norm_eps": m.float("attention.layer_norm_epsilon"),
        "type_vocab_size": m.shapes.get("token_types.weight", (0,))[0],
        "hidden_act": "gelu",
        # llama.cpp omits the head, and the padding rows of the position table.
        "max_position_embeddings": m.shapes.get("position_embd.weight", (m.int("context_length"),))[0],
        "architectures": ["BertModel"],
    }


def _t5(m: Metadata) -> dict[str, Any]:
    encoder_only = m.arch == "t5encoder"
    heads, width = _heads(m), m.int("attention.key_length")
    return {
        "d_model": m.int("embedding_length"),
        "d_kv": width,
        "d_ff": m.int("feed_forward_length"),
        "num_heads": heads,
        "num_layers": m.int("block_count"),
        "num_decoder_layers": 0 if encoder_only else m.int("decoder_block_count", 0) or m.int("block_count"),
        "n_positions": m.int("context_length"),
        "relative_attention_num_buckets": m.int("attention.relative_buckets_count"),
        "layer_norm_epsilon": m.float(
            "attention.layer_norm_rms_epsilon", m.float("attention.layer_norm_epsilon", 1e-6)
        ),
        "vocab_size": m.shapes.get("token_embd.weight", (0,))[0],
        "feed_forward_proj": "gated-gelu" if m.has("enc.blk.0.ffn_gate.weight") else "relu",
        "tie_word_embeddings": not m.has("output.weight"),
        "decoder_start_token_id": m.int("decoder_start_token_id", 0),
        "architectures": ["T5EncoderModel" if encoder_only else "T5ForConditionalGeneration"],
    }


def _transposed(m: Metadata) -> Change:
    """Published GPT-2 files store weights as [in, out]."""
    return lambda weight: weight.t()


def _by_head(m: Metadata) -> Change:
    """Rows grouped by q, k and v -> rows grouped by head, as in GPT-NeoX."""
    heads = _heads(m)
    return lambda rows: rows.unflatten(0, (3, heads, -1)).transpose(0, 1).flatten(0, 2)


def _minus_one(weight: Tensor) -> Tensor:
    """Published Gemma files store norm weights as an offset from one."""
    return weight - 1


GPT2_WEIGHTS = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
ARCHITECTURES: dict[str, Architecture] = {
    each.name: each
    for each in (
        LLAMA,
        Architecture("qwen2", "qwen2", _qwen2),
        Architecture("qwen3", "qwen3", _qwen3),
        Architecture("gemma2", "gemma2", _gemma2, every_norm=_minus_one),
        Architecture("gemma3", "gemma3_text", _gemma3, every_norm=_minus_one),
        Architecture("phi3", "phi3", _phi3),
        Architecture("gpt2", "gpt2", _gpt2, {f"blk.{name}.weight": _transposed for name in GPT2_WEIGHTS}),
        Architecture(
            "gptneox", "gpt_neox", _gpt_neox, dict.fromkeys(("blk.attn_qkv.weight", "blk.attn_qkv.bias"), _by_head)
        ),
        Architecture("bert", "bert", _bert),
        Architecture("t5", "t5", _t5),
        Architecture("t5encoder", "t5", _t5),
    )
}
