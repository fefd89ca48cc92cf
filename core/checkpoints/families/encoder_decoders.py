"""Encoder-decoders: BART, Marian and others from fairseq, and T5 and its successors."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import CheckpointError
from ..family import (
    ACTIVATIONS,
    Family,
    Reader,
    Row,
    Source,
    SourceConfig,
    activation,
    causal,
    flag,
    number,
    shown,
    whole,
    wholes,
    without,
)
from .decoders import FAIRSEQ_LAYER

_FAIRSEQ_BLOCK = {ours: f"{{stack}}.{theirs}" for ours, theirs in FAIRSEQ_LAYER.items()} | {
    "decoder.blocks.{i}.cross_attn.q": "decoder.layers.{i}.encoder_attn.q_proj",
    "decoder.blocks.{i}.cross_attn.k": "decoder.layers.{i}.encoder_attn.k_proj",
    "decoder.blocks.{i}.cross_attn.v": "decoder.layers.{i}.encoder_attn.v_proj",
    "decoder.blocks.{i}.cross_attn.o": "decoder.layers.{i}.encoder_attn.out_proj",
    "decoder.blocks.{i}.cross_norm": "decoder.layers.{i}.encoder_attn_layer_norm",
    "head.unembed.weight": "lm_head.weight",
    "head.unembed.bias": Source("final_logits_bias", zeros_if_absent=True),
}
_TOKENS = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")  # one table, stored under up to three names


def _same_in_both(what: str, ours: str) -> Reader:
    """A number that both of our stacks share. Published models with different numbers are refused."""

    def read(c: SourceConfig) -> int:
        encoder, decoder = c.int(f"encoder_{ours}"), c.int(f"decoder_{ours}")
        if encoder != decoder:
            raise CheckpointError(
                f"{c.where}: encoder and decoder have different {what} ({encoder} and {decoder}), which is not supported."
            )
        return encoder

    return read


_SEQ2SEQ_FIELDS = wholes(
    vocab_size="vocab_size",
    d_model="d_model",
    n_encoder_layers="encoder_layers",
    n_decoder_layers="decoder_layers",
    n_ctx="max_position_embeddings",
) | {
    "n_heads": _same_in_both("numbers of heads", "attention_heads"),
    "d_ff": _same_in_both("MLP widths", "ffn_dim"),
    "causal": causal,
    "activation": activation("activation_function", "gelu"),
    "embed_scale": lambda c: math.sqrt(c.int("d_model")) if c.bool("scale_embedding", False) else 1.0,
    "tied": flag("tie_word_embeddings", True),
}
_SEQ2SEQ_FIXED = {"norm_order": "post", "final_norm": False, "head_bias": True}
# BART's first configs state these defaults; other models of the same code change them.
_BART_REQUIRES = {"normalize_before": (False,), "add_final_layer_norm": (False,), "normalize_embedding": (True,)}


def _fairseq(model_type: str, title: str, start: str, fixed: Mapping[str, Any], **options: Any) -> Family:
    """A family of fairseq's encoder-decoders, with `fixed` added to their common values."""
    common: dict[str, Any] = {"prefix": "model.", "fields": _SEQ2SEQ_FIELDS, "weights": _FAIRSEQ_BLOCK | _FINAL_NORM}
    own_fixed = {**_SEQ2SEQ_FIXED, **fixed}
    return Family(model_type=model_type, title=title, start_token=start, fixed=own_fixed, **(common | options))


_PRE_NORM = {"final_norm": True, "norm_order": "pre"}
_FINAL_NORM = {"{stack}.norm": "{stack}.layer_norm", "{stack}.embed.token": _TOKENS}
_SINUSOIDS = {"position": "sinusoidal", "sinusoid_layout": "halves"}
_OFFSET_2 = {"position_offset": 2, "embed_norm": True}
BART = _fairseq(
    "bart",
    "BART",
    "eos",
    _OFFSET_2,
    requires=_BART_REQUIRES,
    weights=_FAIRSEQ_BLOCK
    | {
        "{stack}.embed.token": _TOKENS,
        "{stack}.embed.position": "{stack}.embed_positions",
        "{stack}.embed.norm": "{stack}.layernorm_embedding",
    },
)
MARIAN = _fairseq(
    "marian",
    "Marian",
    "pad",
    _SINUSOIDS,
    requires={"share_encoder_decoder_embeddings": (True,)},
    weights=_FAIRSEQ_BLOCK | {"{stack}.embed.token": _TOKENS},
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
MBART = _fairseq("mbart", "mBART", "eos", _PRE_NORM | _OFFSET_2, weights={**BART.weights, **_FINAL_NORM})
PEGASUS = _fairseq("pegasus", "Pegasus", "pad", _PRE_NORM | _SINUSOIDS)
BLENDERBOT = _fairseq(
    "blenderbot",
    "Blenderbot",
    "eos",
    _PRE_NORM,
    weights=_FAIRSEQ_BLOCK | _FINAL_NORM | {"{stack}.embed.position": "{stack}.embed_positions"},
)
M2M100 = _fairseq(
    "m2m_100",
    "M2M100 and NLLB",
    "eos",
    _PRE_NORM | {"position": "sinusoidal", "sinusoid_layout": "fairseq", "position_offset": 2, "head_bias": False},
    fields=_SEQ2SEQ_FIELDS | {"activation": activation("activation_function", "relu")},
    # Its table of sinusoids begins after the row of the padding token.
    requires={"pad_token_id": (1,), "tie_word_embeddings": (True,)},
    weights=without(_FAIRSEQ_BLOCK, "head.unembed.bias") | _FINAL_NORM,
)


def _t5_mlp(c: SourceConfig, default: str = "relu") -> tuple[str, bool]:
    """(activation, gated) from "relu" or "gated-gelu" (v1.1, where gelu is its tanh form). Explicit keys for either take precedence."""
    words = c.str("feed_forward_proj", default).split("-")
    name = c.str("dense_act_fn", "gelu_new" if words == ["gated", "gelu"] else words[-1])
    if words[:-1] not in ([], ["gated"]) or name not in ACTIVATIONS:
        stated = f"dense_act_fn={shown(name)}" if "dense_act_fn" in c else f"feed_forward_proj={shown('-'.join(words))}"
        raise CheckpointError(
            f"{c.where}: {stated} is not supported. Supported are {', '.join(ACTIVATIONS)}, each also as gated-…"
        )
    return ACTIVATIONS[name], c.bool("is_gated_act", len(words) == 2)


def _t5_tied(c: SourceConfig) -> bool:
    return c.bool("tie_word_embeddings", True)


def _t5_logit_scale(c: SourceConfig) -> float:
    """v1.0 divides the last residual by √d_model. Newer files state this; older ones imply it by tied embeddings."""
    return c.int("d_model") ** -0.5 if c.bool("scale_decoder_outputs", _t5_tied(c)) else 1.0


def _t5_decoder_layers(c: SourceConfig) -> int:
    if c.strings("architectures") == ("T5EncoderModel",):
        return 0
    if not c.bool("is_encoder_decoder", True):
        raise CheckpointError(f"{c.where}: T5 with is_encoder_decoder=false is supported only as a T5EncoderModel.")
    return c.int("num_decoder_layers", None) or c.int("num_layers")


def _t5_mlp_rows(stack: str, layer: str) -> dict[str, Row]:
    dense = f"{layer}.DenseReluDense"
    return {
        f"{stack}.blocks.{{i}}.mlp_norm": f"{layer}.layer_norm",
        f"{stack}.blocks.{{i}}.mlp.gate": f"{dense}.wi_0",
        f"{stack}.blocks.{{i}}.mlp.up": (f"{dense}.wi", f"{dense}.wi_1"),
        f"{stack}.blocks.{{i}}.mlp.down": f"{dense}.wo",
    }


T5 = Family(
    model_type="t5",
    title="T5",
    start_token="pad",
    fields=wholes(
        vocab_size="vocab_size",
        d_model="d_model",
        n_heads="num_heads",
        d_head="d_kv",
        d_ff="d_ff",
        n_encoder_layers="num_layers",
    )
    | {
        "n_decoder_layers": _t5_decoder_layers,
        "n_ctx": whole("n_positions", 512),  # training length; distances are unbounded
        "causal": causal,
        "n_relative_buckets": whole("relative_attention_num_buckets", 32),
        "max_relative_distance": whole("relative_attention_max_distance", 128),
        "norm_eps": number("layer_norm_epsilon", 1e-6),
        "activation": lambda c: _t5_mlp(c)[0],
        "gated": lambda c: _t5_mlp(c)[1],
        "tied": _t5_tied,
        "logit_scale": _t5_logit_scale,
    },
    fixed={
        "position": "relative",
        "norm": "rms",
        "attn_scale": 1.0,
        "qkv_bias": False,
        "out_bias": False,
        "mlp_bias": False,
    },
    weights={
        "{stack}.embed.token": _TOKENS,
        "{stack}.relative_bias": "{stack}.block.0.layer.0.SelfAttention.relative_attention_bias",
        "{stack}.blocks.{i}.attn_norm": "{stack}.block.{i}.layer.0.layer_norm",
        "decoder.blocks.{i}.cross_norm": "decoder.block.{i}.layer.1.layer_norm",
        "{stack}.norm": "{stack}.final_layer_norm",
        "head.unembed": "lm_head",
    }
    | {f"{{stack}}.blocks.{{i}}.attn.{part}": f"{{stack}}.block.{{i}}.layer.0.SelfAttention.{part}" for part in "qkvo"}
    | {
        f"decoder.blocks.{{i}}.cross_attn.{part}": f"decoder.block.{{i}}.layer.1.EncDecAttention.{part}"
        for part in "qkvo"
    }
    | _t5_mlp_rows("encoder", "encoder.block.{i}.layer.1")
    | _t5_mlp_rows("decoder", "decoder.block.{i}.layer.2"),
)
MT5 = replace(
    T5,
    model_type="mt5",
    title="mT5",
    fields=without(T5.fields, "logit_scale")
    | {"activation": lambda c: _t5_mlp(c, "gated-gelu")[0], "gated": lambda c: _t5_mlp(c, "gated-gelu")[1]},
)
UMT5 = replace(
    T5,
    model_type="umt5",
    title="UMT5",
    fields={**MT5.fields, "logit_scale": lambda c: c.int("d_model") ** -0.5 if _t5_tied(c) else 1.0},
    fixed={**T5.fixed, "relative_per_layer": True},
    weights=without(T5.weights, "{stack}.relative_bias")
    | {"{stack}.relative_biases.{i}": "{stack}.block.{i}.layer.0.SelfAttention.relative_attention_bias"},
)

ENCODER_DECODERS = (BART, MARIAN, T5, MBART, PEGASUS, BLENDERBOT, M2M100, MT5, UMT5, PLBART, MVP)
