"""Encoders: BERT and its successors, ModernBERT, and DeBERTa."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
    flag,
    fused,
    number,
    rope,
    rotary_base,
    rotary_scaling,
    shown,
    whole,
    wholes,
    without,
)
from .decoders import LLAMA_BLOCK, SIZES, biases, llama_like, sliding

BERT_BLOCK: dict[str, Row] = {
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
BERT_FIELDS: dict[str, Reader] = without(SIZES, "n_decoder_layers") | {
    "n_encoder_layers": whole("num_hidden_layers"),
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


def mlm_head(dense: str, norm: str, unembed: str, *biases: str) -> dict[str, Row]:
    """Rows of a masked-language-model head; `biases` are alternative names of its output bias."""
    return {
        "head.dense": dense,
        "head.norm": norm,
        "head.unembed.weight": unembed,
        "head.unembed.bias": biases if len(biases) > 1 else biases[0],
    }


def layer_rows(layer: str, **rows: str) -> dict[str, Row]:
    """Rows of one encoder layer: our module, with __ for a dot -> theirs inside `layer`."""
    return {f"encoder.blocks.{{i}}.{ours.replace('__', '.')}": f"{layer}.{theirs}" for ours, theirs in rows.items()}


BERT = Family(  # MiniLM is a small BERT without its head
    model_type="bert",
    title="BERT",
    prefix="bert.",
    head="mlm",
    # With is_decoder the same blocks form a decoder with a causal mask.
    fields=BERT_FIELDS
    | {
        "n_encoder_layers": lambda c: 0 if c.bool("is_decoder", False) else c.int("num_hidden_layers"),
        "n_decoder_layers": lambda c: c.int("num_hidden_layers") if c.bool("is_decoder", False) else 0,
    },
    fixed=BERT_FIXED,
    requires=BERT_REQUIRES | {"is_decoder": (False, True)},
    weights={row.replace("encoder.", "{stack}.", 1): source for row, source in BERT_BLOCK.items()}
    | mlm_head(
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder.weight",
        "cls.predictions.bias",
        "cls.predictions.decoder.bias",
    ),
)
LM_HEAD = mlm_head(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.bias", "lm_head.decoder.bias"
)
ROBERTA = Family(
    model_type="roberta",
    title="RoBERTa",
    prefix="roberta.",
    head="mlm",
    # Rows of the position table up to the padding id belong to padding; positions count the other tokens (fairseq).
    fields=BERT_FIELDS
    | {
        "position_offset": lambda c: c.int("pad_token_id", 1) + 1,
        "n_ctx": lambda c: c.int("max_position_embeddings") - c.int("pad_token_id", 1) - 1,
    },
    fixed=BERT_FIXED | {"position_counts": "not_padding"},
    requires=BERT_REQUIRES | {"hidden_act": ("gelu",)},  # its head always uses gelu
    weights=BERT_BLOCK | LM_HEAD,
)

DISTILBERT = Family(
    model_type="distilbert",
    title="DistilBERT",
    prefix="distilbert.",
    head="mlm",
    fields=wholes(
        vocab_size="vocab_size",
        d_model="dim",
        n_heads="n_heads",
        d_ff="hidden_dim",
        n_encoder_layers="n_layers",
        n_ctx="max_position_embeddings",
    )
    | {"activation": activation("activation")},
    fixed=BERT_FIXED | {"norm_eps": 1e-12},
    requires={"tie_word_embeddings": (True,)},
    weights={
        "encoder.embed.token": "embeddings.word_embeddings",
        "encoder.embed.position": "embeddings.position_embeddings",
        "encoder.embed.norm": "embeddings.LayerNorm",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.unembed": "vocab_projector",
    }
    | layer_rows(
        "transformer.layer.{i}",
        attn__q="attention.q_lin",
        attn__k="attention.k_lin",
        attn__v="attention.v_lin",
        attn__o="attention.out_lin",
        attn_norm="sa_layer_norm",
        mlp__up="ffn.lin1",
        mlp__down="ffn.lin2",
        mlp_norm="output_layer_norm",
    ),
)

XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", title="XLM-RoBERTa")
CAMEMBERT = replace(ROBERTA, model_type="camembert", title="CamemBERT")
DATA2VEC_TEXT = replace(ROBERTA, model_type="data2vec-text", title="Data2VecText", prefix="data2vec_text.")
_PRE = {"norm_order": "pre", "final_norm": True}
ROBERTA_PRELAYERNORM = replace(
    ROBERTA,
    model_type="roberta-prelayernorm",
    title="RoBERTa-PreLayerNorm",
    prefix="roberta_prelayernorm.",
    fixed={**ROBERTA.fixed, **_PRE},
    weights={
        **ROBERTA.weights,
        "encoder.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.LayerNorm",
        "encoder.blocks.{i}.mlp_norm": "encoder.layer.{i}.intermediate.LayerNorm",
        "encoder.norm": "LayerNorm",
    },
)
XLM_ROBERTA_XL = replace(
    ROBERTA,
    model_type="xlm-roberta-xl",
    title="XLM-RoBERTa-XL",
    fixed={**ROBERTA.fixed, **_PRE, "embed_norm": False},
    weights={
        **without(ROBERTA.weights, "encoder.embed.norm"),
        "encoder.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.self_attn_layer_norm",
        "encoder.blocks.{i}.mlp_norm": "encoder.layer.{i}.LayerNorm",
        "encoder.norm": "encoder.LayerNorm",
    },
)
MEGATRON_BERT = replace(
    BERT,
    model_type="megatron-bert",
    title="Megatron-BERT",
    fixed={**BERT.fixed, **_PRE, "embed_norm": False},
    weights={
        **without(BERT.weights, "{stack}.embed.norm"),
        f"{LAYER}.attn_norm": "encoder.layer.{i}.attention.ln",
        f"{LAYER}.mlp_norm": "encoder.layer.{i}.ln",
        "{stack}.norm": "encoder.ln",
    },
)
ERNIE = replace(
    BERT, model_type="ernie", title="ERNIE", prefix="ernie.", requires=BERT_REQUIRES | {"use_task_id": (False,)}
)
REMBERT = Family(
    model_type="rembert",
    title="RemBERT",
    prefix="rembert.",
    head="mlm",
    fields=BERT_FIELDS
    | wholes(d_embed="input_embedding_size", d_unembed="output_embedding_size")
    | {"tied": flag("tie_word_embeddings", False)},
    fixed=BERT_FIXED,
    requires={"is_decoder": (False,), "add_cross_attention": (False,)},
    weights=BERT_BLOCK
    | {"encoder.embed.project": "encoder.embedding_hidden_mapping_in"}
    | mlm_head(
        "cls.predictions.dense",
        "cls.predictions.LayerNorm",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    ),
)
ALBERT = Family(
    model_type="albert",
    title="ALBERT",
    prefix="albert.",
    head="mlm",
    fields=BERT_FIELDS | {"d_embed": whole("embedding_size", 128), "activation": activation("hidden_act", "gelu_new")},
    fixed=BERT_FIXED | {"shared_layers": True},
    requires={"num_hidden_groups": (1,), "inner_group_num": (1,), "tie_word_embeddings": (True,)},
    weights={row: source for row, source in BERT_BLOCK.items() if ".blocks." not in row}
    | layer_rows(
        "encoder.albert_layer_groups.0.albert_layers.0",
        attn__q="attention.query",
        attn__k="attention.key",
        attn__v="attention.value",
        attn__o="attention.dense",
        attn_norm="attention.LayerNorm",
        mlp__up="ffn",
        mlp__down="ffn_output",
        mlp_norm="full_layer_layer_norm",
    )
    | {"encoder.embed.project": "encoder.embedding_hidden_mapping_in"}
    | mlm_head(
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.decoder.weight",
        "predictions.bias",
        "predictions.decoder.bias",
    ),
)
ELECTRA = Family(
    model_type="electra",
    title="ELECTRA",
    prefix="electra.",
    head="mlm",
    fields=BERT_FIELDS | {"d_embed": whole("embedding_size", 128)},
    fixed=BERT_FIXED | {"head_activation": "gelu"},  # independent of hidden_act
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
    fields=without(ROBERTA.fields, "n_token_types", "position_offset")
    | {
        "n_relative_buckets": whole("relative_attention_num_buckets", 32),
        "n_ctx": lambda c: c.int("max_position_embeddings") - 2,
    },
    # Its class always uses 1 as the padding id and ignores pad_token_id.
    fixed=BERT_FIXED
    | {"position_counts": "not_padding", "position_offset": 2, "relative_bias": True, "max_relative_distance": 128},
    requires={"hidden_act": ("gelu",), "tie_word_embeddings": (True,)},
    weights={
        row: source
        for row, source in ROBERTA.weights.items()
        if ".blocks." not in row and row != "encoder.embed.token_type"
    }
    | layer_rows(
        "encoder.layer.{i}",
        attn__q="attention.attn.q",
        attn__k="attention.attn.k",
        attn__v="attention.attn.v",
        attn__o="attention.attn.o",
        attn_norm="attention.LayerNorm",
        mlp__up="intermediate.dense",
        mlp__down="output.dense",
        mlp_norm="output.LayerNorm",
    )
    | {"encoder.relative_bias": "encoder.relative_attention_bias"},
)


def _rotary_only(c: SourceConfig) -> str:
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
    fields=without(BERT_FIELDS, "n_token_types", "activation")
    | {
        "position": _rotary_only,
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
    }
    | LM_HEAD
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
    fixed=without(BERT_FIXED, "head_bias")
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
    | fused("encoder.blocks.{i}.attn", "encoder.layers.{i}.attn.Wqkv"),
)
EUROBERT = llama_like(
    "eurobert",
    "EuroBERT",
    biases()
    | {
        "causal": lambda c: False,  # published code is bidirectional and ignores is_causal
        "norm_eps": number("rms_norm_eps", 1e-5),
        "head_bias": flag("mlp_bias", False),
    },
    fixed=LLAMA_BLOCK,
)


def _modern_windowed(c: SourceConfig) -> tuple[int, ...]:
    if "layer_types" in c:
        return sliding(c)
    every = c.int("global_attn_every_n_layers", 3)
    return tuple(i for i in range(c.int("num_hidden_layers")) if every and i % every)


def _modern_base(layers: str, older: str, default: float) -> Callable[[SourceConfig], float]:
    def read(c: SourceConfig) -> float:
        stated = rope(c, layers)
        kind = stated.str("rope_type", "default")
        if kind != "default":
            raise CheckpointError(
                f"{stated.where}: rotary positions of type {shown(kind)} are not supported for ModernBERT."
            )
        found = stated.float("rope_theta", None)
        return c.float(older, default) if found is None else found

    return read


def modern_weights(prefix: str) -> dict[str, Row]:
    """ModernBERT's rows without those of q, k and v. `prefix` is that of its head."""
    return {
        "{stack}.embed.token": "embeddings.tok_embeddings",
        "{stack}.embed.norm": "embeddings.norm",
        f"{LAYER}.attn_norm": "layers.{i}.attn_norm",
        f"{LAYER}.attn.o": "layers.{i}.attn.Wo",
        f"{LAYER}.mlp_norm": "layers.{i}.mlp_norm",
        f"{LAYER}.mlp.down": "layers.{i}.mlp.Wo",
        "{stack}.norm": "final_norm",
        "head.dense.weight": f"{prefix}.dense.weight",
        "head.dense.bias": Source(f"{prefix}.dense.bias", zeros_if_absent=True),
        "head.norm": f"{prefix}.norm",
        "head.unembed.weight": "decoder.weight",
        "head.unembed.bias": "decoder.bias",
    } | fused(f"{LAYER}.mlp", "layers.{i}.mlp.Wi", GATE_UP)


MODERN_FIELDS: dict[str, Reader] = without(SIZES, "n_decoder_layers") | {
    "norm_eps": number("norm_eps", 1e-5),
    "norm_bias": flag("norm_bias", False),
    "activation": activation("hidden_activation", "gelu"),
    "head_activation": activation("classifier_activation", "gelu"),
    **biases(),
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
        "window": lambda c: c.int("local_attention", 128) // 2 + 1,  # half of it on each side
    },
    fixed=MODERN_FIXED,
    requires=MODERN_REQUIRES,
    weights=modern_weights("head") | fused(f"{LAYER}.attn", "layers.{i}.attn.Wqkv"),
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
    DATA2VEC_TEXT,
    ROBERTA_PRELAYERNORM,
    XLM_ROBERTA_XL,
    MEGATRON_BERT,
)


def _position_terms(c: SourceConfig) -> tuple[str, ...]:
    """Terms in `pos_att_type`, a list or a string such as "p2c|c2p"."""
    stated = c.any("pos_att_type", None) or []
    words = [word.strip() for word in stated.lower().split("|")] if isinstance(stated, str) else stated
    if not isinstance(words, list) or any(word not in ("c2p", "p2c") for word in words):
        raise CheckpointError(f"{c.where}: pos_att_type is {shown(stated)}, but it must be c2p, p2c or both.")
    return tuple(term for term in ("c2p", "p2c") if term in words)


def _deberta_position(c: SourceConfig) -> str:
    """Distances in the scores, learned positions, or neither. Published models have only distances."""
    learned = c.bool("position_biased_input", True)
    if not c.bool("relative_attention", False):
        return "learned" if learned else "none"
    if learned:
        raise CheckpointError(
            f"{c.where}: DeBERTa with relative_attention and position_biased_input together is not supported; no published one has both."
        )
    if not _position_terms(c):
        return "none"
    return "disentangled"


def _deberta_scale(c: SourceConfig) -> float:
    """1/√(d_head · terms), where content-to-content counts as a term."""
    return (c.int("hidden_size") // c.int("num_attention_heads") * (1 + len(_position_terms(c)))) ** -0.5


def _deberta_distances(c: SourceConfig) -> int:
    key = "max_relative_positions"
    return c.any(key) if _is_positive(c, key) else c.int("max_position_embeddings")


def _is_positive(c: SourceConfig, key: str) -> bool:
    """True if a number is stated and positive; these files write -1 for none."""
    value = c.any(key, -1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise CheckpointError(f"{c.where}: {key} is {shown(value)}, but it must be a whole number.")
    return value > 0


DEBERTA_V2 = Family(
    model_type="deberta-v2",
    title="DeBERTa v2 and v3",
    prefix="deberta.",
    head="mlm",
    fields=BERT_FIELDS
    | {
        "norm_eps": number("layer_norm_eps", 1e-7),
        "n_token_types": whole("type_vocab_size", 0),
        "position": _deberta_position,
        "position_terms": lambda c: _position_terms(c) if _deberta_position(c) == "disentangled" else (),
        "attn_scale": _deberta_scale,
        "n_position_buckets": lambda c: c.int("position_buckets") if _is_positive(c, "position_buckets") else 0,
        "max_relative_distance": _deberta_distances,
        "distance_norm": lambda c: "layer_norm" in c.str("norm_rel_ebd", "none").lower(),
        "own_distance_projections": lambda c: not c.bool("share_att_key", False),
    },
    fixed=BERT_FIXED,
    requires=BERT_REQUIRES | {"conv_kernel_size": (0,), "tie_word_embeddings": (True,)},
    weights=BERT_BLOCK
    | layer_rows(
        "encoder.layer.{i}.attention.self",
        attn__q="query_proj",
        attn__k="key_proj",
        attn__v="value_proj",
        attn__q_distance="pos_query_proj",
        attn__k_distance="pos_key_proj",
    )
    | {
        "encoder.distances": "encoder.rel_embeddings",
        "encoder.distance_norm": "encoder.LayerNorm",
        "head.dense": ("cls.predictions.transform.dense", "lm_predictions.lm_head.dense"),
        "head.norm": ("cls.predictions.transform.LayerNorm", "lm_predictions.lm_head.LayerNorm"),
        "head.unembed.weight": "cls.predictions.decoder.weight",
        "head.unembed.bias": (
            "cls.predictions.bias",
            "cls.predictions.decoder.bias",
            "lm_predictions.lm_head.bias",
        ),
    },
)

_SELF = "encoder.layer.{i}.attention.self"
_ROW = "encoder.blocks.{i}.attn"
DEBERTA = replace(
    DEBERTA_V2,
    model_type="deberta",
    title="DeBERTa",
    fields={
        **DEBERTA_V2.fields,
        "n_position_buckets": lambda _: 0,
        "distance_norm": lambda _: False,
        "own_distance_projections": lambda _: True,
    },
    requires=BERT_REQUIRES | {"talking_head": (False,)},
    # Keys have no bias, neither for content nor for distance.
    weights={
        row: source
        for row, source in DEBERTA_V2.weights.items()
        if not row.startswith((f"{_ROW}.q", f"{_ROW}.k", f"{_ROW}.v", "encoder.distance_norm"))
    }
    | {f"{row}.weight": source for row, source in fused(_ROW, f"{_SELF}.in_proj.weight", per_head=True).items()}
    | {
        f"{_ROW}.q.bias": f"{_SELF}.q_bias",
        f"{_ROW}.k.bias": Source(f"{_SELF}.k_bias", zeros_if_absent=True),
        f"{_ROW}.v.bias": f"{_SELF}.v_bias",
        f"{_ROW}.q_distance": f"{_SELF}.pos_q_proj",
        f"{_ROW}.k_distance.weight": f"{_SELF}.pos_proj.weight",
        f"{_ROW}.k_distance.bias": Source(f"{_SELF}.pos_proj.bias", zeros_if_absent=True),
    },
)

DEBERTAS = (DEBERTA, DEBERTA_V2)
