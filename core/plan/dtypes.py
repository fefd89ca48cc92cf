"""The number formats that a plan can count, and their bytes."""

from __future__ import annotations

from ..device import dtype_name
from ..errors import ConfigError

BYTES: dict[str, int] = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}


def bytes_of(dtype: object, what: str = "dtype") -> int:
    """Bytes of one number; takes "float32" or torch.float32. Raises ConfigError naming `what` for a format not counted here."""
    name = dtype_name(dtype)
    if name not in BYTES:
        raise ConfigError(f"{what} ({name!r}) must be one of {', '.join(map(repr, BYTES))}")
    return BYTES[name]


def check_lengths(kind: str, *, batch: int, source_len: int, target_len: int) -> None:
    """Raises ConfigError unless there is at least one text of at least one token for every stack."""
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
    """Raises ConfigError for a format that weights can be stored in but a pass cannot be computed in."""
    if bytes_of(dtype) == 1:
        raise ConfigError(
            f"dtype ({str(dtype)!r}) is a format for weights: pass dtype='float16', weight_dtype={str(dtype)!r}"
        )
