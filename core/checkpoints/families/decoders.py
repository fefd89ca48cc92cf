"""Decoders: GPT-2, Llama, Mistral, Qwen, Gemma, Phi-3, GPT-NeoX and OPT. With `is_causal` false each of them is an encoder."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from ...errors import CheckpointError
from ..family import (
    GATE_UP,
    LAYER,
    Family,
    Reader,
    Row,
    Source,
    SourceConfig,
    activation,
    all_turns,
    causal,
    conv1d,
    flag,
    fused,
    number,
    phi3_scaling,
    rope,
    rotary_base,
    rotary_fraction,
    rotary_scaling,
    shown,
    whole,
    wholes,
    without,
)

GPT_SIZES = wholes(
    vocab_size="vocab_size", d_model="n_embd", n_heads="n_head", n_decoder_layers="n_layer", n_ctx="n_positions"
)
SIZES = wholes(
    vocab_size="vocab_size",
    d_model="hidden_size",
    n_heads="num_attention_heads",
    d_ff="intermediate_size",
    n_decoder_layers="num_hidden_layers",
    n_ctx="max_position_embeddings",
)

GPT2 = Family(
    model_type="gpt2",
    title="GPT-2",
    prefix="transformer.",
    fields=GPT_SIZES
    | {
        "causal": causal,
        "d_ff": lambda c: c.int("n_inner", None) or 4 * c.int("n_embd"),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "activation": activation("activation_function", "gelu_new"),
        "attn_scale": lambda c: None if c.bool("scale_attn_weights", True) else 1.0,
        "tied": flag("tie_word_embeddings", True),
    },
    requires={"scale_attn_by_inverse_layer_idx": (False,), "add_cross_attention": (False,)},
    weights={
        "{stack}.embed.token": "wte",
        "{stack}.embed.position": "wpe",
        f"{LAYER}.attn_norm": "h.{i}.ln_1",
        f"{LAYER}.attn.q": conv1d("h.{i}.attn.c_attn", "q"),
        f"{LAYER}.attn.k": conv1d("h.{i}.attn.c_attn", "k"),
        f"{LAYER}.attn.v": conv1d("h.{i}.attn.c_attn", "v"),
        f"{LAYER}.attn.o": conv1d("h.{i}.attn.c_proj"),
        f"{LAYER}.mlp_norm": "h.{i}.ln_2",
        f"{LAYER}.mlp.up": conv1d("h.{i}.mlp.c_fc"),
        f"{LAYER}.mlp.down": conv1d("h.{i}.mlp.c_proj"),
        "{stack}.norm": "ln_f",
        "head.unembed": "lm_head",
    },
)

LLAMA_WEIGHTS: dict[str, Row] = {
    "{stack}.embed.token": "embed_tokens",
    f"{LAYER}.attn_norm": "layers.{i}.input_layernorm",
    f"{LAYER}.attn.q": "layers.{i}.self_attn.q_proj",
    f"{LAYER}.attn.k": "layers.{i}.self_attn.k_proj",
    f"{LAYER}.attn.v": "layers.{i}.self_attn.v_proj",
    f"{LAYER}.attn.o": "layers.{i}.self_attn.o_proj",
    f"{LAYER}.mlp_norm": "layers.{i}.post_attention_layernorm",
    f"{LAYER}.mlp.gate": "layers.{i}.mlp.gate_proj",
    f"{LAYER}.mlp.up": "layers.{i}.mlp.up_proj",
    f"{LAYER}.mlp.down": "layers.{i}.mlp.down_proj",
    "{stack}.norm": "norm",
    "head.unembed": "lm_head",
}
QK_NORM = {
    f"{LAYER}.attn.q_norm": "layers.{i}.self_attn.q_norm",
    f"{LAYER}.attn.k_norm": "layers.{i}.self_attn.k_norm",
}
LLAMA_FIELDS: dict[str, Reader] = SIZES | {
    "n_kv_heads": whole("num_key_value_heads", 0),
    "d_head": whole("head_dim", 0),
    "causal": causal,
    "norm_eps": number("rms_norm_eps", 1e-6),
    "activation": activation("hidden_act", "silu"),
    "tied": flag("tie_word_embeddings", False),
    "rotary_base": rotary_base(),
    "rotary_fraction": all_turns,
    "rotary_scaling": rotary_scaling,
}
LLAMA_BLOCK = {"position": "rotary", "norm": "rms", "gated": True}  # fixed values except those of biases
LLAMA_FIXED = LLAMA_BLOCK | {"qkv_bias": False, "out_bias": False, "mlp_bias": False}
NO_BIAS = {"attention_bias": (False,), "mlp_bias": (False,)}


def llama_like(
    model_type: str,
    title: str,
    fields: Mapping[str, Reader],
    *,
    left_out: Collection[str] = (),
    **options: Any,
) -> Family:
    """A family with Llama's tensors and fields, changed by `fields`, without those in `left_out`, and with `options` of Family."""
    llama: dict[str, Any] = {"prefix": "model.", "fixed": LLAMA_FIXED, "weights": LLAMA_WEIGHTS}
    own_fields = {**without(LLAMA_FIELDS, *left_out), **fields}
    return Family(model_type=model_type, title=title, fields=own_fields, **(llama | options))


def biases(attention: str = "attention_bias", mlp: str = "mlp_bias", default: bool = False) -> dict[str, Reader]:
    return attention_biases(attention, default) | {"mlp_bias": flag(mlp, default)}


def attention_biases(key: str = "attention_bias", default: bool = False) -> dict[str, Reader]:
    return {"qkv_bias": flag(key, default), "out_bias": flag(key, default)}


LLAMA = llama_like("llama", "Llama", biases(), fixed=LLAMA_BLOCK)


def _both_ways(c: SourceConfig, window: int | None) -> int | None:
    """Window of a model that is not causal: published ones include the token at exactly their width, causal ones exclude it."""
    return window if window is None or causal(c) else window + 1


def stated_window(c: SourceConfig, default: int | None) -> int | None:
    """`sliding_window`: `default` if the key is absent, no window if it is null."""
    return None if c.values.get("sliding_window", default) is None else c.int("sliding_window", default)


def window_of(default: int | None) -> Reader:
    return lambda c: _both_ways(c, stated_window(c, default))


MISTRAL = llama_like("mistral", "Mistral", {"window": window_of(4096)}, requires={"attention_bias": (False,)})


def sliding(c: SourceConfig) -> tuple[int, ...]:
    """Layers that `layer_types` names as sliding."""
    types = c.strings("layer_types")
    if unknown := sorted(set(types) - {"sliding_attention", "full_attention"}):
        raise CheckpointError(
            f"{c.where}: layers of type {shown(unknown[0])} are not supported. Supported are full_attention and sliding_attention."
        )
    if len(types) != c.int("num_hidden_layers"):
        raise CheckpointError(
            f"{c.where}: layer_types names {len(types)} layers, but num_hidden_layers is {c.int('num_hidden_layers')}."
        )
    return tuple(i for i, name in enumerate(types) if name == "sliding_attention")


def sliding_unless_every(every: int, key: str = "sliding_window_pattern") -> Reader:
    """Layers with a window: those in `layer_types`, or all except every n-th, where `key` is n."""

    def read(c: SourceConfig) -> tuple[int, ...]:
        if "layer_types" in c:
            return sliding(c)
        step = c.int(key, every)
        if step < 1:
            raise CheckpointError(f"{c.where}: {key} is {step}, but it must be at least 1.")
        return tuple(i for i in range(c.int("num_hidden_layers")) if (i + 1) % step)

    return read


def even_layers(c: SourceConfig) -> tuple[int, ...]:
    """Layers with a window: those in `layer_types`, or every other layer, starting with the first."""
    return sliding(c) if "layer_types" in c else tuple(range(0, c.int("num_hidden_layers"), 2))


def _qwen_window(c: SourceConfig) -> int | None:
    return window_of(4096)(c) if c.bool("use_sliding_window", False) else None


def _qwen_windowed(c: SourceConfig) -> tuple[int, ...] | None:
    """Layers with a window: those in `layer_types`, or the upper layers."""
    if _qwen_window(c) is None:
        return None
    if "layer_types" in c:
        return sliding(c)
    return tuple(range(c.int("max_window_layers", 28), c.int("num_hidden_layers")))


QWEN_FIELDS: dict[str, Reader] = {"window": _qwen_window, "windowed_layers": _qwen_windowed}
QWEN2 = llama_like("qwen2", "Qwen2", QWEN_FIELDS, fixed=LLAMA_FIXED | {"qkv_bias": True})
QWEN3 = llama_like(
    "qwen3",
    "Qwen3",
    QWEN_FIELDS | {"d_head": whole("head_dim", 128)},
    fixed=LLAMA_FIXED | {"qk_norm": True},
    requires=NO_BIAS,
    weights=LLAMA_WEIGHTS | QK_NORM,
)


def plus_one(rows: Mapping[str, str]) -> dict[str, Source]:
    """Rows of norms whose weights are stored as an offset from one, as in Gemma."""
    return {ours: Source(theirs, plus_one=True) for ours, theirs in rows.items()}


SANDWICH = plus_one(
    {
        f"{LAYER}.attn_norm": "layers.{i}.input_layernorm",
        f"{LAYER}.attn_out_norm": "layers.{i}.post_attention_layernorm",
        f"{LAYER}.mlp_norm": "layers.{i}.pre_feedforward_layernorm",
        f"{LAYER}.mlp_out_norm": "layers.{i}.post_feedforward_layernorm",
        "{stack}.norm": "norm",
    }
)
_GEMMA_FIELDS: dict[str, Reader] = {
    "d_head": whole("head_dim", 256),
    "activation": activation("hidden_activation", "gelu_pytorch_tanh"),
    "tied": flag("tie_word_embeddings", True),
    "embed_scale": lambda c: math.sqrt(c.int("hidden_size")),
    "attn_scale": lambda c: max(c.float("query_pre_attn_scalar", 256.0), 1e-6) ** -0.5,
    "window": window_of(4096),
}
_GEMMA_REQUIRES: dict[str, tuple[object, ...]] = {"attention_bias": (False,)}


def softcap(key: str, default: float | None) -> Reader:
    """Limit of the tanh that caps scores or logits: none if the key is null, `default` if it is absent."""
    return lambda c: c.float(key, None) if key in c.values else default


def _gemma_activation(c: SourceConfig) -> str:
    """The first release states "gelu" and means its tanh form; GemmaConfig reads it so, and ignores `hidden_activation`."""
    return "gelu_tanh" if c.values.get("hidden_act") == "gelu" else activation("hidden_act", "gelu_new")(c)


GEMMA = llama_like(
    "gemma",
    "Gemma",
    without(_GEMMA_FIELDS, "attn_scale", "window") | {"activation": _gemma_activation},
    requires=_GEMMA_REQUIRES | {"use_bidirectional_attention": (False,)},
    weights=LLAMA_WEIGHTS
    | plus_one(
        {
            f"{LAYER}.attn_norm": "layers.{i}.input_layernorm",
            f"{LAYER}.mlp_norm": "layers.{i}.post_attention_layernorm",
            "{stack}.norm": "norm",
        }
    ),
)
GEMMA2 = llama_like(
    "gemma2",
    "Gemma 2",
    _GEMMA_FIELDS
    | {
        "score_softcap": softcap("attn_logit_softcapping", 50.0),
        "logit_softcap": softcap("final_logit_softcapping", 30.0),
        "windowed_layers": even_layers,
    },
    fixed=LLAMA_FIXED | {"norm_order": "sandwich"},
    # Published code passes this flag to some kernels and not to the mask, so they disagree.
    requires=_GEMMA_REQUIRES | {"use_bidirectional_attention": (False,)},
    weights=LLAMA_WEIGHTS | SANDWICH,
)


def _gemma3_local_base(c: SourceConfig) -> float:
    if "sliding_attention" not in c.inside("rope_parameters").values:
        return c.float("rope_local_base_freq", 10_000.0)
    local = rope(c, "sliding_attention")
    if (kind := local.str("rope_type", "default")) != "default":
        raise CheckpointError(
            f"{local.where}: rotary positions of type {shown(kind)} are not supported for layers with a window."
        )
    return local.float("rope_theta", 10_000.0)


def _gemma3_causal(c: SourceConfig) -> bool:
    """Gemma 3 has its own key for bidirectional models (EmbeddingGemma)."""
    return causal(c) and not c.bool("use_bidirectional_attention", False)


def _gemma3_window(c: SourceConfig) -> int | None:
    """Window in tokens; a bidirectional model has half of it on each side."""
    window = stated_window(c, 4096)
    halved = window is not None and c.bool("use_bidirectional_attention", False)
    return _both_ways(c, window // 2 + 1 if halved else window)


GEMMA3 = llama_like(
    "gemma3_text",
    "Gemma 3 (text)",
    _GEMMA_FIELDS
    | {
        "logit_softcap": softcap("final_logit_softcapping", None),  # its class never applies attn_logit_softcapping
        "causal": _gemma3_causal,
        "window": _gemma3_window,
        "windowed_layers": sliding_unless_every(6),
        "rotary_base": rotary_base(default=1_000_000.0),
        "rotary_base_windowed": _gemma3_local_base,
    },
    fixed=LLAMA_FIXED | {"norm_order": "sandwich", "qk_norm": True},
    requires=_GEMMA_REQUIRES,
    weights=LLAMA_WEIGHTS | SANDWICH | plus_one(QK_NORM),
)
FUSED_GATE_UP = fused(f"{LAYER}.mlp", "layers.{i}.mlp.gate_up_proj", GATE_UP)
PHI3 = llama_like(
    "phi3",
    "Phi-3",
    {"window": window_of(None), "rotary_fraction": rotary_fraction(), "rotary_scaling": phi3_scaling},
    requires=NO_BIAS,
    weights=LLAMA_WEIGHTS | fused(f"{LAYER}.attn", "layers.{i}.self_attn.qkv_proj") | FUSED_GATE_UP,
)

GPT_NEOX = Family(
    model_type="gpt_neox",
    title="GPT-NeoX and Pythia",
    prefix="gpt_neox.",
    fields=SIZES
    | attention_biases(default=True)
    | {
        "causal": causal,
        "norm_eps": number("layer_norm_eps", 1e-5),
        "activation": activation("hidden_act", "gelu"),
        "parallel": flag("use_parallel_residual", True),
        "tied": flag("tie_word_embeddings", False),
        "rotary_base": rotary_base("rotary_emb_base"),
        "rotary_fraction": rotary_fraction("rotary_pct", 0.25),
        "rotary_scaling": rotary_scaling,
    },
    fixed={"position": "rotary"},
    weights={
        "{stack}.embed.token": "embed_in",
        f"{LAYER}.attn_norm": "layers.{i}.input_layernorm",
        f"{LAYER}.mlp_norm": "layers.{i}.post_attention_layernorm",
        f"{LAYER}.attn.o": "layers.{i}.attention.dense",
        f"{LAYER}.mlp.up": "layers.{i}.mlp.dense_h_to_4h",
        f"{LAYER}.mlp.down": "layers.{i}.mlp.dense_4h_to_h",
        "{stack}.norm": "final_layer_norm",
        "head.unembed": ("embed_out", "lm_head"),
    }
    | fused(f"{LAYER}.attn", "layers.{i}.attention.query_key_value", per_head=True),
)


def _opt_width(c: SourceConfig) -> int:
    """0, the default d_head. Refuses OPT-350m, which projects its word vectors to the width of its layers."""
    width, words = c.int("hidden_size"), c.int("word_embed_proj_dim", None)
    if words is not None and words != width:
        raise CheckpointError(
            f"{c.where}: word_embed_proj_dim is {words} and hidden_size is {width}; an OPT whose word vectors have another width "
            "than its layers (OPT-350m) is not supported. Other OPT models are."
        )
    return 0


FAIRSEQ_LAYER = {
    f"{LAYER}.attn_norm": "layers.{i}.self_attn_layer_norm",
    f"{LAYER}.attn.q": "layers.{i}.self_attn.q_proj",
    f"{LAYER}.attn.k": "layers.{i}.self_attn.k_proj",
    f"{LAYER}.attn.v": "layers.{i}.self_attn.v_proj",
    f"{LAYER}.attn.o": "layers.{i}.self_attn.out_proj",
    f"{LAYER}.mlp_norm": "layers.{i}.final_layer_norm",
    f"{LAYER}.mlp.up": "layers.{i}.fc1",
    f"{LAYER}.mlp.down": "layers.{i}.fc2",
}
OPT = Family(
    model_type="opt",
    title="OPT",
    prefix="model.",
    fields=SIZES
    | {
        "d_ff": whole("ffn_dim"),
        "causal": causal,
        "activation": activation("activation_function", "relu"),
        "tied": flag("tie_word_embeddings", True),
        "d_head": _opt_width,
    },
    fixed={"position_offset": 2, "position_counts": "seen"},
    requires={
        "do_layer_norm_before": (True,),
        "enable_bias": (True,),
        "layer_norm_elementwise_affine": (True,),
        "_remove_final_layer_norm": (False,),
    },
    weights={ours: f"decoder.{theirs}" for ours, theirs in FAIRSEQ_LAYER.items()}
    | {
        "{stack}.embed.token": "decoder.embed_tokens",
        "{stack}.embed.position": "decoder.embed_positions",
        "{stack}.norm": "decoder.final_layer_norm",
        "head.unembed": "lm_head",
    },
)

DECODERS = (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA, GEMMA2, GEMMA3, PHI3, GPT_NEOX, OPT)
