"""Bytes of a model's weights in the format that a file keeps them in: which tensor has which type, scales included.

float8, int8, int4 and nf4 quantize the matrices of the layers alone; tables, the unembedding, norms and biases stay in the format
of the activations, as bitsandbytes, GPTQ, AWQ and vLLM leave them. A GGUF mix such as Q4_K_M gives the matrices different types,
the tables among them, and keeps norms, biases and positions in float32; the rules are those of llama.cpp (src/llama-quant.cpp)
for a model that is no mixture of experts and has q, k and v in tensors of their own; with an importance matrix for IQ1 to IQ3,
which are hardly made without one, and none for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig, PositionTerm
from .dtypes import BYTES, FORMATS, Format, bytes_of, spelled
from .parameters import float32_parameters, parameters

FLOAT = 4  # bytes of what a GGUF file does not quantize
LAYERS_ALONE = ("float8", "int8", "int4", "nf4")

# The type that most tensors of a mix have. Where it is not its name: files are named after the bits they come to.
MIXES: dict[str, str] = {
    name: name for name in FORMATS if name not in (*BYTES, *LAYERS_ALONE, "MXFP4", "Q3_K", "Q4_K", "Q5_K")
}
MIXES |= {"Q2_K_S": "Q2_K", "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K"}
MIXES |= {"Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S"}
WEIGHT_FORMATS = (*BYTES, *LAYERS_ALONE, *MIXES)

# mix -> kind of matrix -> (type, layers that have it); the first that holds, else the mix's own type.
# all: every layer. first 2, 1/8: so many from the first on. more: the first and last eighth and every third between them.
# middle: all but the first and last eighth. gqa: four query heads or more share a key head.
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
SMALL_OUTPUT = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS")  # whose output is Q5_K, not Q6_K
# The stand-in for a type where rows are no whole blocks of it.
INSTEAD = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


@dataclass(frozen=True)
class Matrix:
    """One matrix of a model: `rows` outputs of `width` inputs each. A table of tokens has a row a token."""

    stack: str  # "" for the head and the table of tokens
    name: str  # "attn q", "cross attn v", "mlp down", "unembed", "head dense", "token"
    layer: int  # the first of the layers that are alike to every rule of a mix
    n_layers: int  # of its stack
    rows: int
    width: int
    times: int = 1  # how many layers are alike

    @property
    def kind(self) -> str:
        return self.name.rsplit(" ", 1)[-1]


@dataclass(frozen=True)
class StoredWeights:
    """Bytes of all weights in one format, and of one matrix of each kind: of a mix, the mean over the layers."""

    total: int
    each: dict[tuple[str, str], int]  # (stack, name) -> bytes of one matrix
    token_row: int  # of the table of tokens
    other: int  # bytes of one number that is in no matrix: of a bias, a position, a LayerNorm
    bits_each: float  # bits for each parameter

    def matrix(self, stack: str, name: str) -> int:
        return self.each[stack, name]


def distances(term: PositionTerm, *, own: bool) -> str:
    """The matrix that turns the table of distances into a term's vectors: keys for c2p, queries for p2c; a layer's own or content's."""
    return ("k" if term == "c2p" else "q") + (" of distances" if own else "")


def matrices(config: ModelConfig) -> Iterator[Matrix]:
    """Every matrix that a file may quantize, those of layers that are alike together; the other parameters are norms, biases, positions."""
    d = config.d_model
    yield Matrix("", "token", 0, 1, config.vocab_size, config.embed_width)
    for stack, n_layers in config.stacks:
        crosses = stack == "decoder" and config.kind == "encoder-decoder"
        if config.embed_width != d:
            yield Matrix(stack, "embed project", 0, n_layers, d, config.embed_width)
        for layer, times in [(0, 1)] if config.shared_layers else _alike(n_layers, config.dense_layers):
            of = {"layer": layer, "n_layers": n_layers, "times": times}

            def one(name: str, rows: int, width: int, stack: str = stack, of: dict[str, int] = of) -> Matrix:
                return Matrix(stack, name, rows=rows, width=width, **of)

            for name in ("attn", "cross attn")[: 2 if crosses else 1]:
                for letter, rows, width in projections(config):
                    yield one(f"{name} {letter}", rows, width)
            if config.own_distance_projections:
                for term in config.position_terms:
                    yield one(f"attn {distances(term, own=True)}", config.n_heads * config.d_head, d)
            for name, rows, width, many in mlp_matrices(config, layer):
                yield replace(one(name, rows, width), times=times * many)
    if config.head == "mlm":
        yield Matrix("", "head dense", 0, 1, config.unembed_width, d)
    if config.head != "none" and not config.tied:
        yield Matrix("", "unembed", 0, 1, config.vocab_size, config.unembed_width)


def projections(config: ModelConfig) -> Iterator[tuple[str, int, int]]:
    """(name, outputs, inputs) of every product of an attention but those of queries with keys and weights with values."""
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
    """(name, outputs, inputs, how many) of the matrices of an MLP, or of a router and its experts."""
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
    """(the first, how many) of the layers that every rule of a mix treats alike: few, however many layers there are. Those
    `apart` are alone."""
    if apart:
        alone = {layer for layer in apart if layer < n_layers}
        yield from ((layer, 1) for layer in sorted(alone))
        if (rest := n_layers - len(alone)) > 0:
            yield next(layer for layer in range(n_layers) if layer not in alone), rest
        return
    begins, ends = n_layers // 8, 7 * n_layers // 8  # the middle, where every third layer is another matter
    cuts = sorted({0, n_layers, begins, ends, *(min(cut, n_layers) for cut in (2, 4, n_layers // 16))})
    for low, high in pairwise(cuts):
        step = 3 if begins <= low < ends else 1
        for first in range(low, min(low + step, high)):
            yield first, len(range(first, high, step))


def weight_format(dtype: object) -> str:
    """A format of weights as it is spelled here. Raises ConfigError for one that is not known."""
    name = spelled(dtype, WEIGHT_FORMATS)
    if name not in WEIGHT_FORMATS:
        raise ConfigError(f"weight_dtype ({dtype_name(dtype)!r}) must be one of {', '.join(map(repr, WEIGHT_FORMATS))}")
    return name


def stored_weights(config: ModelConfig, *, dtype: object, weight_dtype: object = None) -> StoredWeights:
    """The weights in `weight_dtype`, None for dtype, which what is not quantized is in.

    Raises ConfigError for unknown formats, and for llama.cpp's mixes of what they have rules of their own for.
    """
    name = weight_format(weight_dtype or dtype)
    if name in MIXES and name not in BYTES and (config.n_experts or config.kv_rank):
        raise ConfigError(
            f"weight_dtype {name!r} is not counted for a mixture of experts or multi-head latent attention: llama.cpp's mixes have "
            f"rules of their own for them. Choose one of {', '.join((*BYTES, *LAYERS_ALONE))}."
        )
    return _stored(config, bytes_of(dtype), name)


@lru_cache(maxsize=64)
def layer_bytes(config: ModelConfig, by: int, name: str) -> dict[str, tuple[int, ...]]:
    """Bytes of the matrices of each layer of each stack in the format `name`, where `by` bytes are those of one number of the
    activations. A mix gives some layers more. Takes as long as the model is deep."""
    left = _left(by, name)
    found: dict[str, tuple[int, ...]] = {}
    for stack, n_layers in config.stacks:
        names = ("attn", "cross attn") if stack == "decoder" and config.kind == "encoder-decoder" else ("attn",)
        sizes: list[int] = []
        for layer in range(n_layers):
            shapes = [
                (f"{one} {letter}", rows, width, 1) for one in names for letter, rows, width in projections(config)
            ]
            shapes += mlp_matrices(config, layer)
            sizes.append(
                sum(
                    many * rows * _row(config, Matrix(stack, kind, layer, n_layers, rows, width), name, left)
                    for kind, rows, width, many in shapes
                )
            )
        found[stack] = tuple(sizes)
    return found


def _left(by: int, name: str) -> int:
    """Bytes of a number that a format does not quantize."""
    return by if name in LAYERS_ALONE else FLOAT if name in MIXES else BYTES[name]


@lru_cache(maxsize=512)
def _stored(config: ModelConfig, by: int, name: str) -> StoredWeights:
    left = _left(by, name)
    sums: dict[tuple[str, str], list[int]] = {}
    numbers = 0
    for matrix in matrices(config):
        found = sums.setdefault((matrix.stack, matrix.name), [0, 0])
        found[0] += matrix.times * matrix.rows * _row(config, matrix, name, left)
        found[1] += matrix.times
        numbers += matrix.times * matrix.rows * matrix.width
    count = parameters(config).total
    # Tables of sinusoids are no parameters; RMS norms are in float32 where the others take fewer bits (core.model.norm_dtype).
    tables = len(config.stacks) * config.n_ctx * config.embed_width * by if config.position == "sinusoidal" else 0
    rest = (count - numbers) * left + float32_parameters(config) * max(0, FLOAT - left)
    total = sum(n_bytes for n_bytes, _ in sums.values()) + rest + tables
    each = {key: n_bytes // times for key, (n_bytes, times) in sums.items()}
    row = each["", "token"] // config.vocab_size
    if config.head != "none" and config.tied:
        each["", "unembed"] = each["", "token"]
    return StoredWeights(total, each, row, left, 8 * total / count)


def _row(config: ModelConfig, matrix: Matrix, name: str, left: int) -> int:
    """Bytes of one row of a matrix."""
    if name in LAYERS_ALONE:
        return FORMATS[name].row(matrix.width) if matrix.stack else matrix.width * left
    if name not in MIXES:
        return matrix.width * left
    return _gguf(config, matrix, name).row(matrix.width)


def _gguf(config: ModelConfig, matrix: Matrix, mix: str) -> Format:
    """The type of a matrix in a mix."""
    kind, base, width = matrix.kind, MIXES[mix], matrix.width
    shared = config.tied or config.head == "none"  # then the table of tokens has the type of the output
    if kind == "unembed" or (kind == "token" and shared):
        found = "Q8_0" if not FORMATS[base].fits(width) or base == "Q8_0" else "Q5_K" if mix in SMALL_OUTPUT else "Q6_K"
    else:
        rules = RULES.get(mix, {}).get(kind, ())
        found = next((type_ for type_, layers in rules if _holds(config, matrix, layers)), base)
        if kind == "v" and matrix.n_layers == 80 and config.n_kv_heads < config.n_heads and found in ("Q3_K", "Q4_K"):
            found = "Q5_K"  # of the 70B models, whose values are an eighth as wide as their queries
    if not FORMATS[found].fits(width):
        found = INSTEAD.get(found, "IQ4_NL")
    return FORMATS[found] if FORMATS[found].fits(width) else FORMATS["float16"]


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
