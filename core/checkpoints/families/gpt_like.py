"""GPT-like decoders: learned or sinusoidal positions, ALiBi, or rotary positions in parallel blocks."""

import math

from ...errors import CheckpointError
from ..family import (
    LAYER,
    QKV,
    Family,
    Reader,
    Source,
    SourceConfig,
    activation,
    flag,
    fused,
    in_halves,
    number,
    rotary_base,
    rotary_scaling,
    shown,
    whole,
    wholes,
    without,
)
from .decoders import FAIRSEQ_LAYER, GPT2, GPT_SIZES, SIZES, biases
from .encoders import MODERN_FIELDS, MODERN_FIXED, MODERN_REQUIRES, modern_weights

TIED: dict[str, Reader] = {"tied": flag("tie_word_embeddings", True)}
GPT_NORM: dict[str, Reader] = {"norm_eps": number("layer_norm_epsilon", 1e-5)}


def _attention_layers(c: SourceConfig) -> tuple[int, ...]:
    """Layers with local attention in attention_types: [[[kinds], times], …]."""
    stated = c.any("attention_types", [[["global", "local"], c.int("num_layers") // 2]])
    try:
        kinds = [kind for group, times in stated for _ in range(times) for kind in group]
    except (TypeError, ValueError):
        kinds = []
    n = c.int("num_layers")
    if len(kinds) != n or set(kinds) - {"global", "local"}:
        raise CheckpointError(
            f"{c.where}: attention_types is {shown(stated)}, but it must be a list of [kinds, times] that gives each of {n} layers "
            "one of global and local."
        )
    return tuple(i for i, kind in enumerate(kinds) if kind == "local")


GPT_NEO = Family(
    model_type="gpt_neo",
    title="GPT-Neo",
    prefix="transformer.",
    fields=wholes(
        vocab_size="vocab_size",
        d_model="hidden_size",
        n_heads="num_heads",
        n_decoder_layers="num_layers",
        n_ctx="max_position_embeddings",
    )
    | GPT_NORM
    | TIED
    | {
        "d_ff": lambda c: c.int("intermediate_size", None) or 4 * c.int("hidden_size"),
        "activation": activation("activation_function", "gelu_new"),
        "window": whole("window_size", 256),
        "windowed_layers": _attention_layers,
    },
    fixed={"attn_scale": 1.0, "qkv_bias": False},
    weights={
        "{stack}.embed.token": "wte",
        "{stack}.embed.position": "wpe",
        f"{LAYER}.attn_norm": "h.{i}.ln_1",
        f"{LAYER}.attn.q": "h.{i}.attn.attention.q_proj",
        f"{LAYER}.attn.k": "h.{i}.attn.attention.k_proj",
        f"{LAYER}.attn.v": "h.{i}.attn.attention.v_proj",
        f"{LAYER}.attn.o": "h.{i}.attn.attention.out_proj",
        f"{LAYER}.mlp_norm": "h.{i}.ln_2",
        f"{LAYER}.mlp.up": "h.{i}.mlp.c_fc",
        f"{LAYER}.mlp.down": "h.{i}.mlp.c_proj",
        "{stack}.norm": "ln_f",
        "head.unembed": "lm_head",
    },
)


def _rotary_share(c: SourceConfig) -> float:
    """Rotary share of a head, from the number of its rotary features."""
    width, rotary = c.int("n_embd") // max(1, c.int("n_head")), c.int("rotary_dim", 64)
    return min(1.0, (rotary + 1e-6) / max(1, width))


_GPTJ_FIELDS: dict[str, Reader] = without(GPT2.fields, "causal", "attn_scale") | {
    "rotary_fraction": _rotary_share,
    "tied": flag("tie_word_embeddings", False),
}
_GPTJ_FIXED = {
    "position": "rotary",
    "parallel": True,
    "shared_norm": True,
    "qkv_bias": False,
    "out_bias": False,
    "head_bias": True,
}
_GPTJ_WEIGHTS = {
    "{stack}.embed.token": "wte",
    f"{LAYER}.attn_norm": "h.{i}.ln_1",
    f"{LAYER}.attn.o": "h.{i}.attn.out_proj",
    f"{LAYER}.mlp.up": "h.{i}.mlp.fc_in",
    f"{LAYER}.mlp.down": "h.{i}.mlp.fc_out",
    "{stack}.norm": "ln_f",
    "head.unembed": "lm_head",
}
GPTJ = Family(
    model_type="gptj",
    title="GPT-J",
    prefix="transformer.",
    fields=_GPTJ_FIELDS,
    fixed=_GPTJ_FIXED,
    weights=_GPTJ_WEIGHTS
    | {
        f"{LAYER}.attn.q": Source("h.{i}.attn.q_proj", order=in_halves),
        f"{LAYER}.attn.k": Source("h.{i}.attn.k_proj", order=in_halves),
        f"{LAYER}.attn.v": "h.{i}.attn.v_proj",
    },
)
CODEGEN = Family(
    model_type="codegen",
    title="CodeGen",
    prefix="transformer.",
    fields=_GPTJ_FIELDS,
    fixed=_GPTJ_FIXED,
    weights=_GPTJ_WEIGHTS
    | {
        f"{LAYER}.attn.{part}": Source(
            "h.{i}.attn.qkv_proj", fused=("q", "v", "k"), part=part, blocks=4, order=None if part == "v" else in_halves
        )
        for part in QKV
    },
)
BIGCODE = Family(
    model_type="gpt_bigcode",
    title="BigCode",
    prefix="transformer.",
    fields=without(GPT2.fields, "causal")
    | {
        "n_kv_heads": lambda c: 1 if c.bool("multi_query", True) else 0,
        "activation": activation("activation_function", "gelu_pytorch_tanh"),
    },
    requires={"add_cross_attention": (False,)},
    weights={
        row: source.module if isinstance(source, Source) else source
        for row, source in without(GPT2.weights, *(f"{LAYER}.attn.{part}" for part in QKV)).items()
    }
    | fused(f"{LAYER}.attn", "h.{i}.attn.c_attn", per_head=True),
)
BLOOM = Family(
    model_type="bloom",
    title="BLOOM",
    prefix="transformer.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": lambda c: c.int("hidden_size", None) or c.int("n_embed"),
        "n_heads": lambda c: c.int("n_head", None) or c.int("num_attention_heads"),
        "n_decoder_layers": lambda c: c.int("n_layer", None) or c.int("num_hidden_layers"),
        "d_ff": lambda c: 4 * (c.int("hidden_size", None) or c.int("n_embed")),
        "n_ctx": whole("seq_length", 2048),  # training length; distances are unbounded
    }
    | GPT_NORM
    | TIED,
    fixed={"position": "alibi", "embed_norm": True, "activation": "gelu_tanh"},
    requires={"apply_residual_connection_post_layernorm": (False,)},
    weights={
        "{stack}.embed.token": "word_embeddings",
        "{stack}.embed.norm": "word_embeddings_layernorm",
        f"{LAYER}.attn_norm": "h.{i}.input_layernorm",
        f"{LAYER}.attn.o": "h.{i}.self_attention.dense",
        f"{LAYER}.mlp_norm": "h.{i}.post_attention_layernorm",
        f"{LAYER}.mlp.up": "h.{i}.mlp.dense_h_to_4h",
        f"{LAYER}.mlp.down": "h.{i}.mlp.dense_4h_to_h",
        "{stack}.norm": "ln_f",
        "head.unembed": "lm_head",
    }
    | fused(f"{LAYER}.attn", "h.{i}.self_attention.query_key_value", per_head=True),
)


def _mpt_position(c: SourceConfig) -> str:
    """ALiBi, as in published MPT models. Other kinds of attention are refused."""
    attention = c.inside("attn_config")
    for key, needed in (("alibi", True), ("qk_ln", False), ("prefix_lm", False)):
        if (value := attention.bool(key, needed)) != needed:
            raise CheckpointError(f"{attention.where}: MPT with {key}={shown(value)} is not supported.")
    if attention.any("clip_qkv", None) is not None:
        raise CheckpointError(f"{attention.where}: MPT with clip_qkv is not supported.")
    if (most := attention.int("alibi_bias_max", 8)) != 8:
        raise CheckpointError(
            f"{attention.where}: alibi_bias_max is {most}, but MPT's ALiBi slopes are computed for 8."
        )
    return "alibi"


MPT = Family(
    model_type="mpt",
    title="MPT",
    prefix="transformer.",
    fields=wholes(vocab_size="vocab_size", d_model="d_model", n_heads="n_heads", n_decoder_layers="n_layers")
    | GPT_NORM
    | TIED
    | {
        "d_ff": lambda c: c.int("expansion_ratio", 4) * c.int("d_model"),
        "n_ctx": whole("max_seq_len", 2048),
        "position": _mpt_position,
        "attn_scale": lambda c: c.inside("attn_config").float("softmax_scale", None),
    },
    fixed={"norm_bias": False, "qkv_bias": False, "out_bias": False, "mlp_bias": False},
    requires={"no_bias": (True,), "logit_scale": (None,), "embedding_fraction": (1.0,)},
    weights={
        "{stack}.embed.token": "wte",
        f"{LAYER}.attn_norm": "blocks.{i}.norm_1",
        f"{LAYER}.attn.o": "blocks.{i}.attn.out_proj",
        f"{LAYER}.mlp_norm": "blocks.{i}.norm_2",
        f"{LAYER}.mlp.up": "blocks.{i}.ffn.up_proj",
        f"{LAYER}.mlp.down": "blocks.{i}.ffn.down_proj",
        "{stack}.norm": "norm_f",
        "head.unembed": "lm_head",
    }
    | fused(f"{LAYER}.attn", "blocks.{i}.attn.Wqkv"),
)


def _falcon_kv_heads(c: SourceConfig) -> int:
    if c.bool("new_decoder_architecture", False):
        return c.int("num_kv_heads", None) or c.int("num_attention_heads")
    return 1 if c.bool("multi_query", True) else 0


def _falcon_shares(c: SourceConfig) -> bool:
    """True if attention and MLP of its parallel blocks share one norm."""
    if not _falcon_parallel(c):
        return False
    newer = c.bool("new_decoder_architecture", False)
    return c.int("num_ln_in_parallel_attn", 2 if newer else 1) != 2


def _falcon_parallel(c: SourceConfig) -> bool:
    return c.bool("new_decoder_architecture", False) or c.bool("parallel_attn", True)


FALCON = Family(
    model_type="falcon",
    title="Falcon",
    prefix="transformer.",
    fields=SIZES
    | biases("bias", "bias")
    | GPT_NORM
    | TIED
    | {
        "n_kv_heads": _falcon_kv_heads,
        "d_ff": lambda c: c.int("ffn_hidden_size", None) or 4 * c.int("hidden_size"),
        "n_ctx": whole("max_position_embeddings", 2048),
        "activation": activation("activation", "gelu"),
        "parallel": _falcon_parallel,
        "shared_norm": _falcon_shares,
        "rotary_base": rotary_base(),
        "rotary_scaling": rotary_scaling,
    },
    fixed={"position": "rotary"},
    requires={"alibi": (False,)},  # published kernels disagree on it
    weights={
        "{stack}.embed.token": "word_embeddings",
        f"{LAYER}.attn_norm": ("h.{i}.input_layernorm", "h.{i}.ln_attn"),
        f"{LAYER}.attn.o": "h.{i}.self_attention.dense",
        f"{LAYER}.mlp_norm": ("h.{i}.post_attention_layernorm", "h.{i}.ln_mlp"),
        f"{LAYER}.mlp.up": "h.{i}.mlp.dense_h_to_4h",
        f"{LAYER}.mlp.down": "h.{i}.mlp.dense_4h_to_h",
        "{stack}.norm": "ln_f",
        "head.unembed": "lm_head",
    }
    | fused(f"{LAYER}.attn", "h.{i}.self_attention.query_key_value", per_head=True),
)
_FAIRSEQ_WEIGHTS = FAIRSEQ_LAYER | {"{stack}.embed.token": "embed_tokens", "{stack}.norm": "layer_norm"}


def _scaled(width: str) -> Reader:
    """√d_model, fairseq's factor of word vectors."""
    return lambda c: math.sqrt(c.int(width)) if c.bool("scale_embedding", True) else 1.0


XGLM = Family(
    model_type="xglm",
    title="XGLM",
    prefix="model.",
    fields=wholes(
        vocab_size="vocab_size",
        d_model="d_model",
        n_heads="attention_heads",
        d_ff="ffn_dim",
        n_decoder_layers="num_layers",
        n_ctx="max_position_embeddings",
    )
    | TIED
    | {
        "zero_sinusoid": whole("pad_token_id", 1),
        "activation": activation("activation_function", "gelu"),
        "embed_scale": _scaled("d_model"),
    },
    fixed={"position": "sinusoidal", "sinusoid_layout": "fairseq", "position_offset": 2},
    requires={"add_cross_attention": (False,)},
    weights=_FAIRSEQ_WEIGHTS | {"head.unembed": "lm_head"},
)
BIOGPT = Family(
    model_type="biogpt",
    title="BioGPT",
    prefix="biogpt.",
    fields=SIZES | TIED | {"activation": activation("hidden_act", "gelu"), "embed_scale": _scaled("hidden_size")},
    fixed={"position_offset": 2, "position_counts": "seen"},
    weights=_FAIRSEQ_WEIGHTS | {"{stack}.embed.position": "embed_positions", "head.unembed": "output_projection"},
)
_GPT1_ACTIVATIONS = {"relu": "relu", "silu": "silu", "gelu": "gelu_tanh", "swish": "silu"}


def _gpt1_activation(c: SourceConfig) -> str:
    name = c.str("afn", "gelu")
    if name not in _GPT1_ACTIVATIONS:
        raise CheckpointError(
            f"{c.where}: the activation afn={shown(name)} is not supported. Supported are {', '.join(_GPT1_ACTIVATIONS)}."
        )
    return _GPT1_ACTIVATIONS[name]


GPT1 = Family(
    model_type="openai-gpt",
    title="GPT",
    prefix="transformer.",
    fields=GPT_SIZES | GPT_NORM | TIED | {"d_ff": lambda c: 4 * c.int("n_embd"), "activation": _gpt1_activation},
    fixed={"norm_order": "post", "final_norm": False},
    weights=without(GPT2.weights, "{stack}.norm")
    | {"{stack}.embed.token": "tokens_embed", "{stack}.embed.position": "positions_embed"},
)
CTRL = Family(
    model_type="ctrl",
    title="CTRL",
    prefix="transformer.",
    fields=GPT_SIZES
    | TIED
    | {
        "d_ff": whole("dff"),
        "norm_eps": lambda _: 1e-6,  # a constant of the published code
        "final_norm_eps": number("layer_norm_epsilon", 1e-6),
        "embed_scale": lambda c: math.sqrt(c.int("n_embd")),
    },
    fixed={"position": "sinusoidal", "sinusoid_layout": "halves", "activation": "relu", "head_bias": True},
    weights={
        "{stack}.embed.token": "w",
        f"{LAYER}.attn_norm": "h.{i}.layernorm1",
        f"{LAYER}.attn.q": "h.{i}.multi_head_attention.Wq",
        f"{LAYER}.attn.k": "h.{i}.multi_head_attention.Wk",
        f"{LAYER}.attn.v": "h.{i}.multi_head_attention.Wv",
        f"{LAYER}.attn.o": "h.{i}.multi_head_attention.dense",
        f"{LAYER}.mlp_norm": "h.{i}.layernorm2",
        f"{LAYER}.mlp.up": "h.{i}.ffn.0",
        f"{LAYER}.mlp.down": "h.{i}.ffn.2",
        "{stack}.norm": "layernorm",
        "head.unembed": "lm_head",
    },
)
MODERNBERT_DECODER = Family(
    model_type="modernbert-decoder",
    title="ModernBERT decoder",
    prefix="model.",
    head="mlm",
    fields=MODERN_FIELDS
    | {
        "n_decoder_layers": whole("num_hidden_layers"),
        "window": lambda c: c.int("sliding_window", c.int("local_attention", 128) // 2),
    },
    fixed=MODERN_FIXED,
    requires=MODERN_REQUIRES,
    weights=modern_weights("lm_head") | {f"{LAYER}.attn.{part}": f"layers.{{i}}.attn.{part}_proj" for part in QKV},
)

GPT_LINE = (GPT_NEO, GPTJ, CODEGEN, BIGCODE, BLOOM, MPT, FALCON, XGLM, BIOGPT, GPT1, CTRL, MODERNBERT_DECODER)
