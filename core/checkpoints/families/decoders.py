"""Decoders: GPT-2, the Llama line, Gemma, Phi-3, GPT-NeoX and OPT."""

import math

from ...errors import CheckpointError
from ..family import Family, Reader, Source, Theirs, activation, conv1d, flag, number, shown, whole
from ..rotary import rope, rotary_base, rotary_fraction, rotary_scaling, unscaled

GPT2 = Family(
    model_type="gpt2",
    title="GPT-2",
    prefix="transformer.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("n_embd"),
        "n_heads": whole("n_head"),
        "n_decoder_layers": whole("n_layer"),
        "n_ctx": whole("n_positions"),
        "d_ff": lambda c: c.int("n_inner", None) or 4 * c.int("n_embd"),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "activation": activation("activation_function", "gelu_new"),
        "attn_scale": lambda c: None if c.bool("scale_attn_weights", True) else 1.0,
        "tied": flag("tie_word_embeddings", True),
    },
    requires={"scale_attn_by_inverse_layer_idx": (False,), "add_cross_attention": (False,)},
    weights={
        "decoder.embed.token": "wte",
        "decoder.embed.position": "wpe",
        "decoder.blocks.{i}.attn_norm": "h.{i}.ln_1",
        "decoder.blocks.{i}.attn.q": conv1d("h.{i}.attn.c_attn", "q"),
        "decoder.blocks.{i}.attn.k": conv1d("h.{i}.attn.c_attn", "k"),
        "decoder.blocks.{i}.attn.v": conv1d("h.{i}.attn.c_attn", "v"),
        "decoder.blocks.{i}.attn.o": conv1d("h.{i}.attn.c_proj"),
        "decoder.blocks.{i}.mlp_norm": "h.{i}.ln_2",
        "decoder.blocks.{i}.mlp.up": conv1d("h.{i}.mlp.c_fc"),
        "decoder.blocks.{i}.mlp.down": conv1d("h.{i}.mlp.c_proj"),
        "decoder.norm": "ln_f",
        "head.unembed": "lm_head",
    },
)

_LLAMA_WEIGHTS = {
    "decoder.embed.token": "embed_tokens",
    "decoder.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
    "decoder.blocks.{i}.attn.q": "layers.{i}.self_attn.q_proj",
    "decoder.blocks.{i}.attn.k": "layers.{i}.self_attn.k_proj",
    "decoder.blocks.{i}.attn.v": "layers.{i}.self_attn.v_proj",
    "decoder.blocks.{i}.attn.o": "layers.{i}.self_attn.o_proj",
    "decoder.blocks.{i}.mlp_norm": "layers.{i}.post_attention_layernorm",
    "decoder.blocks.{i}.mlp.gate": "layers.{i}.mlp.gate_proj",
    "decoder.blocks.{i}.mlp.up": "layers.{i}.mlp.up_proj",
    "decoder.blocks.{i}.mlp.down": "layers.{i}.mlp.down_proj",
    "decoder.norm": "norm",
    "head.unembed": "lm_head",
}
_QK_NORM = {
    "decoder.blocks.{i}.attn.q_norm": "layers.{i}.self_attn.q_norm",
    "decoder.blocks.{i}.attn.k_norm": "layers.{i}.self_attn.k_norm",
}
_LLAMA_FIELDS: dict[str, Reader] = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_heads": whole("num_attention_heads"),
    "n_kv_heads": whole("num_key_value_heads", 0),
    "d_head": whole("head_dim", 0),
    "d_ff": whole("intermediate_size"),
    "n_decoder_layers": whole("num_hidden_layers"),
    "n_ctx": whole("max_position_embeddings"),
    "norm_eps": number("rms_norm_eps", 1e-6),
    "activation": activation("hidden_act", "silu"),
    "tied": flag("tie_word_embeddings", False),
    "rotary_base": rotary_base(),
    "rotary_fraction": rotary_fraction(),
    "rotary_scaling": rotary_scaling,
}
_LLAMA_FIXED = {
    "position": "rotary",
    "norm": "rms",
    "gated": True,
    "qkv_bias": False,
    "out_bias": False,
    "mlp_bias": False,
}
_NO_BIAS = {"attention_bias": (False,), "mlp_bias": (False,)}

LLAMA = Family(
    model_type="llama",
    title="Llama",
    prefix="model.",
    fields=_LLAMA_FIELDS
    | {
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
        "mlp_bias": flag("mlp_bias", False),
    },
    fixed={k: v for k, v in _LLAMA_FIXED.items() if not k.endswith("_bias")},
    weights=_LLAMA_WEIGHTS,
)
MISTRAL = Family(
    model_type="mistral",
    title="Mistral",
    prefix="model.",
    fields=_LLAMA_FIELDS | {"window": whole("sliding_window", None)},
    fixed=_LLAMA_FIXED,
    requires={"attention_bias": (False,)},
    weights=_LLAMA_WEIGHTS,
)


def _qwen_window(c: Theirs) -> int | None:
    return c.int("sliding_window", 4096) if c.bool("use_sliding_window", False) else None


def _qwen_windowed(c: Theirs) -> tuple[int, ...] | None:
    """The upper layers have the window, unless the file names the type of every layer."""
    if _qwen_window(c) is None:
        return None
    if "layer_types" in c:
        return _sliding(c)
    return tuple(range(c.int("max_window_layers", 28), c.int("num_hidden_layers")))


def _sliding(c: Theirs) -> tuple[int, ...]:
    """Which layers `layer_types` calls sliding."""
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


_QWEN_FIELDS = _LLAMA_FIELDS | {"window": _qwen_window, "windowed_layers": _qwen_windowed}
QWEN2 = Family(
    model_type="qwen2",
    title="Qwen2",
    prefix="model.",
    fields=_QWEN_FIELDS,
    fixed=_LLAMA_FIXED | {"qkv_bias": True},
    weights=_LLAMA_WEIGHTS,
)
QWEN3 = Family(
    model_type="qwen3",
    title="Qwen3",
    prefix="model.",
    fields=_QWEN_FIELDS | {"d_head": whole("head_dim", 128)},
    fixed=_LLAMA_FIXED | {"qk_norm": True},
    requires=_NO_BIAS,
    weights=_LLAMA_WEIGHTS | _QK_NORM,
)


def _plus_one(rows: dict[str, str]) -> dict[str, Source]:
    """Gemma's norms multiply by one plus what the file holds."""
    return {ours: Source(theirs, plus_one=True) for ours, theirs in rows.items()}


_SANDWICH = _plus_one(
    {
        "decoder.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
        "decoder.blocks.{i}.attn_out_norm": "layers.{i}.post_attention_layernorm",
        "decoder.blocks.{i}.mlp_norm": "layers.{i}.pre_feedforward_layernorm",
        "decoder.blocks.{i}.mlp_out_norm": "layers.{i}.post_feedforward_layernorm",
        "decoder.norm": "norm",
    }
)
_GEMMA_FIELDS = _LLAMA_FIELDS | {
    "d_head": whole("head_dim", 256),
    "activation": activation("hidden_activation", "gelu_pytorch_tanh"),
    "tied": flag("tie_word_embeddings", True),
    "embed_scale": lambda c: math.sqrt(c.int("hidden_size")),
    "attn_scale": lambda c: max(c.float("query_pre_attn_scalar", 256.0), 1e-6) ** -0.5,
    "window": whole("sliding_window", 4096),
}
# A tanh over the scores is not one of the steps that we show.
_NO_SOFTCAP = {"attn_logit_softcapping": (None,), "final_logit_softcapping": (None,)}
_GEMMA_REQUIRES = _NO_SOFTCAP | {"attention_bias": (False,), "use_bidirectional_attention": (False,)}


def _gemma2_windowed(c: Theirs) -> tuple[int, ...]:
    return _sliding(c) if "layer_types" in c else tuple(range(0, c.int("num_hidden_layers"), 2))


GEMMA2 = Family(
    model_type="gemma2",
    title="Gemma 2 (without softcapping)",
    prefix="model.",
    fields=_GEMMA_FIELDS | {"windowed_layers": _gemma2_windowed},
    fixed=_LLAMA_FIXED | {"norm_order": "sandwich"},
    requires=_GEMMA_REQUIRES,
    weights=_LLAMA_WEIGHTS | _SANDWICH,
)


def _gemma3_windowed(c: Theirs) -> tuple[int, ...]:
    if "layer_types" in c:
        return _sliding(c)
    every = c.int("sliding_window_pattern", 6)
    if every < 1:
        raise CheckpointError(f"{c.where}: sliding_window_pattern is {every}, but it must be at least 1.")
    return tuple(i for i in range(c.int("num_hidden_layers")) if (i + 1) % every)


def _gemma3_local_base(c: Theirs) -> float:
    local = rope(c, "sliding_attention")
    if (kind := local.str("rope_type", "default")) != "default" and "sliding_attention" in c.inside(
        "rope_parameters"
    ).values:
        raise CheckpointError(
            f"{local.where}: rotary positions of type {shown(kind)} are not supported for layers with a window."
        )
    if "sliding_attention" in c.inside("rope_parameters").values:
        return local.float("rope_theta", 10_000.0)
    return c.float("rope_local_base_freq", 10_000.0)


GEMMA3 = Family(
    model_type="gemma3_text",
    title="Gemma 3 (text)",
    prefix="model.",
    fields=_GEMMA_FIELDS
    | {
        "windowed_layers": _gemma3_windowed,
        "rotary_base": rotary_base(default=1_000_000.0),
        "rotary_base_windowed": _gemma3_local_base,
    },
    fixed=_LLAMA_FIXED | {"norm_order": "sandwich", "qk_norm": True},
    requires=_GEMMA_REQUIRES,
    weights=_LLAMA_WEIGHTS | _SANDWICH | _plus_one(_QK_NORM),
)

_QKV, _GATE_UP = ("q", "k", "v"), ("gate", "up")
PHI3 = Family(
    model_type="phi3",
    title="Phi-3",
    prefix="model.",
    fields=_LLAMA_FIELDS | {"window": whole("sliding_window", None), "rotary_scaling": unscaled},
    fixed=_LLAMA_FIXED,
    requires=_NO_BIAS,
    weights=_LLAMA_WEIGHTS
    | {f"decoder.blocks.{{i}}.attn.{p}": Source("layers.{i}.self_attn.qkv_proj", fused=_QKV, part=p) for p in _QKV}
    | {
        f"decoder.blocks.{{i}}.mlp.{p}": Source("layers.{i}.mlp.gate_up_proj", fused=_GATE_UP, part=p) for p in _GATE_UP
    },
)

GPT_NEOX = Family(
    model_type="gpt_neox",
    title="GPT-NeoX and Pythia",
    prefix="gpt_neox.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_heads": whole("num_attention_heads"),
        "d_ff": whole("intermediate_size"),
        "n_decoder_layers": whole("num_hidden_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "norm_eps": number("layer_norm_eps", 1e-5),
        "activation": activation("hidden_act", "gelu"),
        "parallel": flag("use_parallel_residual", True),
        "qkv_bias": flag("attention_bias", True),
        "out_bias": flag("attention_bias", True),
        "tied": flag("tie_word_embeddings", False),
        "rotary_base": rotary_base("rotary_emb_base"),
        "rotary_fraction": rotary_fraction("rotary_pct", 0.25),
        "rotary_scaling": rotary_scaling,
    },
    fixed={"position": "rotary"},
    weights={
        "decoder.embed.token": "embed_in",
        "decoder.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
        "decoder.blocks.{i}.mlp_norm": "layers.{i}.post_attention_layernorm",
        "decoder.blocks.{i}.attn.o": "layers.{i}.attention.dense",
        "decoder.blocks.{i}.mlp.up": "layers.{i}.mlp.dense_h_to_4h",
        "decoder.blocks.{i}.mlp.down": "layers.{i}.mlp.dense_4h_to_h",
        "decoder.norm": "final_layer_norm",
        "head.unembed": ("embed_out", "lm_head"),
    }
    | {
        f"decoder.blocks.{{i}}.attn.{part}": Source(
            "layers.{i}.attention.query_key_value", fused=_QKV, part=part, per_head=True
        )
        for part in _QKV
    },
)

OPT = Family(
    model_type="opt",
    title="OPT",
    prefix="model.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_heads": whole("num_attention_heads"),
        "d_ff": whole("ffn_dim"),
        "n_decoder_layers": whole("num_hidden_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "activation": activation("activation_function", "relu"),
        "tied": flag("tie_word_embeddings", True),
        "d_head": lambda c: _opt_width(c),
    },
    fixed={"position_offset": 2},
    requires={
        "do_layer_norm_before": (True,),
        "enable_bias": (True,),
        "layer_norm_elementwise_affine": (True,),
        "_remove_final_layer_norm": (False,),
    },
    weights={
        "decoder.embed.token": "decoder.embed_tokens",
        "decoder.embed.position": "decoder.embed_positions",
        "decoder.blocks.{i}.attn_norm": "decoder.layers.{i}.self_attn_layer_norm",
        "decoder.blocks.{i}.attn.q": "decoder.layers.{i}.self_attn.q_proj",
        "decoder.blocks.{i}.attn.k": "decoder.layers.{i}.self_attn.k_proj",
        "decoder.blocks.{i}.attn.v": "decoder.layers.{i}.self_attn.v_proj",
        "decoder.blocks.{i}.attn.o": "decoder.layers.{i}.self_attn.out_proj",
        "decoder.blocks.{i}.mlp_norm": "decoder.layers.{i}.final_layer_norm",
        "decoder.blocks.{i}.mlp.up": "decoder.layers.{i}.fc1",
        "decoder.blocks.{i}.mlp.down": "decoder.layers.{i}.fc2",
        "decoder.norm": "decoder.final_layer_norm",
        "head.unembed": "lm_head",
    },
)


def _opt_width(c: Theirs) -> int:
    """OPT-350m alone widens its word vectors on the way in; that projection is not one of our parts."""
    width, words = c.int("hidden_size"), c.int("word_embed_proj_dim", None)
    if words is not None and words != width:
        raise CheckpointError(
            f"{c.where}: word_embed_proj_dim is {words} and hidden_size is {width}; an OPT whose word vectors have another width "
            "than its layers (OPT-350m) is not supported. Other OPT models are."
        )
    return 0


DECODERS = (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA2, GEMMA3, PHI3, GPT_NEOX, OPT)
