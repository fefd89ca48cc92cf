"""What one traced inference run will hold and peak at, known before it starts so that it can be refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from core.config import ModelConfig

from .dtypes import bytes_of, check_lengths
from .parameters import parameters
from .passes import pass_moments


@dataclass(frozen=True)
class RunBytes:
    """Bytes. `captured` is what the trace keeps of q, k and v; `transient` is what the peak holds beside that."""

    weights: int
    captured: int
    transient: int
    total: int
    values: int  # the part of v in what a trace may keep: a long run can do without, see run_bytes
    moment: str  # where the peak is

    def to_dict(self) -> dict[str, int | str]:
        return asdict(self)


def run_bytes(
    config: ModelConfig,
    *,
    batch: int = 1,
    source_len: int,
    target_len: int = 0,
    dtype: object = "float32",
    padded: bool | None = None,
    keep_values: bool = True,
    spelled_out: bool = False,
) -> RunBytes:
    """An upper bound, and a close one, on what core.trace holds at once.

    `padded` says whether texts of different length share the batch; None: whenever there are several. `keep_values` is
    False for runs that let v go. `spelled_out` is True for runs that edit scores or weights, which are tensors then. The head is asked about one position of each text. Scratch space inside a kernel is
    not counted. Raises ConfigError for lengths below 1 and formats it does not know.
    """
    by = bytes_of(dtype)
    check_lengths(config.kind, batch=batch, source_len=source_len, target_len=target_len)
    moments, captured = pass_moments(
        config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        by=by,
        padded=batch > 1 if padded is None else padded,
        keep="qkv" if keep_values else "qk",
        path="spelled_out" if spelled_out else "fused",
        all_logits=False,
        traced=True,
    )
    moment = max(moments, key=lambda name: moments[name])
    peak = max(moments[moment], captured)
    weights = weight_bytes(config, by)
    values = _value_bytes(config, batch, source_len, target_len, by)
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment)


def weight_bytes(config: ModelConfig, by: int) -> int:
    """Bytes of the parameters, and of the sinusoid tables, which are no parameters but are held all the same."""
    tables = len(config.stacks) * config.n_ctx * config.d_model if config.position == "sinusoidal" else 0
    return (parameters(config).total + tables) * by


def _value_bytes(config: ModelConfig, batch: int, source_len: int, target_len: int, by: int) -> int:
    own = target_len if config.kind == "encoder-decoder" else source_len
    keys = config.n_encoder_layers * source_len + config.n_decoder_layers * own
    if config.kind == "encoder-decoder":
        keys += config.n_decoder_layers * source_len  # cross-attention
    return batch * keys * config.n_kv_heads * config.d_head * by
