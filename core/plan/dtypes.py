"""The number formats of weights, activations and caches: bytes per number, scales included.

Quantized numbers are stored in blocks that share a scale, so the bits per number need not be whole: Q4_0 takes 4.5. The blocks of
the GGUF types are those of ggml (ggml/src/ggml-common.h). core.plan.weights chooses the type of each tensor of a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ..device import dtype_name
from ..errors import ConfigError

BYTES: dict[str, int] = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}  # formats that a pass can run in
FLOAT = 4  # bytes of a float32 number
INT = 8  # bytes of an id, a position or a distance


@dataclass(frozen=True)
class Format:
    """A block of `numbers` in a row of a matrix that share scales; `bits` are those of the whole block, scales and offsets included."""

    name: str
    numbers: int
    bits: int
    row_bits: int = 0  # of scales that a whole row shares
    why: str = ""

    @property
    def bits_each(self) -> float:
        """Bits per number without the scales of whole rows."""
        return self.bits / self.numbers

    def row(self, width: int) -> int:
        """Bytes of a row of `width` numbers. A partial last block takes as much as a full one."""
        return -(-(-(-width // self.numbers) * self.bits + self.row_bits) // 8)

    def fits(self, width: int) -> bool:
        """True if rows of this width are whole blocks."""
        return width % self.numbers == 0


def _ggml(name: str, numbers: int, n_bytes: int, why: str) -> Format:
    return Format(name, numbers, 8 * n_bytes, why=why)


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        *(Format(name, 1, 8 * by, why=f"{by} bytes each") for name, by in BYTES.items()),
        Format("float8", 1, 8, why="one byte each; one scale for a whole tensor is not counted"),
        Format("int8", 1, 8, row_bits=32, why="one byte each, and a float32 scale a row (Dettmers et al. 2022)"),
        Format(
            "int4", 128, 128 * 4 + 16 + 4, why="groups of 128 with a float16 scale and a 4-bit zero, as GPTQ and AWQ"
        ),
        Format(
            "nf4", 64, 64 * 4 + 32, why="blocks of 64 with a float32 scale (Dettmers et al. 2023), scales not quantized"
        ),
        _ggml("Q4_0", 32, 2 + 16, "a float16 scale"),
        _ggml("Q4_1", 32, 2 + 2 + 16, "a float16 scale and minimum"),
        _ggml("Q5_0", 32, 2 + 4 + 16, "a float16 scale, the fifth bits apart"),
        _ggml("Q5_1", 32, 2 + 2 + 4 + 16, "a float16 scale and minimum, the fifth bits apart"),
        _ggml("Q8_0", 32, 2 + 32, "a float16 scale"),
        _ggml("Q2_K", 256, 2 + 2 + 16 + 64, "4-bit scales and minima of 16, and two float16 for those"),
        _ggml("Q3_K", 256, 2 + 12 + 64 + 32, "6-bit scales of 16, and a float16 for those"),
        _ggml("Q4_K", 256, 2 + 2 + 12 + 128, "6-bit scales and minima of 32, and two float16 for those"),
        _ggml("Q5_K", 256, 2 + 2 + 12 + 128 + 32, "as Q4_K, the fifth bits apart"),
        _ggml("Q6_K", 256, 2 + 16 + 128 + 64, "8-bit scales of 16, and a float16 for those"),
        _ggml("IQ1_S", 256, 2 + 32 + 16, "places in a grid, and a float16 scale"),
        _ggml("IQ1_M", 256, 32 + 16 + 8, "places in a grid, scales among them"),
        _ggml("IQ2_XXS", 256, 2 + 64, "places in a grid, and a float16 scale"),
        _ggml("IQ2_XS", 256, 2 + 64 + 8, "places in a grid, scales of 16 and a float16 for those"),
        _ggml("IQ2_S", 256, 2 + 64 + 8 + 8, "places in a grid, scales of 16 and a float16 for those"),
        _ggml("IQ3_XXS", 256, 2 + 96, "places in a grid, and a float16 scale"),
        _ggml("IQ3_S", 256, 2 + 64 + 8 + 32 + 4, "places in a grid, signs, scales of 32 and a float16 for those"),
        _ggml("IQ4_NL", 32, 2 + 16, "places in a table of 16, and a float16 scale"),
        _ggml("IQ4_XS", 256, 2 + 2 + 4 + 128, "places in a table of 16, 6-bit scales of 32 and a float16 for those"),
        _ggml("MXFP4", 32, 1 + 16, "4-bit floats with a power of two for a scale"),
    )
}
LAYERS_ALONE = ("float8", "int8", "int4", "nf4")

# Mix -> the type of most of its tensors. Some names differ from that type because files are named after their bits per weight.
MIXES: dict[str, str] = {
    name: name for name in FORMATS if name not in (*BYTES, *LAYERS_ALONE, "MXFP4", "Q3_K", "Q4_K", "Q5_K")
}
MIXES |= {"Q2_K_S": "Q2_K", "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K"}
MIXES |= {"Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S"}
WEIGHT_FORMATS = (*BYTES, *LAYERS_ALONE, *MIXES)
CACHE = (*BYTES, "float8", "int8", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL")  # formats of a KV cache


def bytes_of(dtype: object, what: str = "dtype") -> int:
    """Bytes of one number of "float32" or torch.float32. Raises ConfigError, naming `what`, for an unsupported format."""
    name = dtype_name(dtype)
    if name not in BYTES:
        raise ConfigError(f"{what} ({name!r}) must be one of {_listed(BYTES)}")
    return BYTES[name]


def cache_format(dtype: object, d_head: int) -> Format:
    """The format of the keys and values of a head. Raises ConfigError if a cache cannot use it or its blocks do not fit d_head."""
    name = spelled(dtype, CACHE)
    if name not in CACHE:
        raise ConfigError(f"kv_dtype ({dtype_name(dtype)!r}) must be one of {_listed(CACHE)}")
    if name == "int8":
        return Format("int8", 1, 8)  # scales of whole tensors
    kind = FORMATS[name]
    if not kind.fits(d_head):
        raise ConfigError(
            f"kv_dtype ({name!r}) keeps blocks of {kind.numbers}, and d_head ({d_head}) is no multiple of it"
        )
    return kind


def weight_format(dtype: object) -> str:
    """The canonical name of a weight format. Raises ConfigError for an unknown one."""
    name = spelled(dtype, WEIGHT_FORMATS)
    if name not in WEIGHT_FORMATS:
        raise ConfigError(f"weight_dtype ({dtype_name(dtype)!r}) must be one of {_listed(WEIGHT_FORMATS)}")
    return name


def spelled(dtype: object, known: object) -> str:
    """The canonical name of a format: GGUF types may be given in lower case."""
    name = dtype_name(dtype)
    return name if name in known else name.upper()  # type: ignore[operator]


def check_choice(name: str, value: object, allowed: object) -> None:
    """Raises ConfigError unless the value is one of those of a Literal type."""
    if value not in get_args(allowed):
        raise ConfigError(f"{name} ({value!r}) must be one of {_listed(get_args(allowed))}")


def check_lengths(kind: str, *, batch: int, source_len: int, target_len: int) -> None:
    """Raises ConfigError unless every stack has at least one text of at least one token."""
    lengths = {"batch": batch, "source_len": source_len}
    if kind == "encoder-decoder":
        lengths["target_len"] = target_len
    for name, value in lengths.items():
        if value < 1:
            raise ConfigError(f"{name} ({value}) must be at least 1")
    if kind != "encoder-decoder" and target_len:
        raise ConfigError(
            f"target_len ({target_len}) is for encoder-decoders; this model is {kind}-only: leave it at 0"
        )


def check_activations(dtype: object) -> None:
    """Raises ConfigError for a format in which weights can be stored but a pass cannot run."""
    name = spelled(dtype, FORMATS)
    if name in FORMATS and name not in BYTES:
        raise ConfigError(
            f"dtype ({str(dtype)!r}) is a format for weights: pass dtype='float16', weight_dtype={str(dtype)!r}"
        )
    bytes_of(dtype)


def _listed(names: object) -> str:
    return ", ".join(map(repr, names))  # type: ignore[call-overload]
