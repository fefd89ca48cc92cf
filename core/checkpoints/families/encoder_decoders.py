"""Encoder-decoders: BART, Marian and others from fairseq, and T5 with its line."""

import math
from dataclasses import replace

from ...errors import CheckpointError
from ..family import ACTIVATIONS, Family, Reader, Source, Theirs, activation, causal, flag, number, shown, whole

_FAIRSEQ_BLOCK = {
    "{stack}.blocks.{i}.attn.q": "{stack}.layers.{i}.self_attn.q_proj",
    "{stack}.blocks.{i}.attn.k": "{stack}.layers.{i}.self_attn.k_proj",
    "{stack}.blocks.{i}.attn.v": "{stack}.layers.{i}.self_attn.v_proj",
    "{stack}.blocks.{i}.attn.o": "{stack}.layers.{i}.self_attn.out_proj",
    "{stack}.blocks.{i}.attn_norm": "{stack}.layers.{i}.self_attn_layer_norm",
    "decoder.blocks.{i}.cross_attn.q": "decoder.layers.{i}.encoder_attn.q_proj",
    "decoder.blocks.{i}.cross_attn.k": "decoder.layers.{i}.encoder_attn.k_proj",
    "decoder.blocks.{i}.cross_attn.v": "decoder.layers.{i}.encoder_attn.v_proj",
    "decoder.blocks.{i}.cross_attn.o": "decoder.layers.{i}.encoder_attn.out_proj",
    "decoder.blocks.{i}.cross_norm": "decoder.layers.{i}.encoder_attn_layer_norm",
    "{stack}.blocks.{i}.mlp.up": "{stack}.layers.{i}.fc1",
    "{stack}.blocks.{i}.mlp.down": "{stack}.layers.{i}.fc2",
    "{stack}.blocks.{i}.mlp_norm": "{stack}.layers.{i}.final_layer_norm",
    "head.unembed.weight": "lm_head.weight",
    "head.unembed.bias": Source("final_logits_bias", zeros_if_absent=True),
}
_TOKENS = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")  # one table under up to three names


def _same_in_both(what: str, ours: str) -> Reader:
    """Our two stacks have one number of heads and one MLP width; published models agree, with exceptions refused here."""

    def read(c: Theirs) -> int:
        encoder, decoder = c.int(f"encoder_{ours}"), c.int(f"decoder_{ours}")
        if encoder != decoder:
            raise CheckpointError(
                f"{c.where}: encoder and decoder have different {what} ({encoder} and {decoder}), which is not supported."
            )
        return encoder

    return read


_SEQ2SEQ_FIELDS: dict[str, Reader] = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("d_model"),
    "n_heads": _same_in_both("numbers of heads", "attention_heads"),
    "d_ff": _same_in_both("MLP widths", "ffn_dim"),
    "n_encoder_layers": whole("encoder_layers"),
    "n_decoder_layers": whole("decoder_layers"),
    "n_ctx": whole("max_position_embeddings"),
    "causal": causal,
    "activation": activation("activation_function", "gelu"),
    "embed_scale": lambda c: math.sqrt(c.int("d_model")) if c.bool("scale_embedding", False) else 1.0,
    "tied": flag("tie_word_embeddings", True),
}
_SEQ2SEQ_FIXED = {"norm_order": "post", "final_norm": False, "head_bias": True}
# Left over in configs of BART's first files; other models of that code really set them.
_BART_REQUIRES = {"normalize_before": (False,), "add_final_layer_norm": (False,), "normalize_embedding": (True,)}

BART = Family(
    model_type="bart",
    title="BART",
    prefix="model.",
    start_token="eos",
    fields=_SEQ2SEQ_FIELDS,
    fixed=_SEQ2SEQ_FIXED | {"position_offset": 2, "embed_norm": True},
    requires=_BART_REQUIRES,
    weights=_FAIRSEQ_BLOCK
    | {
        "{stack}.embed.token": _TOKENS,
        "{stack}.embed.position": "{stack}.embed_positions",
        "{stack}.embed.norm": "{stack}.layernorm_embedding",
    },
)
MARIAN = Family(
    model_type="marian",
    title="Marian",
    prefix="model.",
    start_token="pad",
    fields=_SEQ2SEQ_FIELDS,
    fixed=_SEQ2SEQ_FIXED | {"position": "sinusoidal", "sinusoid_layout": "halves"},
    requires={"share_encoder_decoder_embeddings": (True,)},
    weights=_FAIRSEQ_BLOCK | {"{stack}.embed.token": _TOKENS},
)


def _t5_mlp(c: Theirs, default: str = "relu") -> tuple[str, bool]:
    """The activation, and whether it is gated: "relu", or "gated-gelu" in v1.1, whose gelu is the tanh one.

    A file may state the two halves of it as well, which then count.
    """
    words = c.str("feed_forward_proj", default).split("-")
    name = c.str("dense_act_fn", "gelu_new" if words == ["gated", "gelu"] else words[-1])
    if words[:-1] not in ([], ["gated"]) or name not in ACTIVATIONS:
        stated = f"dense_act_fn={shown(name)}" if "dense_act_fn" in c else f"feed_forward_proj={shown('-'.join(words))}"
        raise CheckpointError(
            f"{c.where}: {stated} is not supported. Supported are {', '.join(ACTIVATIONS)}, each also as gated-…"
        )
    return ACTIVATIONS[name], c.bool("is_gated_act", len(words) == 2)


def _t5_tied(c: Theirs) -> bool:
    return c.bool("tie_word_embeddings", True)


def _t5_logit_scale(c: Theirs) -> float:
    """v1.0 shrinks the last residual by √d_model. Newer files say so; in older ones it goes with the tied embeddings."""
    return c.int("d_model") ** -0.5 if c.bool("scale_decoder_outputs", _t5_tied(c)) else 1.0


def _t5_decoder_layers(c: Theirs) -> int:
    if c.strings("architectures") == ("T5EncoderModel",):
        return 0
    if not c.bool("is_encoder_decoder", True):
        raise CheckpointError(f"{c.where}: T5 with is_encoder_decoder=false is supported only as a T5EncoderModel.")
    return c.int("num_decoder_layers", None) or c.int("num_layers")


T5 = Family(
    model_type="t5",
    title="T5",
    start_token="pad",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("d_model"),
        "n_heads": whole("num_heads"),
        "d_head": whole("d_kv"),
        "d_ff": whole("d_ff"),
        "n_encoder_layers": whole("num_layers"),
        "n_decoder_layers": _t5_decoder_layers,
        "n_ctx": whole("n_positions", 512),  # the length of its training; distances have no end
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
        "{stack}.blocks.{i}.attn.q": "{stack}.block.{i}.layer.0.SelfAttention.q",
        "{stack}.blocks.{i}.attn.k": "{stack}.block.{i}.layer.0.SelfAttention.k",
        "{stack}.blocks.{i}.attn.v": "{stack}.block.{i}.layer.0.SelfAttention.v",
        "{stack}.blocks.{i}.attn.o": "{stack}.block.{i}.layer.0.SelfAttention.o",
        "decoder.blocks.{i}.cross_norm": "decoder.block.{i}.layer.1.layer_norm",
        "decoder.blocks.{i}.cross_attn.q": "decoder.block.{i}.layer.1.EncDecAttention.q",
        "decoder.blocks.{i}.cross_attn.k": "decoder.block.{i}.layer.1.EncDecAttention.k",
        "decoder.blocks.{i}.cross_attn.v": "decoder.block.{i}.layer.1.EncDecAttention.v",
        "decoder.blocks.{i}.cross_attn.o": "decoder.block.{i}.layer.1.EncDecAttention.o",
        "encoder.blocks.{i}.mlp_norm": "encoder.block.{i}.layer.1.layer_norm",
        "encoder.blocks.{i}.mlp.gate": "encoder.block.{i}.layer.1.DenseReluDense.wi_0",
        "encoder.blocks.{i}.mlp.up": (
            "encoder.block.{i}.layer.1.DenseReluDense.wi",
            "encoder.block.{i}.layer.1.DenseReluDense.wi_1",
        ),
        "encoder.blocks.{i}.mlp.down": "encoder.block.{i}.layer.1.DenseReluDense.wo",
        "decoder.blocks.{i}.mlp_norm": "decoder.block.{i}.layer.2.layer_norm",
        "decoder.blocks.{i}.mlp.gate": "decoder.block.{i}.layer.2.DenseReluDense.wi_0",
        "decoder.blocks.{i}.mlp.up": (
            "decoder.block.{i}.layer.2.DenseReluDense.wi",
            "decoder.block.{i}.layer.2.DenseReluDense.wi_1",
        ),
        "decoder.blocks.{i}.mlp.down": "decoder.block.{i}.layer.2.DenseReluDense.wo",
        "{stack}.norm": "{stack}.final_layer_norm",
        "head.unembed": "lm_head",
    },
)

_PRE_NORM = {"final_norm": True, "norm_order": "pre"}
_FINAL_NORM = {"{stack}.norm": "{stack}.layer_norm", "{stack}.embed.token": _TOKENS}
MBART = Family(
    model_type="mbart",
    title="mBART",
    prefix="model.",
    start_token="eos",
    fields=_SEQ2SEQ_FIELDS,
    fixed=_SEQ2SEQ_FIXED | _PRE_NORM | {"position_offset": 2, "embed_norm": True},
    weights={**BART.weights, **_FINAL_NORM},
)
PEGASUS = Family(
    model_type="pegasus",
    title="Pegasus",
    prefix="model.",
    start_token="pad",
    fields=_SEQ2SEQ_FIELDS,
    fixed=_SEQ2SEQ_FIXED | _PRE_NORM | {"position": "sinusoidal", "sinusoid_layout": "halves"},
    weights=_FAIRSEQ_BLOCK | _FINAL_NORM,
)
BLENDERBOT = Family(
    model_type="blenderbot",
    title="Blenderbot",
    prefix="model.",
    start_token="eos",
    fields=_SEQ2SEQ_FIELDS,
    fixed=_SEQ2SEQ_FIXED | _PRE_NORM,
    weights=_FAIRSEQ_BLOCK | _FINAL_NORM | {"{stack}.embed.position": "{stack}.embed_positions"},
)
M2M100 = Family(
    model_type="m2m_100",
    title="M2M100 and NLLB",
    prefix="model.",
    start_token="eos",
    fields=_SEQ2SEQ_FIELDS | {"activation": activation("activation_function", "relu")},
    fixed=_SEQ2SEQ_FIXED
    | _PRE_NORM
    | {"position": "sinusoidal", "sinusoid_layout": "fairseq", "position_offset": 2, "head_bias": False},
    requires={
        "pad_token_id": (1,),
        "tie_word_embeddings": (True,),
    },  # its table of sinusoids begins after the padding's row
    weights={row: source for row, source in _FAIRSEQ_BLOCK.items() if not row.startswith("head.")}
    | _FINAL_NORM
    | {"head.unembed.weight": "lm_head.weight"},
)
MT5 = replace(
    T5,
    model_type="mt5",
    title="mT5",
    fields={name: read for name, read in T5.fields.items() if name != "logit_scale"}
    | {"activation": lambda c: _t5_mlp(c, "gated-gelu")[0], "gated": lambda c: _t5_mlp(c, "gated-gelu")[1]},
)
UMT5 = replace(
    T5,
    model_type="umt5",
    title="UMT5",
    fields={**MT5.fields, "logit_scale": lambda c: c.int("d_model") ** -0.5 if _t5_tied(c) else 1.0},
    fixed={**T5.fixed, "relative_per_layer": True},
    weights={row: source for row, source in T5.weights.items() if row != "{stack}.relative_bias"}
    | {"{stack}.relative_biases.{i}": "{stack}.block.{i}.layer.0.SelfAttention.relative_attention_bias"},
)

ENCODER_DECODERS = (BART, MARIAN, T5, MBART, PEGASUS, BLENDERBOT, M2M100, MT5, UMT5)
