"""How many parameters each component of a transformer has, in closed form; tied weights count once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..model.config import ModelConfig


@dataclass(frozen=True)
class LayerParameters:
    """One block. `norms` counts every norm of the block but those inside attention (qk_norm), which are in `attn`."""

    attn: int
    cross_attn: int  # 0 without cross-attention
    mlp: int
    norms: int

    @property
    def total(self) -> int:
        return self.attn + self.cross_attn + self.mlp + self.norms


@dataclass(frozen=True)
class StackParameters:
    """An encoder or a decoder without its embedding; all zeros where the model has none."""

    n_layers: int
    layer: LayerParameters
    final_norm: int
    relative_bias: int  # T5's table of buckets, one for the whole stack

    @property
    def total(self) -> int:
        return self.n_layers * self.layer.total + self.final_norm + self.relative_bias


@dataclass(frozen=True)
class EmbeddingParameters:
    """The embeddings of one stack: from ids to vectors."""

    token: int  # 0 where the table is another stack's
    position: int  # learned positions only
    token_type: int
    norm: int

    @property
    def total(self) -> int:
        return self.token + self.position + self.token_type + self.norm


@dataclass(frozen=True)
class Parameters:
    """`source` embeds the text that comes in, `target` the one that an encoder-decoder writes (zeros otherwise)."""

    source: EmbeddingParameters
    target: EmbeddingParameters
    encoder: StackParameters
    decoder: StackParameters
    unembed: int  # 0 where tied to the token table
    head: int  # the rest of the head: its bias, and the transform of a masked-word head

    @property
    def embedding(self) -> int:
        return self.source.total + self.target.total

    @property
    def total(self) -> int:
        return self.embedding + self.encoder.total + self.decoder.total + self.unembed + self.head

    @property
    def mlp_share(self) -> float:
        """The part of one layer's parameters that sits in its MLP: two thirds for d_ff = 4 · d_model."""
        layer = self.encoder.layer if self.encoder.n_layers else self.decoder.layer
        return layer.mlp / layer.total

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the totals."""
        return asdict(self) | {
            "embedding": self.embedding,
            "encoder_total": self.encoder.total,
            "decoder_total": self.decoder.total,
            "total": self.total,
        }


def parameters(config: ModelConfig, *, two_vocabularies: bool = False) -> Parameters:
    """The count of core.model.Transformer(config).

    One token table serves both stacks of an encoder-decoder; `two_vocabularies` counts a table of the target's own, as
    a translator of two languages may have it. Attention is d·q + 2·d·kv + q·d, the MLP 2·d·F (3 when gated), plus biases
    (Vaswani et al. 2017, §3; the usual 4d² + 2dF + 4d leaves the biases out).
    """
    vocabulary = config.vocab_size * config.d_model
    encoder = _stack(config, config.n_encoder_layers, cross=False)
    decoder = _stack(config, config.n_decoder_layers, cross=bool(config.n_encoder_layers))
    two_stacks = config.kind == "encoder-decoder"
    has_head = config.head != "none"
    head = config.vocab_size if has_head and config.head_bias else 0
    if config.head == "mlm":
        head += linear(config.d_model, config.d_model, bias=True) + norm(config, config.d_model)
    return Parameters(
        source=_embedding(config, vocabulary),
        target=_embedding(config, vocabulary if two_vocabularies else 0)
        if two_stacks
        else EmbeddingParameters(0, 0, 0, 0),
        encoder=encoder,
        decoder=decoder,
        unembed=vocabulary if has_head and not config.tied else 0,
        head=head,
    )


def float32_parameters(config: ModelConfig) -> int:
    """How many of them are kept in float32 where the others take fewer bits: those of RMS norms (core.model.dtype_of)."""
    if config.norm != "rms":
        return 0
    count = config.d_model * (1 if config.head == "mlm" else 0)
    for name, n_layers in config.stacks:
        cross = name == "decoder" and config.kind == "encoder-decoder"
        heads = 2 * config.d_head * (2 if cross else 1) if config.qk_norm else 0
        count += n_layers * (_stack(config, 1, cross=cross).layer.norms + heads)
        count += config.d_model * (config.embed_norm + config.final_norm)
    return count


def linear(d_in: int, d_out: int, *, bias: bool) -> int:
    return d_in * d_out + (d_out if bias else 0)


def norm(config: ModelConfig, width: int) -> int:
    """LayerNorm scales and shifts, RMSNorm only scales."""
    return width * (2 if config.norm == "layer" else 1)


def _embedding(config: ModelConfig, token: int) -> EmbeddingParameters:
    return EmbeddingParameters(
        token=token,
        position=(config.n_ctx + config.position_offset) * config.d_model if config.position == "learned" else 0,
        token_type=config.n_token_types * config.d_model,
        norm=norm(config, config.d_model) if config.embed_norm else 0,
    )


def _stack(config: ModelConfig, n_layers: int, *, cross: bool) -> StackParameters:
    if not n_layers:
        return StackParameters(0, LayerParameters(0, 0, 0, 0), 0, 0)
    d, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    attn = (
        linear(d, q, bias=config.qkv_bias)
        + 2 * linear(d, kv, bias=config.qkv_bias)
        + linear(q, d, bias=config.out_bias)
    )
    attn += 2 * norm(config, config.d_head) if config.qk_norm else 0
    ups = 2 if config.gated else 1
    mlp = ups * linear(d, config.d_ff, bias=config.mlp_bias) + linear(config.d_ff, d, bias=config.mlp_bias)
    sublayers = 3 if cross else 2
    norms = sublayers * (2 if config.norm_order == "sandwich" else 1)
    layer = LayerParameters(attn, attn if cross else 0, mlp, norms * norm(config, d))
    return StackParameters(
        n_layers=n_layers,
        layer=layer,
        final_norm=norm(config, d) if config.final_norm else 0,
        relative_bias=config.n_relative_buckets * config.n_heads if config.position == "relative" else 0,
    )
