"""Models that differ from one of the other tables in little: names of tensors, the place of a norm, an activation, a default."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import CheckpointError
from ..family import Family, Source, Theirs, activation, flag, number, whole
from ..rotary import rotary_scaling
from .decoders import GEMMA2, LLAMA, LLAMA_FIELDS, LLAMA_WEIGHTS, sliding, window_of
from .encoder_decoders import BART
from .encoders import BERT, ROBERTA
from .llama_line import FREE_BIASES, LAYER, UNGATED, biases, without

_UNGATED_FIXED = {"position": "rotary", "norm": "rms"}
ARCEE = Family(
    model_type="arcee",
    title="Arcee",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases()
    | {"norm_eps": number("rms_norm_eps", 1e-5), "activation": activation("hidden_act", "relu2")},
    fixed=_UNGATED_FIXED,
    weights=without(LLAMA_WEIGHTS, UNGATED),
)
JAIS2 = Family(
    model_type="jais2",
    title="Jais 2",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases(default=True)
    | {"norm_eps": number("layer_norm_eps", 1e-5), "activation": activation("hidden_act", "relu2")},
    fixed=_UNGATED_FIXED | {"norm": "layer"},
    weights=without(LLAMA_WEIGHTS, UNGATED),
)
_RESIDUAL = number("residual_multiplier", 1.0)
HYPERCLOVAX = Family(
    model_type="hyperclovax",
    title="HyperCLOVA X",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases()
    | {
        "embed_scale": number("embedding_multiplier", 1.0),
        "attn_scale": lambda c: c.float("attention_multiplier", None),
        "logit_scale": number("logits_scaling", 1.0),
    },
    fixed=FREE_BIASES | {"norm_order": "sandwich"},
    requires={"use_post_norm": (True,)},
    weights=LLAMA_WEIGHTS
    | {
        f"{LAYER}.attn_out_norm": Source("layers.{i}.post_norm1", times=_RESIDUAL),
        f"{LAYER}.mlp_out_norm": Source("layers.{i}.post_norm2", times=_RESIDUAL),
    },
)
_WIDE_HEADS = {"d_head": whole("head_dim", 128), "norm_eps": number("rms_norm_eps", 1e-5)}
INTERNLM3 = replace(
    LLAMA,
    model_type="internlm3",
    title="InternLM 3",
    fields={**LLAMA.fields, **_WIDE_HEADS, "n_kv_heads": whole("num_key_value_heads", 2)},
    requires={"qkv_bias": (False,), "bias": (False,)},  # older words; one leaves the last matrix apart
)
IQUESTCODER = replace(
    LLAMA,
    model_type="iquestcoder",
    title="IQuest-Coder",
    fields={**LLAMA.fields, **_WIDE_HEADS, "n_kv_heads": whole("num_key_value_heads", 8)},
    requires={"clip_qkv": (None,), "use_sliding_window": (False,)},
)


def _cwm_windowed(c: Theirs) -> tuple[int, ...]:
    return sliding(c) if "layer_types" in c else tuple(i for i in range(c.int("num_hidden_layers")) if i % 4)


def _cwm_scaling(c: Theirs) -> Any:
    if "rope_parameters" not in c and "rope_scaling" not in c:
        raise CheckpointError(f"{c.where} has no rope_parameters, by which CWM stretches its positions.")
    return rotary_scaling(c)


CWM = Family(
    model_type="cwm",
    title="CWM",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "d_head": whole("head_dim", 128),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "mlp_bias": flag("mlp_bias", False),
        "window": window_of(8192),
        "windowed_layers": _cwm_windowed,
        "rotary_scaling": _cwm_scaling,
    },
    fixed=FREE_BIASES | {"qkv_bias": False, "out_bias": False},
    weights=LLAMA_WEIGHTS,
)
VAULTGEMMA = replace(
    GEMMA2,
    model_type="vaultgemma",
    title="VaultGemma",
    fixed={**GEMMA2.fixed, "norm_order": "pre"},
    weights={
        **without(GEMMA2.weights, f"{LAYER}.attn_out_norm", f"{LAYER}.mlp_out_norm"),
    },
)

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
        **{row: source for row, source in ROBERTA.weights.items() if row != "encoder.embed.norm"},
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
        **{row: source for row, source in BERT.weights.items() if row != "{stack}.embed.norm"},
        "{stack}.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.ln",
        "{stack}.blocks.{i}.mlp_norm": "encoder.layer.{i}.ln",
        "{stack}.norm": "encoder.ln",
    },
)

PLBART = replace(
    BART,
    model_type="plbart",
    title="PLBart",
    fields={
        **BART.fields,
        "embed_scale": lambda c: c.int("d_model") ** 0.5 if c.bool("scale_embedding", True) else 1.0,
    },
)
MVP = replace(BART, model_type="mvp", title="MVP", requires={**BART.requires, "use_prompt": (False,)})

RELATIVES = (
    ARCEE,
    JAIS2,
    HYPERCLOVAX,
    INTERNLM3,
    IQUESTCODER,
    CWM,
    VAULTGEMMA,
    DATA2VEC_TEXT,
    ROBERTA_PRELAYERNORM,
    XLM_ROBERTA_XL,
    MEGATRON_BERT,
    PLBART,
    MVP,
)
