"""Decoders: GPT-2, the Llama line, Gemma, Phi-3, GPT-NeoX and OPT. With `is_causal` false each of them is an encoder."""

import math

from ...errors import CheckpointError
from ..family import Family, Reader, Source, Theirs, activation, causal, conv1d, flag, number, shown, whole
from ..rotary import all_turns, phi3_scaling, rope, rotary_base, rotary_fraction, rotary_scaling

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
        "{stack}.blocks.{i}.attn_norm": "h.{i}.ln_1",
        "{stack}.blocks.{i}.attn.q": conv1d("h.{i}.attn.c_attn", "q"),
        "{stack}.blocks.{i}.attn.k": conv1d("h.{i}.attn.c_attn", "k"),
        "{stack}.blocks.{i}.attn.v": conv1d("h.{i}.attn.c_attn", "v"),
        "{stack}.blocks.{i}.attn.o": conv1d("h.{i}.attn.c_proj"),
        "{stack}.blocks.{i}.mlp_norm": "h.{i}.ln_2",
        "{stack}.blocks.{i}.mlp.up": conv1d("h.{i}.mlp.c_fc"),
        "{stack}.blocks.{i}.mlp.down": conv1d("h.{i}.mlp.c_proj"),
        "{stack}.norm": "ln_f",
        "head.unembed": "lm_head",
    },
)

LLAMA_WEIGHTS = {
    "{stack}.embed.token": "embed_tokens",
    "{stack}.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
    "{stack}.blocks.{i}.attn.q": "layers.{i}.self_attn.q_proj",
    "{stack}.blocks.{i}.attn.k": "layers.{i}.self_attn.k_proj",
    "{stack}.blocks.{i}.attn.v": "layers.{i}.self_attn.v_proj",
    "{stack}.blocks.{i}.attn.o": "layers.{i}.self_attn.o_proj",
    "{stack}.blocks.{i}.mlp_norm": "layers.{i}.post_attention_layernorm",
    "{stack}.blocks.{i}.mlp.gate": "layers.{i}.mlp.gate_proj",
    "{stack}.blocks.{i}.mlp.up": "layers.{i}.mlp.up_proj",
    "{stack}.blocks.{i}.mlp.down": "layers.{i}.mlp.down_proj",
    "{stack}.norm": "norm",
    "head.unembed": "lm_head",
}
QK_NORM = {
    "{stack}.blocks.{i}.attn.q_norm": "layers.{i}.self_attn.q_norm",
    "{stack}.blocks.{i}.attn.k_norm": "layers.{i}.self_attn.k_norm",
}
LLAMA_FIELDS: dict[str, Reader] = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_heads": whole("num_attention_heads"),
    "n_kv_heads": whole("num_key_value_heads", 0),
    "d_head": whole("head_dim", 0),
    "d_ff": whole("intermediate_size"),
    "n_decoder_layers": whole("num_hidden_layers"),
    "n_ctx": whole("max_position_embeddings"),
    "causal": causal,
    "norm_eps": number("rms_norm_eps", 1e-6),
    "activation": activation("hidden_act", "silu"),
    "tied": flag("tie_word_embeddings", False),
    "rotary_base": rotary_base(),
    "rotary_fraction": all_turns,
    "rotary_scaling": rotary_scaling,
}
LLAMA_FIXED = {
    "position": "rotary",
    "norm": "rms",
    "gated": True,
    "qkv_bias": False,
    "out_bias": False,
    "mlp_bias": False,
}
NO_BIAS = {"attention_bias": (False,), "mlp_bias": (False,)}

LLAMA = Family(
    model_type="llama",
    title="Llama",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
        "mlp_bias": flag("mlp_bias", False),
    },
    fixed={k: v for k, v in LLAMA_FIXED.items() if not k.endswith("_bias")},
    weights=LLAMA_WEIGHTS,
)


def _both_ways(c: Theirs, window: int | None) -> int | None:
    """Published windows that look both ways count the token at exactly their width; those that look back do not."""
    return window if window is None or causal(c) else window + 1


def stated_window(c: Theirs, default: int | None) -> int | None:
    """`sliding_window`; where the file leaves it out, the default of the published class, and none where it says null."""
    return None if c.values.get("sliding_window", default) is None else c.int("sliding_window", default)


def window_of(default: int | None) -> Reader:
    return lambda c: _both_ways(c, stated_window(c, default))


MISTRAL = Family(
    model_type="mistral",
    title="Mistral",
    prefix="model.",
    fields=LLAMA_FIELDS | {"window": window_of(4096)},
    fixed=LLAMA_FIXED,
    requires={"attention_bias": (False,)},
    weights=LLAMA_WEIGHTS,
)


def _qwen_window(c: Theirs) -> int | None:
    return window_of(4096)(c) if c.bool("use_sliding_window", False) else None


def _qwen_windowed(c: Theirs) -> tuple[int, ...] | None:
    """The upper layers have the window, unless the file names the type of every layer."""
    if _qwen_window(c) is None:
        return None
    if "layer_types" in c:
        return sliding(c)
    return tuple(range(c.int("max_window_layers", 28), c.int("num_hidden_layers")))


def sliding(c: Theirs) -> tuple[int, ...]:
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


QWEN_FIELDS = LLAMA_FIELDS | {"window": _qwen_window, "windowed_layers": _qwen_windowed}
QWEN2 = Family(
    model_type="qwen2",
    title="Qwen2",
    prefix="model.",
    fields=QWEN_FIELDS,
    fixed=LLAMA_FIXED | {"qkv_bias": True},
    weights=LLAMA_WEIGHTS,
)
QWEN3 = Family(
    model_type="qwen3",
    title="Qwen3",
    prefix="model.",
    fields=QWEN_FIELDS | {"d_head": whole("head_dim", 128)},
    fixed=LLAMA_FIXED | {"qk_norm": True},
    requires=NO_BIAS,
    weights=LLAMA_WEIGHTS | QK_NORM,
)


def plus_one(rows: dict[str, str]) -> dict[str, Source]:
    """Gemma's norms multiply by one plus what the file holds."""
    return {ours: Source(theirs, plus_one=True) for ours, theirs in rows.items()}


SANDWICH = plus_one(
    {
        "{stack}.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
        "{stack}.blocks.{i}.attn_out_norm": "layers.{i}.post_attention_layernorm",
        "{stack}.blocks.{i}.mlp_norm": "layers.{i}.pre_feedforward_layernorm",
        "{stack}.blocks.{i}.mlp_out_norm": "layers.{i}.post_feedforward_layernorm",
        "{stack}.norm": "norm",
    }
)
GEMMA_FIELDS = LLAMA_FIELDS | {
    "d_head": whole("head_dim", 256),
    "activation": activation("hidden_activation", "gelu_pytorch_tanh"),
    "tied": flag("tie_word_embeddings", True),
    "embed_scale": lambda c: math.sqrt(c.int("hidden_size")),
    "attn_scale": lambda c: max(c.float("query_pre_attn_scalar", 256.0), 1e-6) ** -0.5,
    "window": window_of(4096),
}
_GEMMA_REQUIRES: dict[str, tuple[object, ...]] = {"attention_bias": (False,)}


def softcap(key: str, default: float | None) -> Reader:
    """Where a tanh bends scores or logits; null is none, and an absent key what the published code takes."""
    return lambda c: c.float(key, None) if key in c.values else default


_SOFTCAPS = {
    "score_softcap": softcap("attn_logit_softcapping", 50.0),
    "logit_softcap": softcap("final_logit_softcapping", 30.0),
}


def _gemma_activation(c: Theirs) -> str:
    """The first release states "gelu" and means its tanh form; GemmaConfig reads it so, and reads no `hidden_activation`."""
    return "gelu_tanh" if c.values.get("hidden_act") == "gelu" else activation("hidden_act", "gelu_new")(c)


GEMMA = Family(
    model_type="gemma",
    title="Gemma",
    prefix="model.",
    fields={k: v for k, v in GEMMA_FIELDS.items() if k not in ("attn_scale", "window")}
    | {"activation": _gemma_activation},
    fixed=LLAMA_FIXED,
    requires={"attention_bias": (False,), "use_bidirectional_attention": (False,)},
    weights=LLAMA_WEIGHTS
    | plus_one(
        {
            "{stack}.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
            "{stack}.blocks.{i}.mlp_norm": "layers.{i}.post_attention_layernorm",
            "{stack}.norm": "norm",
        }
    ),
)


def _gemma2_windowed(c: Theirs) -> tuple[int, ...]:
    return sliding(c) if "layer_types" in c else tuple(range(0, c.int("num_hidden_layers"), 2))


GEMMA2 = Family(
    model_type="gemma2",
    title="Gemma 2",
    prefix="model.",
    fields=GEMMA_FIELDS | _SOFTCAPS | {"windowed_layers": _gemma2_windowed},
    fixed=LLAMA_FIXED | {"norm_order": "sandwich"},
    # Its published code hands this to some kernels and not to the mask, so that they do not agree.
    requires=_GEMMA_REQUIRES | {"use_bidirectional_attention": (False,)},
    weights=LLAMA_WEIGHTS | SANDWICH,
)


def _gemma3_windowed(c: Theirs) -> tuple[int, ...]:
    if "layer_types" in c:
        return sliding(c)
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


def _gemma3_causal(c: Theirs) -> bool:
    """Gemma 3 has a word of its own for models that read both ways (EmbeddingGemma)."""
    return causal(c) and not c.bool("use_bidirectional_attention", False)


def _gemma3_window(c: Theirs) -> int | None:
    """Its own word halves the window, so that it reaches as far on both sides together."""
    window = stated_window(c, 4096)
    return _both_ways(
        c, window // 2 + 1 if window is not None and c.bool("use_bidirectional_attention", False) else window
    )


GEMMA3 = Family(
    model_type="gemma3_text",
    title="Gemma 3 (text)",
    prefix="model.",
    fields=GEMMA_FIELDS
    | {
        "logit_softcap": softcap("final_logit_softcapping", None),  # its class never applies attn_logit_softcapping
        "causal": _gemma3_causal,
        "window": _gemma3_window,
        "windowed_layers": _gemma3_windowed,
        "rotary_base": rotary_base(default=1_000_000.0),
        "rotary_base_windowed": _gemma3_local_base,
    },
    fixed=LLAMA_FIXED | {"norm_order": "sandwich", "qk_norm": True},
    requires=_GEMMA_REQUIRES,
    weights=LLAMA_WEIGHTS | SANDWICH | plus_one(QK_NORM),
)

QKV, GATE_UP = ("q", "k", "v"), ("gate", "up")
PHI3 = Family(
    model_type="phi3",
    title="Phi-3",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {"window": window_of(None), "rotary_fraction": rotary_fraction(), "rotary_scaling": phi3_scaling},
    fixed=LLAMA_FIXED,
    requires=NO_BIAS,
    weights=LLAMA_WEIGHTS
    | {f"{{stack}}.blocks.{{i}}.attn.{p}": Source("layers.{i}.self_attn.qkv_proj", fused=QKV, part=p) for p in QKV}
    | {
        f"{{stack}}.blocks.{{i}}.mlp.{p}": Source("layers.{i}.mlp.gate_up_proj", fused=GATE_UP, part=p) for p in GATE_UP
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
        "causal": causal,
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
        "{stack}.embed.token": "embed_in",
        "{stack}.blocks.{i}.attn_norm": "layers.{i}.input_layernorm",
        "{stack}.blocks.{i}.mlp_norm": "layers.{i}.post_attention_layernorm",
        "{stack}.blocks.{i}.attn.o": "layers.{i}.attention.dense",
        "{stack}.blocks.{i}.mlp.up": "layers.{i}.mlp.dense_h_to_4h",
        "{stack}.blocks.{i}.mlp.down": "layers.{i}.mlp.dense_4h_to_h",
        "{stack}.norm": "final_layer_norm",
        "head.unembed": ("embed_out", "lm_head"),
    }
    | {
        f"{{stack}}.blocks.{{i}}.attn.{part}": Source(
            "layers.{i}.attention.query_key_value", fused=QKV, part=part, per_head=True
        )
        for part in QKV
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
        "causal": causal,
        "activation": activation("activation_function", "relu"),
        "tied": flag("tie_word_embeddings", True),
        "d_head": lambda c: _opt_width(c),
    },
    fixed={"position_offset": 2, "position_counts": "seen"},
    requires={
        "do_layer_norm_before": (True,),
        "enable_bias": (True,),
        "layer_norm_elementwise_affine": (True,),
        "_remove_final_layer_norm": (False,),
    },
    weights={
        "{stack}.embed.token": "decoder.embed_tokens",
        "{stack}.embed.position": "decoder.embed_positions",
        "{stack}.blocks.{i}.attn_norm": "decoder.layers.{i}.self_attn_layer_norm",
        "{stack}.blocks.{i}.attn.q": "decoder.layers.{i}.self_attn.q_proj",
        "{stack}.blocks.{i}.attn.k": "decoder.layers.{i}.self_attn.k_proj",
        "{stack}.blocks.{i}.attn.v": "decoder.layers.{i}.self_attn.v_proj",
        "{stack}.blocks.{i}.attn.o": "decoder.layers.{i}.self_attn.out_proj",
        "{stack}.blocks.{i}.mlp_norm": "decoder.layers.{i}.final_layer_norm",
        "{stack}.blocks.{i}.mlp.up": "decoder.layers.{i}.fc1",
        "{stack}.blocks.{i}.mlp.down": "decoder.layers.{i}.fc2",
        "{stack}.norm": "decoder.final_layer_norm",
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


DECODERS = (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA, GEMMA2, GEMMA3, PHI3, GPT_NEOX, OPT)
