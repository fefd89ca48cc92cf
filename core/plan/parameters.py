"""Number of parameters of each component of a transformer, in closed form. Tied weights count once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..model.config import ModelConfig


@dataclass(frozen=True)
class LayerParameters:
    """One block. `norms` counts the norms of the block except those inside attention (qk_norm), which are in `attn`.

    If layers differ (a few dense layers in a mixture of experts, a first layer without a norm), it is the last layer.
    """

    attn: int
    cross_attn: int  # 0 without cross-attention
    mlp: int  # with all experts
    norms: int

    @property
    def total(self) -> int:
        return self.attn + self.cross_attn + self.mlp + self.norms


@dataclass(frozen=True)
class StackParameters:
    """An encoder or a decoder without its embedding; all zeros if the model has none."""

    n_layers: int
    layer: LayerParameters
    final_norm: int
    relative_bias: int  # tables of distances: T5's buckets, for the whole stack or each layer, or DeBERTa's vectors
    others: int = 0  # difference of other layers to the last; with shared layers, minus all layers but one

    @property
    def total(self) -> int:
        return self.n_layers * self.layer.total + self.final_norm + self.relative_bias + self.others


@dataclass(frozen=True)
class EmbeddingParameters:
    """The embeddings of one stack."""

    token: int  # 0 if the table belongs to another stack
    position: int  # learned positions only
    token_type: int
    norm: int
    project: int = 0  # from the width of the table to d_model

    @property
    def total(self) -> int:
        return self.token + self.position + self.token_type + self.norm + self.project


@dataclass(frozen=True)
class Parameters:
    """`source` embeds the input text, `target` the text that an encoder-decoder generates (zeros for other models)."""

    source: EmbeddingParameters
    target: EmbeddingParameters
    encoder: StackParameters
    decoder: StackParameters
    unembed: int  # 0 if tied to the token table
    head: int  # the rest of the head: its bias, and the transform of a masked-word head

    @property
    def embedding(self) -> int:
        return self.source.total + self.target.total

    @property
    def total(self) -> int:
        return self.embedding + self.encoder.total + self.decoder.total + self.unembed + self.head

    @property
    def mlp_share(self) -> float:
        """The share of the MLP in the parameters of one layer: two thirds for d_ff = 4 · d_model."""
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

    The stacks of an encoder-decoder share one token table; `two_vocabularies` counts a separate one for the target. Attention is
    d·q + 2·d·kv + q·d, the MLP 2·d·F (3 if gated), plus biases (Vaswani et al. 2017, §3; the usual 4d² + 2dF + 4d omits the biases).
    """
    vocabulary = config.vocab_size * config.embed_width
    encoder = _stack(config, config.n_encoder_layers, cross=False)
    decoder = _stack(config, config.n_decoder_layers, cross=bool(config.n_encoder_layers))
    target = EmbeddingParameters(0, 0, 0, 0)
    if config.kind == "encoder-decoder":
        target = _embedding(config, vocabulary if two_vocabularies else 0)
    has_head = config.head != "none"
    head = config.vocab_size if has_head and config.head_bias else 0
    if config.head == "mlm":
        width = config.unembed_width
        head += linear(config.d_model, width, bias=True) + norm(config, width) + activation(config)
    return Parameters(
        source=_embedding(config, vocabulary),
        target=target,
        encoder=encoder,
        decoder=decoder,
        unembed=config.vocab_size * config.unembed_width if has_head and not config.tied else 0,
        head=head,
    )


def float32_parameters(config: ModelConfig) -> int:
    """Number of parameters that stay in float32 in 16-bit models: those of RMS norms (core.model.norm_dtype)."""
    if config.norm != "rms" or not config.norm_weight:
        return 0
    count = config.unembed_width * (1 if config.head == "mlm" else 0)
    for name, n_layers in config.stacks:
        cross = name == "decoder" and config.kind == "encoder-decoder"
        inside = attention_norms(config) * (2 if cross else 1)
        layers = 1 if config.shared_layers else n_layers
        count += layers * (_stack(config, 1, cross=cross).layer.norms + inside)
        count -= 0 if config.first_attn_norm else config.d_model
        count += config.embed_width * config.embed_norm + config.d_model * config.final_norm
    return count


def linear(d_in: int, d_out: int, *, bias: bool) -> int:
    return d_in * d_out + (d_out if bias else 0)


def norm(config: ModelConfig, width: int) -> int:
    """LayerNorm scales and shifts, RMSNorm only scales; norms without weights do neither."""
    if not config.norm_weight:
        return 0
    return width * (2 if config.norm == "layer" and config.norm_bias else 1)


def attention_norms(config: ModelConfig) -> int:
    """Parameters of the norms inside one attention: of queries and keys, or of their latent vectors."""
    if config.kv_rank:
        return norm(config, config.kv_rank) + (norm(config, config.q_rank) if config.q_rank else 0)
    if not config.qk_norm:
        return 0
    if config.qk_norm_place == "full":
        return norm(config, config.n_heads * config.d_head) + norm(config, config.n_kv_heads * config.d_head)
    return 2 * norm(config, config.d_head)


def activation(config: ModelConfig) -> int:
    """xIELU has two parameters; the others have none."""
    return 2 if config.activation == "xielu" else 0


def mlp_parameters(config: ModelConfig, *, experts: bool) -> int:
    """Parameters of the MLP of one layer, or of its router and all experts."""

    def one(width: int) -> int:
        ups = (2 if config.gated else 1) * linear(config.d_model, width, bias=config.mlp_bias)
        return ups + linear(width, config.d_model, bias=config.mlp_bias) + activation(config)

    if not experts:
        return one(config.d_dense if config.n_experts else config.d_ff)
    router = linear(config.d_model, config.n_experts, bias=config.router_bias)
    router += config.n_experts if config.router_correction else 0
    shared = one(config.d_shared) if config.d_shared else 0
    return router + config.n_experts * one(config.d_ff) + shared + (config.d_model if config.shared_gate else 0)


def attention_parameters(config: ModelConfig) -> int:
    """Parameters of one self-attention, norms and sinks included."""
    d, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    values = config.n_heads * config.value_width
    rest = attention_norms(config) + (config.n_heads if config.sinks else 0) + linear(values, d, bias=config.out_bias)
    if config.position == "disentangled" and config.own_distance_projections:
        rest += len(config.position_terms) * linear(d, q, bias=True)
    if not config.kv_rank:
        return linear(d, q, bias=config.qkv_bias) + 2 * linear(d, kv, bias=config.qkv_bias) + rest
    queries = d * config.q_rank + config.q_rank * q if config.q_rank else d * q
    nope = config.n_heads * (config.d_head - config.d_rotary)
    return queries + d * (config.kv_rank + config.d_rotary) + config.kv_rank * (nope + values) + rest


def distance_parameters(config: ModelConfig, n_layers: int) -> int:
    """The parameters of a stack's tables of distances."""
    if config.position == "disentangled":
        return 2 * config.distance_span * config.d_model + (norm(config, config.d_model) if config.distance_norm else 0)
    if not config.has_relative_bias:
        return 0
    return config.n_relative_buckets * config.n_heads * (n_layers if config.relative_per_layer else 1)


def _embedding(config: ModelConfig, token: int) -> EmbeddingParameters:
    return EmbeddingParameters(
        token=token,
        position=(config.n_ctx + config.position_offset) * config.embed_width if config.position == "learned" else 0,
        token_type=config.n_token_types * config.embed_width,
        norm=norm(config, config.embed_width) if config.embed_norm else 0,
        project=linear(config.embed_width, config.d_model, bias=True) if config.embed_width != config.d_model else 0,
    )


def _stack(config: ModelConfig, n_layers: int, *, cross: bool) -> StackParameters:
    if not n_layers:
        return StackParameters(0, LayerParameters(0, 0, 0, 0), 0, 0)
    d = config.d_model
    attn = attention_parameters(config)
    sublayers = 3 if cross else 2
    norms = sublayers * (2 if config.norm_order == "sandwich" else 1) - (1 if config.shared_norm else 0)
    n_dense = sum(layer < n_layers for layer in set(config.dense_layers)) if config.n_experts else n_layers
    dense, mixed = (mlp_parameters(config, experts=experts) for experts in (False, True))
    mlp = mixed if config.has_experts(n_layers - 1) else dense
    layer = LayerParameters(attn, attn if cross else 0, mlp, norms * norm(config, d))
    others = n_dense * dense + (n_layers - n_dense) * mixed - n_layers * mlp
    others -= 0 if config.first_attn_norm else norm(config, d)
    return StackParameters(
        n_layers=n_layers,
        layer=layer,
        final_norm=norm(config, d) if config.final_norm else 0,
        relative_bias=distance_parameters(config, n_layers),
        others=-(n_layers - 1) * layer.total if config.shared_layers else others,
    )
