"""Llama-like decoders: rotary positions, with norms, biases, windows and multipliers of their own."""

from dataclasses import replace
from typing import Any

from ...errors import CheckpointError
from ..family import (
    LAYER,
    Reader,
    Row,
    Source,
    SourceConfig,
    activation,
    flag,
    in_halves,
    number,
    rope,
    rotary_base,
    rotary_fraction,
    rotary_scaling,
    shown,
    swap_halves,
    unscaled,
    whole,
    without,
)
from .decoders import (
    FUSED_GATE_UP,
    GEMMA2,
    LLAMA_BLOCK,
    LLAMA_FIXED,
    LLAMA_WEIGHTS,
    QK_NORM,
    attention_biases,
    biases,
    llama_like,
    plus_one,
    sliding,
    sliding_unless_every,
    window_of,
)

NEIGHBOURS: dict[str, Row] = {  # rotary pairs of neighbouring features
    f"{LAYER}.attn.{part}": Source(f"layers.{{i}}.self_attn.{part}_proj", order=in_halves) for part in "qk"
}
AFTER = {  # norms after the sublayers
    f"{LAYER}.attn_out_norm": "layers.{i}.post_attention_layernorm",
    f"{LAYER}.mlp_out_norm": "layers.{i}.post_feedforward_layernorm",
}
BEFORE = (f"{LAYER}.attn_norm", f"{LAYER}.mlp_norm")  # norms before the sublayers
UNGATED = f"{LAYER}.mlp.gate"
UNGATED_WEIGHTS = without(LLAMA_WEIGHTS, UNGATED)
UNGATED_FIXED = without(LLAMA_BLOCK, "gated")
NO_BIASES_BUT_QKV = LLAMA_BLOCK | {"out_bias": False, "mlp_bias": False}
EPS_1E5 = number("rms_norm_eps", 1e-5)
LAYER_NORM_EPS = number("layer_norm_eps", 1e-5)
WIDE_HEADS: dict[str, Reader] = {"d_head": whole("head_dim", 128)}
TIED: dict[str, Reader] = {"tied": flag("tie_word_embeddings", True)}
HALF_ROTARY: dict[str, Reader] = {"rotary_fraction": rotary_fraction(default=0.5)}


def patterned(every: int) -> Reader:
    """Layers with a window: those in `layer_types`, or all except every n-th. None if sliding_window is null."""
    read = sliding_unless_every(every)
    return lambda c: None if c.values.get("sliding_window", 0) is None else read(c)


def full_layers(every: int) -> Reader:
    """Layers without a window; some models do not apply RoPE there."""

    def read(c: SourceConfig) -> tuple[int, ...]:
        windowed = patterned(every)(c)
        return () if windowed is None else tuple(i for i in range(c.int("num_hidden_layers")) if i not in windowed)

    return read


def _ministral_windowed(c: SourceConfig) -> tuple[int, ...] | None:
    return sliding(c) if "layer_types" in c and window_of(4096)(c) is not None else None


def _inverse(key: str) -> Reader:
    """Reciprocal of a number that logits are divided by."""

    def read(c: SourceConfig) -> float:
        value = c.float(key, 1.0)
        if value == 0:
            raise CheckpointError(f"{c.where}: {key} is 0, but logits are divided by it.")
        return 1 / value

    return read


def _nope_layers(c: SourceConfig) -> tuple[int, ...]:
    """Layers without RoPE: zeros in no_rope_layers, or every n-th layer."""
    n = c.int("num_hidden_layers")
    stated = c.any("no_rope_layers", None)
    if stated is None:
        every = c.int("no_rope_layer_interval", 4)
        return tuple(i for i in range(n) if every and (i + 1) % every == 0)
    if not isinstance(stated, list) or len(stated) != n or any(x not in (0, 1) for x in stated):
        raise CheckpointError(
            f"{c.where}: no_rope_layers is {shown(stated)}, but it must be a list of {n} numbers, 1 for a layer that turns."
        )
    return tuple(i for i, turns in enumerate(stated) if not turns)


def _cwm_windowed(c: SourceConfig) -> tuple[int, ...]:
    return sliding(c) if "layer_types" in c else tuple(i for i in range(c.int("num_hidden_layers")) if i % 4)


def _cwm_scaling(c: SourceConfig) -> Any:
    if "rope_parameters" not in c and "rope_scaling" not in c:
        raise CheckpointError(f"{c.where} has no rope_parameters, by which CWM stretches its positions.")
    return rotary_scaling(c)


_RESIDUAL = number("residual_multiplier", 1.0)
_GLM: dict[str, Any] = {
    "fields": WIDE_HEADS
    | HALF_ROTARY
    | {"norm_eps": number("rms_norm_eps", 1.5625e-07), "qkv_bias": flag("attention_bias", True)},
    "fixed": NO_BIASES_BUT_QKV,
    "weights": LLAMA_WEIGHTS | NEIGHBOURS | FUSED_GATE_UP,
}
_OLMO_FIXED = LLAMA_BLOCK | {"mlp_bias": False}
_OLMO2_FIXED = _OLMO_FIXED | {"norm_order": "after", "qk_norm": True, "qk_norm_place": "full"}
_OLMO2_FIELDS = attention_biases() | {"norm_eps": EPS_1E5}
_AFTER_WEIGHTS = without(LLAMA_WEIGHTS, *BEFORE) | QK_NORM | AFTER
_COHERE_FIELDS = attention_biases() | TIED | {"norm_eps": LAYER_NORM_EPS, "logit_scale": number("logit_scale", 0.0625)}
_COHERE_FIXED = LLAMA_BLOCK | {
    "norm": "layer",
    "norm_bias": False,
    "mlp_bias": False,
    "parallel": True,
    "shared_norm": True,
}
_COHERE_WEIGHTS = without(LLAMA_WEIGHTS, f"{LAYER}.mlp_norm") | NEIGHBOURS
_STABLE_PARALLEL = flag("use_parallel_residual", False)

LLAMA_LINE = (
    llama_like(
        "ministral",
        "Ministral",
        {"window": window_of(4096), "windowed_layers": _ministral_windowed},
        requires={"attention_bias": (False,)},
    ),
    llama_like(
        "ministral3",
        "Ministral 3",
        {
            "norm_eps": EPS_1E5,
            "window": window_of(None),
            "query_growth": lambda c: rope(c).float("llama_4_scaling_beta", 0.0),
            "query_growth_length": lambda c: rope(c).int("original_max_position_embeddings", 1),
        },
    ),
    llama_like(
        "apertus",
        "Apertus",
        attention_biases() | {"norm_eps": EPS_1E5, "activation": activation("hidden_act", "xielu")},
        fixed=UNGATED_FIXED | {"mlp_bias": False, "qk_norm": True},
        requires={"hidden_act": ("xielu",)},
        weights=UNGATED_WEIGHTS
        | QK_NORM
        | {
            f"{LAYER}.attn_norm": "layers.{i}.attention_layernorm",
            f"{LAYER}.mlp_norm": "layers.{i}.feedforward_layernorm",
            f"{LAYER}.mlp.activation.alpha_p": "layers.{i}.mlp.act_fn.alpha_p",
            f"{LAYER}.mlp.activation.alpha_n": "layers.{i}.mlp.act_fn.alpha_n",
        },
    ),
    llama_like(
        "seed_oss",
        "Seed-OSS",
        WIDE_HEADS
        | {
            "qkv_bias": flag("attention_bias", True),
            "out_bias": flag("attention_out_bias", False),
            "mlp_bias": flag("mlp_bias", False),
        },
        fixed=LLAMA_BLOCK,
    ),
    llama_like(
        "granite",
        "Granite",
        biases()
        | {
            "embed_scale": number("embedding_multiplier", 1.0),
            "attn_scale": number("attention_multiplier", 1.0),
            "logit_scale": _inverse("logits_scaling"),
        },
        fixed=LLAMA_BLOCK,
        weights=LLAMA_WEIGHTS
        | {
            f"{LAYER}.attn.o": Source("layers.{i}.self_attn.o_proj", times=_RESIDUAL),
            f"{LAYER}.mlp.down": Source("layers.{i}.mlp.down_proj", times=_RESIDUAL),
        },
    ),
    llama_like(
        "smollm3",
        "SmolLM3",
        biases() | TIED | {"unturned_layers": _nope_layers, "rotary_base": rotary_base(default=2_000_000.0)},
        fixed=LLAMA_BLOCK,
        requires={"use_sliding_window": (False,)},
    ),
    llama_like(
        "helium",
        "Helium",
        WIDE_HEADS
        | {
            "norm_eps": number("rms_norm_eps", 1e-8),
            "qkv_bias": flag("attention_bias", False),
            "mlp_bias": flag("mlp_bias", False),
        },
        fixed=LLAMA_BLOCK | {"out_bias": False},
        weights=LLAMA_WEIGHTS | NEIGHBOURS,
    ),
    llama_like(
        "ernie4_5",
        "ERNIE 4.5",
        biases("use_bias", "use_bias") | WIDE_HEADS | TIED | {"norm_eps": EPS_1E5},
        fixed=LLAMA_BLOCK,
        weights=LLAMA_WEIGHTS | NEIGHBOURS,
    ),
    llama_like(
        "hunyuan_v1_dense",
        "HunYuan",
        biases() | {"norm_eps": EPS_1E5, "rotary_scaling": unscaled},
        fixed=LLAMA_BLOCK | {"qk_norm": True, "qk_norm_place": "turned"},
        requires={"mlp_bias": (False,)},
        weights=LLAMA_WEIGHTS
        | {
            f"{LAYER}.attn.q_norm": "layers.{i}.self_attn.query_layernorm",
            f"{LAYER}.attn.k_norm": "layers.{i}.self_attn.key_layernorm",
        },
    ),
    llama_like("glm", "GLM", **_GLM),
    llama_like(
        "glm4",
        "GLM-4",
        _GLM["fields"],
        fixed=_GLM["fixed"] | {"norm_order": "sandwich"},
        weights=_GLM["weights"]
        | {
            f"{LAYER}.attn_out_norm": "layers.{i}.post_self_attn_layernorm",
            f"{LAYER}.mlp_out_norm": "layers.{i}.post_mlp_layernorm",
        },
    ),
    llama_like(
        "olmo",
        "OLMo",
        attention_biases(),
        left_out=["norm_eps"],
        fixed=_OLMO_FIXED | {"norm": "layer", "norm_weight": False, "norm_eps": 1e-5},
        requires={"clip_qkv": (None,)},
        weights=without(LLAMA_WEIGHTS, *BEFORE, "{stack}.norm"),
    ),
    llama_like("olmo2", "OLMo 2", _OLMO2_FIELDS, fixed=_OLMO2_FIXED, weights=_AFTER_WEIGHTS),
    llama_like(
        "olmo3",
        "OLMo 3",
        _OLMO2_FIELDS | {"window": window_of(4096), "windowed_layers": patterned(4), "rotary_scaling": unscaled},
        fixed=_OLMO2_FIXED,
        weights=_AFTER_WEIGHTS,
    ),
    llama_like(
        "exaone4",
        "EXAONE 4",
        {
            "norm_eps": EPS_1E5,
            "window": window_of(4096),
            "windowed_layers": patterned(4),
            "unturned_layers": full_layers(4),
        },
        fixed=LLAMA_FIXED | {"norm_order": "after", "qk_norm": True},
        weights=_AFTER_WEIGHTS,
    ),
    llama_like(
        "cohere",
        "Cohere Command",
        _COHERE_FIELDS,
        fixed=_COHERE_FIXED,
        requires={"use_qk_norm": (False,)},
        weights=_COHERE_WEIGHTS,
    ),
    llama_like(
        "cohere2",
        "Cohere Command 2",
        _COHERE_FIELDS
        | {"window": window_of(4096), "windowed_layers": patterned(4), "unturned_layers": full_layers(4)},
        fixed=_COHERE_FIXED,
        weights=_COHERE_WEIGHTS,
    ),
    llama_like(
        "stablelm",
        "StableLM",
        {
            "norm_eps": LAYER_NORM_EPS,
            "rotary_fraction": rotary_fraction(default=0.25),
            "qkv_bias": flag("use_qkv_bias", False),
            "parallel": _STABLE_PARALLEL,
            "shared_norm": _STABLE_PARALLEL,
        },
        fixed=NO_BIASES_BUT_QKV | {"norm": "layer"},
        requires={"qk_layernorm": (False,)},
    ),
    llama_like(
        "nemotron",
        "Nemotron",
        biases()
        | HALF_ROTARY
        | {"norm_eps": number("norm_eps", 1e-5), "activation": activation("hidden_act", "relu2")},
        fixed={"position": "rotary", "norm": "layer"},
        weights=UNGATED_WEIGHTS
        | plus_one(
            {
                f"{LAYER}.attn_norm.weight": "layers.{i}.input_layernorm.weight",
                f"{LAYER}.mlp_norm.weight": "layers.{i}.post_attention_layernorm.weight",
                "{stack}.norm.weight": "norm.weight",
            }
        ),
    ),
    llama_like(
        "nanochat",
        "nanochat",
        attention_biases()
        | {
            "activation": activation("hidden_act", "relu2"),
            "logit_softcap": lambda c: c.float(
                "final_logit_softcapping", None if "final_logit_softcapping" in c.values else 15.0
            ),
        },
        fixed=UNGATED_FIXED
        | {
            "norm_weight": False,
            "embed_norm": True,
            "mlp_bias": False,
            "qk_norm": True,
            "qk_norm_place": "turned",
        },
        weights=without(UNGATED_WEIGHTS, *BEFORE, "{stack}.norm")
        | {f"{LAYER}.attn.{part}": Source(f"layers.{{i}}.self_attn.{part}_proj", order=swap_halves) for part in "qk"}
        | {f"{LAYER}.mlp.up": "layers.{i}.mlp.fc1", f"{LAYER}.mlp.down": "layers.{i}.mlp.fc2"},
    ),
    llama_like(
        "starcoder2",
        "StarCoder2",
        biases("use_bias", "use_bias", True)
        | TIED
        | {
            "norm_eps": number("norm_epsilon", 1e-5),
            "activation": activation("hidden_act", "gelu_pytorch_tanh"),
            "window": window_of(None),
        },
        fixed={"position": "rotary", "norm": "layer"},
        weights=UNGATED_WEIGHTS
        | {f"{LAYER}.mlp.up": "layers.{i}.mlp.c_fc", f"{LAYER}.mlp.down": "layers.{i}.mlp.c_proj"},
    ),
    llama_like(
        "phi",
        "Phi-1 and Phi-2",
        HALF_ROTARY | {"norm_eps": LAYER_NORM_EPS, "activation": activation("hidden_act", "gelu_new")},
        fixed={"position": "rotary", "norm": "layer", "parallel": True, "shared_norm": True, "head_bias": True},
        requires={"qk_layernorm": (False,)},
        weights=without(UNGATED_WEIGHTS, f"{LAYER}.mlp_norm")
        | {
            f"{LAYER}.attn.o": "layers.{i}.self_attn.dense",
            f"{LAYER}.mlp.up": "layers.{i}.mlp.fc1",
            f"{LAYER}.mlp.down": "layers.{i}.mlp.fc2",
            "{stack}.norm": "final_layernorm",
        },
    ),
    llama_like(
        "arcee",
        "Arcee",
        biases() | {"norm_eps": EPS_1E5, "activation": activation("hidden_act", "relu2")},
        fixed=UNGATED_FIXED,
        weights=UNGATED_WEIGHTS,
    ),
    llama_like(
        "jais2",
        "Jais 2",
        biases(default=True) | {"norm_eps": LAYER_NORM_EPS, "activation": activation("hidden_act", "relu2")},
        fixed=UNGATED_FIXED | {"norm": "layer"},
        weights=UNGATED_WEIGHTS,
    ),
    llama_like(
        "hyperclovax",
        "HyperCLOVA X",
        biases()
        | {
            "embed_scale": number("embedding_multiplier", 1.0),
            "attn_scale": number("attention_multiplier", None),
            "logit_scale": number("logits_scaling", 1.0),
        },
        fixed=LLAMA_BLOCK | {"norm_order": "sandwich"},
        requires={"use_post_norm": (True,)},
        weights=LLAMA_WEIGHTS
        | {
            f"{LAYER}.attn_out_norm": Source("layers.{i}.post_norm1", times=_RESIDUAL),
            f"{LAYER}.mlp_out_norm": Source("layers.{i}.post_norm2", times=_RESIDUAL),
        },
    ),
    llama_like(
        "internlm3",
        "InternLM 3",
        biases() | WIDE_HEADS | {"norm_eps": EPS_1E5, "n_kv_heads": whole("num_key_value_heads", 2)},
        fixed=LLAMA_BLOCK,
        requires={"qkv_bias": (False,), "bias": (False,)},  # older keys; one excludes the last matrix
    ),
    llama_like(
        "iquestcoder",
        "IQuest-Coder",
        biases() | WIDE_HEADS | {"norm_eps": EPS_1E5, "n_kv_heads": whole("num_key_value_heads", 8)},
        fixed=LLAMA_BLOCK,
        requires={"clip_qkv": (None,), "use_sliding_window": (False,)},
    ),
    llama_like(
        "cwm",
        "CWM",
        WIDE_HEADS
        | {
            "norm_eps": EPS_1E5,
            "mlp_bias": flag("mlp_bias", False),
            "window": window_of(8192),
            "windowed_layers": _cwm_windowed,
            "rotary_scaling": _cwm_scaling,
        },
        fixed=LLAMA_BLOCK | {"qkv_bias": False, "out_bias": False},
    ),
    replace(
        GEMMA2,
        model_type="vaultgemma",
        title="VaultGemma",
        fixed={**GEMMA2.fixed, "norm_order": "pre"},
        weights=without(GEMMA2.weights, f"{LAYER}.attn_out_norm", f"{LAYER}.mlp_out_norm"),
    ),
)
