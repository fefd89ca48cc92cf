"""Parameter counts in closed form, and the bytes of the weights in each format."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..errors import ConfigError
from ..model.config import ModelConfig, PositionTerm
from .workload import BYTES, FLOAT, FORMATS, LAYERS_ALONE, MIXES, Format, bytes_of, weight_format


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


# mix -> kind of matrix -> (type, its layers); the first match, else the type of the mix. Layers:
# all: every layer. first 2, 1/8: the first layers. more: the first and last eighth and every third layer between them.
# middle: all but the first and last eighth. gqa: all, if at least four query heads share a key head.
_Rules = dict[str, tuple[tuple[str, str], ...]]
RULES: dict[str, _Rules] = {
    "Q2_K": {"v": (("Q4_K", "gqa"), ("Q3_K", "all")), "o": (("Q3_K", "all"),), "down": (("Q3_K", "all"),)},
    "Q2_K_S": {"v": (("Q4_K", "gqa"),), "down": (("Q4_K", "1/8"),)},
    "Q3_K_M": {"v": (("Q5_K", "first 2"), ("Q4_K", "all")), "o": (("Q4_K", "all"),), "down": (("Q5_K", "1/16"), ("Q4_K", "all"))},
    "Q3_K_L": {"v": (("Q5_K", "all"),), "o": (("Q5_K", "all"),), "down": (("Q5_K", "all"),)},
    "Q4_K_S": {"v": (("Q5_K", "first 4"),), "down": (("Q5_K", "1/8"),)},
    "Q4_K_M": {"v": (("Q6_K", "more"),), "down": (("Q6_K", "more"),)},
    "Q5_K_M": {"v": (("Q6_K", "more"),), "down": (("Q6_K", "more"),)},
    "IQ4_NL": {"v": (("Q5_K", "gqa"),), "down": (("Q5_K", "1/8"),)},
    "IQ4_XS": {"v": (("Q5_K", "gqa"),), "down": (("Q5_K", "1/8"),)},
    "IQ3_XXS": {
        "q": (("IQ2_S", "all"),), "k": (("IQ2_S", "all"),), "v": (("Q4_K", "gqa"),), "o": (("IQ3_S", "all"),),
        "token": (("IQ3_S", "all"),),
    },
    "IQ3_XS": {
        "q": (("IQ3_XXS", "all"),), "k": (("IQ3_XXS", "all"),), "v": (("Q4_K", "gqa"),),
        "gate": (("IQ3_XXS", "middle"),), "up": (("IQ3_XXS", "middle"),),
    },
    "IQ3_S": {"v": (("Q4_K", "gqa"),)},
    "IQ3_M": {"v": (("Q4_K", "all"),), "o": (("Q4_K", "all"),), "down": (("Q4_K", "1/8"),)},
}  # fmt: skip
RULES |= {
    mix: {
        "v": (("Q4_K", "gqa"), ("Q2_K", "all")),
        "down": (("Q2_K", "1/8"),),
        "token": (("Q2_K", "all"),),
        **({"o": (("IQ2_XXS", "all"),)} if mix.startswith("IQ1") else {}),
    }
    for mix in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS")
}
RULES |= {
    mix: {
        "v": (("Q4_K", "gqa"), ("IQ3_S", "all")),
        "o": (("IQ3_S", "all"),),
        "down": (("IQ3_S", "1/8"),),
        "token": (("IQ3_S", "all"),),
    }
    for mix in ("IQ2_S", "IQ2_M")
}
SMALL_OUTPUT = (
    "IQ1_S",
    "IQ1_M",
    "IQ2_XXS",
    "IQ2_XS",
    "IQ2_S",
    "IQ2_M",
    "IQ3_XXS",
)  # mixes with a Q5_K output, not Q6_K
# Replacement of a type if the rows are not whole blocks of it.
INSTEAD = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


@dataclass(frozen=True)
class Matrix:
    """One matrix of a model: `rows` outputs of `width` inputs each. The token table has a row for each token."""

    stack: str  # "" for the head and the token table
    name: str  # "attn q", "cross attn v", "mlp down", "unembed", "head dense", "token"
    layer: int  # the first of the layers that every rule of a mix treats alike
    n_layers: int  # of the stack
    rows: int
    width: int
    times: int = 1  # number of such layers

    @property
    def kind(self) -> str:
        return self.name.rsplit(" ", 1)[-1]


@dataclass(frozen=True)
class StoredWeights:
    """Bytes of all weights in one format, and of one matrix of each kind; in a mix, the mean over the layers."""

    total: int
    each: dict[tuple[str, str], int]  # (stack, name) -> bytes of one matrix
    token_row: int  # bytes of a row of the token table
    other: int  # bytes of a number outside matrices: of a bias, a position or a LayerNorm
    bits_each: float  # bits per parameter

    def matrix(self, stack: str, name: str) -> int:
        return self.each[stack, name]


def distances(term: PositionTerm, *, own: bool) -> str:
    """Name of the matrix that projects the table of distances: keys for c2p, queries for p2c. `own`: separate from that of content."""
    return ("k" if term == "c2p" else "q") + (" of distances" if own else "")


def matrices(config: ModelConfig) -> Iterator[Matrix]:
    """Every matrix that a file may quantize; equal layers are grouped. The other parameters are norms, biases and positions."""
    d = config.d_model
    yield Matrix("", "token", 0, 1, config.vocab_size, config.embed_width)
    for stack, n_layers in config.stacks:
        if config.embed_width != d:
            yield Matrix(stack, "embed project", 0, n_layers, d, config.embed_width)
        for layer, times in [(0, 1)] if config.shared_layers else _alike(n_layers, config.dense_layers):
            for matrix in _layer_matrices(config, stack, layer, n_layers):
                yield replace(matrix, times=times * matrix.times)
    if config.head == "mlm":
        yield Matrix("", "head dense", 0, 1, config.unembed_width, d)
    if config.head != "none" and not config.tied:
        yield Matrix("", "unembed", 0, 1, config.vocab_size, config.unembed_width)


def _layer_matrices(config: ModelConfig, stack: str, layer: int, n_layers: int) -> Iterator[Matrix]:
    crosses = stack == "decoder" and config.kind == "encoder-decoder"
    shapes = [
        (f"{name} {letter}", rows, width, 1)
        for name in (("attn", "cross attn") if crosses else ("attn",))
        for letter, rows, width in projections(config)
    ]
    if config.own_distance_projections:
        q = config.n_heads * config.d_head
        shapes += [(f"attn {distances(term, own=True)}", q, config.d_model, 1) for term in config.position_terms]
    for name, rows, width, times in (*shapes, *mlp_matrices(config, layer)):
        yield Matrix(stack, name, layer, n_layers, rows, width, times)


def projections(config: ModelConfig) -> Iterator[tuple[str, int, int]]:
    """(name, outputs, inputs) of every matrix of an attention."""
    d, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    values = config.n_heads * config.value_width
    if not config.kv_rank:
        yield from (("q", q, d), ("k", kv, d), ("v", kv, d), ("o", d, q))
        return
    if config.q_rank:
        yield "q down", config.q_rank, d
    yield "q", q, config.q_rank or d
    yield from (("kv down", config.kv_rank, d), ("k turned", config.d_rotary, d))
    yield "k", config.n_heads * (config.d_head - config.d_rotary), config.kv_rank
    yield from (("v", values, config.kv_rank), ("o", d, values))


def mlp_matrices(config: ModelConfig, layer: int) -> Iterator[tuple[str, int, int, int]]:
    """(name, outputs, inputs, number) of the matrices of an MLP, or of a router and its experts."""
    d, ups = config.d_model, ("up", "gate") if config.gated else ("up",)
    if not config.has_experts(layer):
        width = config.d_dense if config.n_experts else config.d_ff
        yield from ((f"mlp {name}", width, d, 1) for name in ups)
        yield "mlp down", d, width, 1
        return
    yield "router", config.n_experts, d, 1
    for name, width, many in (("expert", config.d_ff, config.n_experts), ("shared", config.d_shared, 1)):
        if width:
            yield from ((f"{name} {up}", width, d, many) for up in ups)
            yield f"{name} down", d, width, many
    if config.shared_gate:
        yield "shared gate of tokens", 1, d, 1


def _alike(n_layers: int, apart: Collection[int] = ()) -> Iterator[tuple[int, int]]:
    """(first layer, number of layers) of the groups that every rule of a mix treats alike. Their number does not grow with depth.

    Each of the layers `apart` is a group of its own.
    """
    if apart:
        alone = {layer for layer in apart if layer < n_layers}
        yield from ((layer, 1) for layer in sorted(alone))
        if (rest := n_layers - len(alone)) > 0:
            yield next(layer for layer in range(n_layers) if layer not in alone), rest
        return
    begins, ends = n_layers // 8, 7 * n_layers // 8  # in the middle, every third layer differs
    cuts = sorted({0, n_layers, begins, ends, *(min(cut, n_layers) for cut in (2, 4, n_layers // 16))})
    for low, high in pairwise(cuts):
        step = 3 if begins <= low < ends else 1
        for first in range(low, min(low + step, high)):
            yield first, len(range(first, high, step))


def stored_weights(config: ModelConfig, *, dtype: object, weight_dtype: object = None) -> StoredWeights:
    """The weights in `weight_dtype` (None: dtype). Parameters that are not quantized are in `dtype`.

    Raises ConfigError for unknown formats, and for llama.cpp's mixes of models for which they have other rules.
    """
    name = weight_format(weight_dtype or dtype)
    if name in MIXES and (config.n_experts or config.kv_rank):
        raise ConfigError(
            f"weight_dtype {name!r} is not counted for a mixture of experts or multi-head latent attention: llama.cpp's mixes have "
            f"rules of their own for them. Choose one of {', '.join((*BYTES, *LAYERS_ALONE))}."
        )
    return _stored(config, bytes_of(dtype), name)


@lru_cache(maxsize=64)
def layer_bytes(config: ModelConfig, by: int, name: str) -> dict[str, tuple[int, ...]]:
    """Bytes of the matrices of each layer of each stack in the format `name`; `by` is the bytes of one activation.

    The layers differ in a mix. The time is proportional to the depth of the model.
    """
    other = _unquantized_bytes(by, name)

    def size(matrix: Matrix) -> int:
        return matrix.times * matrix.rows * _row(config, matrix, name, other)

    return {
        stack: tuple(sum(map(size, _layer_matrices(config, stack, layer, n_layers))) for layer in range(n_layers))
        for stack, n_layers in config.stacks
    }


def _unquantized_bytes(by: int, name: str) -> int:
    """Bytes of a number that a format does not quantize."""
    return by if name in LAYERS_ALONE else FLOAT if name in MIXES else BYTES[name]


@lru_cache(maxsize=512)
def _stored(config: ModelConfig, by: int, name: str) -> StoredWeights:
    other = _unquantized_bytes(by, name)
    sums: dict[tuple[str, str], list[int]] = {}
    numbers = 0
    for matrix in matrices(config):
        bytes_and_times = sums.setdefault((matrix.stack, matrix.name), [0, 0])
        bytes_and_times[0] += matrix.times * matrix.rows * _row(config, matrix, name, other)
        bytes_and_times[1] += matrix.times
        numbers += matrix.times * matrix.rows * matrix.width
    count = parameters(config).total
    # Tables of sinusoids are no parameters; RMS norms are in float32 where the others take fewer bits (core.model.norm_dtype).
    tables = len(config.stacks) * config.n_ctx * config.embed_width * by if config.position == "sinusoidal" else 0
    rest = (count - numbers) * other + float32_parameters(config) * max(0, FLOAT - other)
    total = sum(n_bytes for n_bytes, _ in sums.values()) + rest + tables
    each = {key: n_bytes // times for key, (n_bytes, times) in sums.items()}
    row = each["", "token"] // config.vocab_size
    if config.head != "none" and config.tied:
        each["", "unembed"] = each["", "token"]
    return StoredWeights(total, each, row, other, 8 * total / count)


def _row(config: ModelConfig, matrix: Matrix, name: str, other: int) -> int:
    """Bytes of one row of a matrix."""
    if name in LAYERS_ALONE:
        return FORMATS[name].row(matrix.width) if matrix.stack else matrix.width * other
    if name not in MIXES:
        return matrix.width * other
    return _gguf(config, matrix, name).row(matrix.width)


def _gguf(config: ModelConfig, matrix: Matrix, mix: str) -> Format:
    """The type of a matrix in a mix."""
    shared = config.tied or config.head == "none"  # then the token table has the type of the output
    if matrix.kind == "unembed" or (matrix.kind == "token" and shared):
        name = _output_type(mix, matrix.width)
    else:
        name = _layer_type(config, matrix, mix)
    if not FORMATS[name].fits(matrix.width):
        name = INSTEAD.get(name, "IQ4_NL")
    return FORMATS[name] if FORMATS[name].fits(matrix.width) else FORMATS["float16"]


def _output_type(mix: str, width: int) -> str:
    if MIXES[mix] == "Q8_0" or not FORMATS[MIXES[mix]].fits(width):
        return "Q8_0"
    return "Q5_K" if mix in SMALL_OUTPUT else "Q6_K"


def _layer_type(config: ModelConfig, matrix: Matrix, mix: str) -> str:
    rules = RULES.get(mix, {}).get(matrix.kind, ())
    name = next((type_ for type_, layers in rules if _holds(config, matrix, layers)), MIXES[mix])
    # llama.cpp's exception for 70B models, whose values are an eighth as wide as their queries
    is_70b = matrix.n_layers == 80 and config.n_kv_heads < config.n_heads
    return "Q5_K" if matrix.kind == "v" and is_70b and name in ("Q3_K", "Q4_K") else name


def _holds(config: ModelConfig, matrix: Matrix, layers: str) -> bool:
    layer, n = matrix.layer, matrix.n_layers
    if layers == "gqa":
        return config.n_heads // config.n_kv_heads >= 4
    if layers.startswith("first "):
        return layer < int(layers.removeprefix("first "))
    if layers.startswith("1/"):
        return layer < n // int(layers.removeprefix("1/"))
    if layers == "middle":
        return n // 8 <= layer < 7 * n // 8
    return layers == "all" or layer < n // 8 or layer >= 7 * n // 8 or (layer - n // 8) % 3 == 2


def with_layers(config: ModelConfig, n: int) -> ModelConfig:
    """The model with n layers in every stack. The pattern of windows, rotation and experts repeats. Raises ConfigError for n below 1."""

    def repeated(layers: tuple[int, ...]) -> tuple[int, ...]:
        if not layers:  # a link may request 10^15 layers of a model that lists none
            return ()
        return tuple(start + i for start in range(0, n, config.n_layers) for i in layers if start + i < n)

    return replace(
        config,
        n_encoder_layers=n if config.n_encoder_layers else 0,
        n_decoder_layers=n if config.n_decoder_layers else 0,
        windowed_layers=None if config.windowed_layers is None else repeated(config.windowed_layers),
        unturned_layers=repeated(config.unturned_layers),
        dense_layers=repeated(config.dense_layers),
    )


@dataclass(frozen=True)
class Concatenated:
    """Parameters of all layers and final norms, without embeddings and head."""

    added: int  # of the model as it is
    beside: int  # with concatenated position vectors of d_model numbers, so that the residual stream is twice as wide
    width: int  # d_model of the model as it is


def concatenated(config: ModelConfig) -> Concatenated:
    """Matrices that read from or write to the residual stream become twice as large; the widths of heads and MLP do not change."""
    wide = replace(config, d_model=2 * config.d_model, d_head=config.d_head, d_v=config.d_v, d_embed=0, d_unembed=0)
    added, beside = (count.encoder.total + count.decoder.total for count in (parameters(config), parameters(wide)))
    return Concatenated(added, beside, config.d_model)
