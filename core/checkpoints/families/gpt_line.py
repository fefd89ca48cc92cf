"""Decoders that came of GPT: learned or sinusoidal positions, ALiBi, or rotary positions in parallel blocks."""

import math

from ...errors import CheckpointError
from ..family import Family, Reader, Source, Theirs, activation, flag, in_halves, number, shown, whole
from ..rotary import rotary_base, rotary_scaling
from .decoders import GPT2, QKV
from .encoders import MODERN_FIELDS, MODERN_FIXED, MODERN_REQUIRES, modern_weights

LAYER = "{stack}.blocks.{i}"


def as_module(row: str | tuple[str, ...] | Source) -> str:
    """The one module that a row names."""
    module = row.module if isinstance(row, Source) else row
    assert isinstance(module, str)
    return module


def _width(c: Theirs) -> int:
    """Of an MLP: four times the stream's, unless it is given."""
    return c.int("n_inner", None) or 4 * c.int("n_embd")


def _attention_layers(c: Theirs) -> tuple[int, ...]:
    """The local layers of attention_types, [[[kinds], times], ...]."""
    stated = c.any("attention_types", [[["global", "local"], c.int("num_layers") // 2]])
    try:
        kinds = [kind for some, times in stated for _ in range(times) for kind in some]
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
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_heads": whole("num_heads"),
        "n_decoder_layers": whole("num_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "d_ff": lambda c: c.int("intermediate_size", None) or 4 * c.int("hidden_size"),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "activation": activation("activation_function", "gelu_new"),
        "window": whole("window_size", 256),
        "windowed_layers": _attention_layers,
        "tied": flag("tie_word_embeddings", True),
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


def _rotary_share(c: Theirs) -> float:
    """The share of a head that turns, from how many of its features do."""
    width, turned = c.int("n_embd") // max(1, c.int("n_head")), c.int("rotary_dim", 64)
    return min(1.0, (turned + 1e-6) / max(1, width))


_GPTJ_FIELDS: dict[str, Reader] = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("n_embd"),
    "n_heads": whole("n_head"),
    "n_decoder_layers": whole("n_layer"),
    "n_ctx": whole("n_positions"),
    "d_ff": _width,
    "norm_eps": number("layer_norm_epsilon", 1e-5),
    "activation": activation("activation_function", "gelu_new"),
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
    fields={name: read for name, read in GPT2.fields.items() if name != "causal"}
    | {
        "n_kv_heads": lambda c: 1 if c.bool("multi_query", True) else 0,
        "activation": activation("activation_function", "gelu_pytorch_tanh"),
    },
    requires={"add_cross_attention": (False,)},
    weights={
        row: Source(as_module(source), fused=QKV, part=source.part, per_head=True)
        if isinstance(source, Source) and source.fused
        else as_module(source)
        for row, source in GPT2.weights.items()
    },
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
        "n_ctx": whole("seq_length", 2048),  # the length of its training; distances have no end
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "tied": flag("tie_word_embeddings", True),
    },
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
    | {
        f"{LAYER}.attn.{part}": Source("h.{i}.self_attention.query_key_value", fused=QKV, part=part, per_head=True)
        for part in QKV
    },
)


def _mpt_position(c: Theirs) -> str:
    """ALiBi as it is published, which is what MPT models have; every other kind of attention is refused."""
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
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("d_model"),
        "n_heads": whole("n_heads"),
        "n_decoder_layers": whole("n_layers"),
        "d_ff": lambda c: c.int("expansion_ratio", 4) * c.int("d_model"),
        "n_ctx": whole("max_seq_len", 2048),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "position": _mpt_position,
        "attn_scale": lambda c: c.inside("attn_config").float("softmax_scale", None),
        "tied": flag("tie_word_embeddings", True),
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
    | {f"{LAYER}.attn.{part}": Source("blocks.{i}.attn.Wqkv", fused=QKV, part=part) for part in QKV},
)


def _falcon_kv_heads(c: Theirs) -> int:
    if c.bool("new_decoder_architecture", False):
        return c.int("num_kv_heads", None) or c.int("num_attention_heads")
    return 1 if c.bool("multi_query", True) else 0


def _falcon_shares(c: Theirs) -> bool:
    """Whether its parallel blocks have one norm."""
    if not _falcon_parallel(c):
        return False
    newer = c.bool("new_decoder_architecture", False)
    return c.int("num_ln_in_parallel_attn", 2 if newer else 1) != 2


def _falcon_parallel(c: Theirs) -> bool:
    return c.bool("new_decoder_architecture", False) or c.bool("parallel_attn", True)


FALCON = Family(
    model_type="falcon",
    title="Falcon",
    prefix="transformer.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_heads": whole("num_attention_heads"),
        "n_kv_heads": _falcon_kv_heads,
        "n_decoder_layers": whole("num_hidden_layers"),
        "d_ff": lambda c: c.int("ffn_hidden_size", None) or 4 * c.int("hidden_size"),
        "n_ctx": whole("max_position_embeddings", 2048),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "activation": activation("activation", "gelu"),
        "parallel": _falcon_parallel,
        "shared_norm": _falcon_shares,
        "qkv_bias": flag("bias", False),
        "out_bias": flag("bias", False),
        "mlp_bias": flag("bias", False),
        "rotary_base": rotary_base(),
        "rotary_scaling": rotary_scaling,
        "tied": flag("tie_word_embeddings", True),
    },
    fixed={"position": "rotary"},
    requires={"alibi": (False,)},  # published kernels do not agree with each other on it
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
    | {
        f"{LAYER}.attn.{part}": Source("h.{i}.self_attention.query_key_value", fused=QKV, part=part, per_head=True)
        for part in QKV
    },
)
_FAIRSEQ_LAYER = {
    f"{LAYER}.attn_norm": "layers.{i}.self_attn_layer_norm",
    f"{LAYER}.attn.q": "layers.{i}.self_attn.q_proj",
    f"{LAYER}.attn.k": "layers.{i}.self_attn.k_proj",
    f"{LAYER}.attn.v": "layers.{i}.self_attn.v_proj",
    f"{LAYER}.attn.o": "layers.{i}.self_attn.out_proj",
    f"{LAYER}.mlp_norm": "layers.{i}.final_layer_norm",
    f"{LAYER}.mlp.up": "layers.{i}.fc1",
    f"{LAYER}.mlp.down": "layers.{i}.fc2",
    "{stack}.embed.token": "embed_tokens",
    "{stack}.norm": "layer_norm",
}


def _scaled(width: str) -> Reader:
    """√d_model, by which fairseq multiplies word vectors."""
    return lambda c: math.sqrt(c.int(width)) if c.bool("scale_embedding", True) else 1.0


XGLM = Family(
    model_type="xglm",
    title="XGLM",
    prefix="model.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("d_model"),
        "n_heads": whole("attention_heads"),
        "d_ff": whole("ffn_dim"),
        "n_decoder_layers": whole("num_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "zero_sinusoid": whole("pad_token_id", 1),
        "activation": activation("activation_function", "gelu"),
        "embed_scale": _scaled("d_model"),
        "tied": flag("tie_word_embeddings", True),
    },
    fixed={"position": "sinusoidal", "sinusoid_layout": "fairseq", "position_offset": 2},
    requires={"add_cross_attention": (False,)},
    weights=_FAIRSEQ_LAYER | {"head.unembed": "lm_head"},
)
BIOGPT = Family(
    model_type="biogpt",
    title="BioGPT",
    prefix="biogpt.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_heads": whole("num_attention_heads"),
        "d_ff": whole("intermediate_size"),
        "n_decoder_layers": whole("num_hidden_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "activation": activation("hidden_act", "gelu"),
        "embed_scale": _scaled("hidden_size"),
        "tied": flag("tie_word_embeddings", True),
    },
    fixed={"position_offset": 2, "position_counts": "seen"},
    weights=_FAIRSEQ_LAYER | {"{stack}.embed.position": "embed_positions", "head.unembed": "output_projection"},
)
_GPT1_ACTIVATIONS = {"relu": "relu", "silu": "silu", "gelu": "gelu_tanh", "swish": "silu"}


def _gpt1_activation(c: Theirs) -> str:
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
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("n_embd"),
        "n_heads": whole("n_head"),
        "n_decoder_layers": whole("n_layer"),
        "n_ctx": whole("n_positions"),
        "d_ff": lambda c: 4 * c.int("n_embd"),
        "norm_eps": number("layer_norm_epsilon", 1e-5),
        "activation": _gpt1_activation,
        "tied": flag("tie_word_embeddings", True),
    },
    fixed={"norm_order": "post", "final_norm": False},
    weights={row: source for row, source in GPT2.weights.items() if row != "{stack}.norm"}
    | {"{stack}.embed.token": "tokens_embed", "{stack}.embed.position": "positions_embed"},
)
CTRL = Family(
    model_type="ctrl",
    title="CTRL",
    prefix="transformer.",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("n_embd"),
        "n_heads": whole("n_head"),
        "n_decoder_layers": whole("n_layer"),
        "n_ctx": whole("n_positions"),
        "d_ff": whole("dff"),
        "norm_eps": lambda _: 1e-6,  # a constant of the published code
        "final_norm_eps": number("layer_norm_epsilon", 1e-6),
        "embed_scale": lambda c: math.sqrt(c.int("n_embd")),
        "tied": flag("tie_word_embeddings", True),
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
