"""Encoders: BERT and those that came of it, with a head that fills in masked words; and those with rotary positions."""

from collections.abc import Callable
from dataclasses import replace

from ...errors import CheckpointError
from ..family import Family, Source, Theirs, activation, flag, number, shown, whole
from ..rotary import rope, rotary_base, rotary_scaling
from .decoders import GATE_UP, LLAMA_FIELDS, LLAMA_WEIGHTS, QKV, sliding

BERT_BLOCK = {
    "encoder.embed.token": "embeddings.word_embeddings",
    "encoder.embed.position": "embeddings.position_embeddings",
    "encoder.embed.token_type": "embeddings.token_type_embeddings",
    "encoder.embed.norm": "embeddings.LayerNorm",
    "encoder.blocks.{i}.attn.q": "encoder.layer.{i}.attention.self.query",
    "encoder.blocks.{i}.attn.k": "encoder.layer.{i}.attention.self.key",
    "encoder.blocks.{i}.attn.v": "encoder.layer.{i}.attention.self.value",
    "encoder.blocks.{i}.attn.o": "encoder.layer.{i}.attention.output.dense",
    "encoder.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "encoder.blocks.{i}.mlp.up": "encoder.layer.{i}.intermediate.dense",
    "encoder.blocks.{i}.mlp.down": "encoder.layer.{i}.output.dense",
    "encoder.blocks.{i}.mlp_norm": "encoder.layer.{i}.output.LayerNorm",
}
BERT_FIELDS = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_heads": whole("num_attention_heads"),
    "d_ff": whole("intermediate_size"),
    "n_encoder_layers": whole("num_hidden_layers"),
    "n_ctx": whole("max_position_embeddings"),
    "n_token_types": whole("type_vocab_size"),
    "norm_eps": number("layer_norm_eps", 1e-12),
    "activation": activation("hidden_act"),
}
BERT_FIXED = {"norm_order": "post", "final_norm": False, "embed_norm": True, "head_bias": True}
BERT_REQUIRES = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}

BERT = Family(  # and MiniLM, which is a small BERT without its head
    model_type="bert",
    title="BERT",
    prefix="bert.",
    head="mlm",
    # With is_decoder no token sees a later one: the same blocks as a decoder.
    fields=BERT_FIELDS
    | {
        "n_encoder_layers": lambda c: 0 if c.bool("is_decoder", False) else c.int("num_hidden_layers"),
        "n_decoder_layers": lambda c: c.int("num_hidden_layers") if c.bool("is_decoder", False) else 0,
    },
    fixed=BERT_FIXED,
    requires=BERT_REQUIRES | {"is_decoder": (False, True)},
    weights={row.replace("encoder.", "{stack}.", 1): source for row, source in BERT_BLOCK.items()}
    | {
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.unembed.weight": "cls.predictions.decoder.weight",
        "head.unembed.bias": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    },
)

ROBERTA = Family(
    model_type="roberta",
    title="RoBERTa",
    prefix="roberta.",
    head="mlm",
    # The table's first rows, up to the padding id, belong to padding, and positions count what is not padding (fairseq).
    fields=BERT_FIELDS
    | {
        "position_offset": lambda c: c.int("pad_token_id", 1) + 1,
        "n_ctx": lambda c: c.int("max_position_embeddings") - c.int("pad_token_id", 1) - 1,
    },
    fixed=BERT_FIXED | {"position_counts": "not_padding"},
    requires=BERT_REQUIRES | {"hidden_act": ("gelu",)},  # its head is always gelu, whatever the layers are
    weights=BERT_BLOCK
    | {
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.unembed.weight": "lm_head.decoder.weight",
        "head.unembed.bias": ("lm_head.bias", "lm_head.decoder.bias"),
    },
)

DISTILBERT = Family(
    model_type="distilbert",
    title="DistilBERT",
    prefix="distilbert.",
    head="mlm",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("dim"),
        "n_heads": whole("n_heads"),
        "d_ff": whole("hidden_dim"),
        "n_encoder_layers": whole("n_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "activation": activation("activation"),
    },
    fixed=BERT_FIXED | {"norm_eps": 1e-12},
    requires={"tie_word_embeddings": (True,)},
    weights={
        "encoder.embed.token": "embeddings.word_embeddings",
        "encoder.embed.position": "embeddings.position_embeddings",
        "encoder.embed.norm": "embeddings.LayerNorm",
        "encoder.blocks.{i}.attn.q": "transformer.layer.{i}.attention.q_lin",
        "encoder.blocks.{i}.attn.k": "transformer.layer.{i}.attention.k_lin",
        "encoder.blocks.{i}.attn.v": "transformer.layer.{i}.attention.v_lin",
        "encoder.blocks.{i}.attn.o": "transformer.layer.{i}.attention.out_lin",
        "encoder.blocks.{i}.attn_norm": "transformer.layer.{i}.sa_layer_norm",
        "encoder.blocks.{i}.mlp.up": "transformer.layer.{i}.ffn.lin1",
        "encoder.blocks.{i}.mlp.down": "transformer.layer.{i}.ffn.lin2",
        "encoder.blocks.{i}.mlp_norm": "transformer.layer.{i}.output_layer_norm",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.unembed": "vocab_projector",
    },
)

XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", title="XLM-RoBERTa")
CAMEMBERT = replace(ROBERTA, model_type="camembert", title="CamemBERT")
ERNIE = replace(
    BERT,
    model_type="ernie",
    title="ERNIE",
    prefix="ernie.",
    requires=BERT_REQUIRES | {"use_task_id": (False,)},
)
_FACTORED = {
    "encoder.embed.project": "encoder.embedding_hidden_mapping_in",
    "head.dense": "cls.predictions.dense",
    "head.norm": "cls.predictions.LayerNorm",
    "head.unembed.weight": "cls.predictions.decoder.weight",
    "head.unembed.bias": "cls.predictions.decoder.bias",
}


def _rembert_tied(c: Theirs) -> bool:
    return c.bool("tie_word_embeddings", False)


REMBERT = Family(
    model_type="rembert",
    title="RemBERT",
    prefix="rembert.",
    head="mlm",
    fields=BERT_FIELDS
    | {
        "d_embed": whole("input_embedding_size"),
        "d_unembed": whole("output_embedding_size"),
        "tied": _rembert_tied,
    },
    fixed=BERT_FIXED,
    requires={"is_decoder": (False,), "add_cross_attention": (False,)},
    weights=BERT_BLOCK | _FACTORED,
)
_ALBERT_LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
ALBERT = Family(
    model_type="albert",
    title="ALBERT",
    prefix="albert.",
    head="mlm",
    fields=BERT_FIELDS | {"d_embed": whole("embedding_size", 128), "activation": activation("hidden_act", "gelu_new")},
    fixed=BERT_FIXED | {"shared_layers": True},
    requires={"num_hidden_groups": (1,), "inner_group_num": (1,), "tie_word_embeddings": (True,)},
    weights={row: source for row, source in BERT_BLOCK.items() if ".blocks." not in row}
    | {
        f"encoder.blocks.{{i}}.{ours}": f"{_ALBERT_LAYER}.{theirs}"
        for ours, theirs in {
            "attn.q": "attention.query",
            "attn.k": "attention.key",
            "attn.v": "attention.value",
            "attn.o": "attention.dense",
            "attn_norm": "attention.LayerNorm",
            "mlp.up": "ffn",
            "mlp.down": "ffn_output",
            "mlp_norm": "full_layer_layer_norm",
        }.items()
    }
    | {
        "encoder.embed.project": "encoder.embedding_hidden_mapping_in",
        "head.dense": "predictions.dense",
        "head.norm": "predictions.LayerNorm",
        "head.unembed.weight": "predictions.decoder.weight",
        "head.unembed.bias": ("predictions.bias", "predictions.decoder.bias"),
    },
)
ELECTRA = Family(
    model_type="electra",
    title="ELECTRA",
    prefix="electra.",
    head="mlm",
    fields=BERT_FIELDS | {"d_embed": whole("embedding_size", 128)},
    fixed=BERT_FIXED | {"head_activation": "gelu"},  # whatever the layers are
    requires=BERT_REQUIRES,
    weights=BERT_BLOCK
    | {
        "encoder.embed.project": "embeddings_project",
        "head.dense": "generator_predictions.dense",
        "head.norm": "generator_predictions.LayerNorm",
        "head.unembed": "generator_lm_head",
    },
)
MPNET = Family(
    model_type="mpnet",
    title="MPNet",
    prefix="mpnet.",
    head="mlm",
    fields={name: read for name, read in ROBERTA.fields.items() if name not in ("n_token_types", "position_offset")}
    | {
        "n_relative_buckets": whole("relative_attention_num_buckets", 32),
        "n_ctx": lambda c: c.int("max_position_embeddings") - 2,
    },
    # Its class takes 1 as the padding id, whatever pad_token_id is.
    fixed=BERT_FIXED
    | {"position_counts": "not_padding", "position_offset": 2, "relative_bias": True, "max_relative_distance": 128},
    requires={"hidden_act": ("gelu",), "tie_word_embeddings": (True,)},
    weights={
        row: source
        for row, source in ROBERTA.weights.items()
        if ".blocks." not in row and row != "encoder.embed.token_type"
    }
    | {
        f"encoder.blocks.{{i}}.{ours}": f"encoder.layer.{{i}}.{theirs}"
        for ours, theirs in {
            "attn.q": "attention.attn.q",
            "attn.k": "attention.attn.k",
            "attn.v": "attention.attn.v",
            "attn.o": "attention.attn.o",
            "attn_norm": "attention.LayerNorm",
            "mlp.up": "intermediate.dense",
            "mlp.down": "output.dense",
            "mlp_norm": "output.LayerNorm",
        }.items()
    }
    | {"encoder.relative_bias": "encoder.relative_attention_bias"},
)


def _rotary_alone(c: Theirs) -> str:
    kind = c.str("position_embedding_type", "absolute")
    if kind != "rotary":
        raise CheckpointError(
            f'{c.where}: ESM with position_embedding_type={shown(kind)} is not supported; it must be "rotary", as in ESM-2.'
        )
    return kind


ESM = Family(
    model_type="esm",
    title="ESM-2",
    prefix="esm.",
    head="mlm",
    fields={name: read for name, read in BERT_FIELDS.items() if name not in ("n_token_types", "activation")}
    | {
        "position": _rotary_alone,
        "rotary_base": number("rope_theta", 10_000.0),
        "token_dropout_id": lambda c: c.int("mask_token_id") if c.bool("token_dropout", False) else None,
    },
    fixed={"head_bias": True, "activation": "gelu"},
    requires={
        "emb_layer_norm_before": (False,),
        "is_decoder": (False,),
        "is_folding_model": (False,),
        "tie_word_embeddings": (True,),
    },
    weights={
        "encoder.embed.token": "embeddings.word_embeddings",
        "encoder.norm": "encoder.emb_layer_norm_after",
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.unembed.weight": "lm_head.decoder.weight",
        "head.unembed.bias": ("lm_head.bias", "lm_head.decoder.bias"),
    }
    | {row: source for row, source in BERT_BLOCK.items() if ".blocks." in row and "_norm" not in row}
    | {
        "encoder.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.LayerNorm",
        "encoder.blocks.{i}.mlp_norm": "encoder.layer.{i}.LayerNorm",
    },
)
NOMIC_BERT = Family(
    model_type="nomic_bert",
    title="NomicBERT",
    prefix="nomic_bert.",
    head=None,
    fields=BERT_FIELDS
    | {
        "activation": activation("hidden_act", "silu"),
        "d_head": whole("head_dim", 0),
        "rotary_base": rotary_base(),
        "rotary_scaling": rotary_scaling,
    },
    fixed={name: value for name, value in BERT_FIXED.items() if name != "head_bias"}
    | {"position": "rotary", "gated": True, "qkv_bias": False, "out_bias": False, "mlp_bias": False, "head": "none"},
    weights={
        "encoder.embed.token": "embeddings.word_embeddings",
        "encoder.embed.token_type": "embeddings.token_type_embeddings",
        "encoder.embed.norm": "emb_ln",
        "encoder.blocks.{i}.attn.o": "encoder.layers.{i}.attn.out_proj",
        "encoder.blocks.{i}.attn_norm": "encoder.layers.{i}.norm1",
        "encoder.blocks.{i}.mlp.up": "encoder.layers.{i}.mlp.fc11",
        "encoder.blocks.{i}.mlp.gate": "encoder.layers.{i}.mlp.fc12",
        "encoder.blocks.{i}.mlp.down": "encoder.layers.{i}.mlp.fc2",
        "encoder.blocks.{i}.mlp_norm": "encoder.layers.{i}.norm2",
    }
    | {f"encoder.blocks.{{i}}.attn.{p}": Source("encoder.layers.{i}.attn.Wqkv", fused=QKV, part=p) for p in QKV},
)
EUROBERT = Family(
    model_type="eurobert",
    title="EuroBERT",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "causal": lambda c: False,  # published code looks both ways whatever the file says
        "norm_eps": number("rms_norm_eps", 1e-5),
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
        "mlp_bias": flag("mlp_bias", False),
        "head_bias": flag("mlp_bias", False),
    },
    fixed={"position": "rotary", "norm": "rms", "gated": True},
    weights=LLAMA_WEIGHTS,
)


def _modern_windowed(c: Theirs) -> tuple[int, ...]:
    if "layer_types" in c:
        return sliding(c)
    every = c.int("global_attn_every_n_layers", 3)
    return tuple(i for i in range(c.int("num_hidden_layers")) if every and i % every)


def _modern_base(layers: str, older: str, default: float) -> Callable[[Theirs], float]:
    def read(c: Theirs) -> float:
        stated = rope(c, layers)
        kind = stated.str("rope_type", "default")
        if kind != "default":
            raise CheckpointError(
                f"{stated.where}: rotary positions of type {shown(kind)} are not supported for ModernBERT."
            )
        found = stated.float("rope_theta", None)
        return c.float(older, default) if found is None else found

    return read


def modern_weights(prefix: str) -> dict[str, str | tuple[str, ...] | Source]:
    """ModernBERT's rows but those of q, k and v; `prefix` is its head's."""
    return {
        "{stack}.embed.token": "embeddings.tok_embeddings",
        "{stack}.embed.norm": "embeddings.norm",
        "{stack}.blocks.{i}.attn_norm": "layers.{i}.attn_norm",
        "{stack}.blocks.{i}.attn.o": "layers.{i}.attn.Wo",
        "{stack}.blocks.{i}.mlp_norm": "layers.{i}.mlp_norm",
        "{stack}.blocks.{i}.mlp.down": "layers.{i}.mlp.Wo",
        "{stack}.norm": "final_norm",
        "head.dense.weight": f"{prefix}.dense.weight",
        "head.dense.bias": Source(f"{prefix}.dense.bias", zeros_if_absent=True),
        "head.norm": f"{prefix}.norm",
        "head.unembed.weight": "decoder.weight",
        "head.unembed.bias": "decoder.bias",
    } | {f"{{stack}}.blocks.{{i}}.mlp.{p}": Source("layers.{i}.mlp.Wi", fused=GATE_UP, part=p) for p in GATE_UP}


MODERN_FIELDS = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_heads": whole("num_attention_heads"),
    "d_ff": whole("intermediate_size"),
    "n_ctx": whole("max_position_embeddings"),
    "norm_eps": number("norm_eps", 1e-5),
    "norm_bias": flag("norm_bias", False),
    "activation": activation("hidden_activation", "gelu"),
    "head_activation": activation("classifier_activation", "gelu"),
    "qkv_bias": flag("attention_bias", False),
    "out_bias": flag("attention_bias", False),
    "mlp_bias": flag("mlp_bias", False),
    "head_bias": flag("decoder_bias", True),
    "windowed_layers": _modern_windowed,
    "rotary_base": _modern_base("full_attention", "global_rope_theta", 160_000.0),
    "rotary_base_windowed": _modern_base("sliding_attention", "local_rope_theta", 10_000.0),
}
MODERN_FIXED = {"position": "rotary", "gated": True, "embed_norm": True, "first_attn_norm": False}
MODERN_REQUIRES = {"tie_word_embeddings": (True,)}
MODERNBERT = Family(
    model_type="modernbert",
    title="ModernBERT",
    prefix="model.",
    head="mlm",
    fields=MODERN_FIELDS
    | {
        "n_encoder_layers": whole("num_hidden_layers"),
        "window": lambda c: c.int("local_attention", 128) // 2 + 1,  # half of it on either side
    },
    fixed=MODERN_FIXED,
    requires=MODERN_REQUIRES,
    weights=modern_weights("head")
    | {f"{{stack}}.blocks.{{i}}.attn.{p}": Source("layers.{i}.attn.Wqkv", fused=QKV, part=p) for p in QKV},
)

ENCODERS = (
    BERT,
    ROBERTA,
    DISTILBERT,
    XLM_ROBERTA,
    CAMEMBERT,
    ERNIE,
    REMBERT,
    ALBERT,
    ELECTRA,
    MPNET,
    ESM,
    NOMIC_BERT,
    EUROBERT,
    MODERNBERT,
)
