"""Memory of a traced inference run, known in advance so that a run that does not fit can be rejected."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..model.config import ModelConfig
from .dtypes import FLOAT
from .edits import rule_bytes
from .parameters import float32_parameters, parameters
from .peak import ATTENDING, pass_moments
from .workload import Workload, of_texts


@dataclass(frozen=True)
class RunBytes:
    """Bytes. `captured` are q, k and v in the trace, and scores and weights if they are edited; `transient` is the rest of the peak."""

    weights: int
    captured: int
    transient: int
    total: int
    values: int  # of v in the trace; a long run can leave it out, see run_bytes
    moment: str  # name of the peak
    host: int = 0  # in addition, in host memory, if a run in chunks stores q, k and v there

    def to_dict(self) -> dict[str, int | str]:
        return asdict(self)


def run_bytes(
    config: ModelConfig,
    workload: Workload | None = None,
    *,
    keep_values: bool = True,
    spelled_out: bool = False,
    edited_rules: bool = False,
    **options: Any,
) -> RunBytes:
    """A close upper bound of the memory of core.trace, for a workload or one whose fields `options` name.

    Without a workload, several texts count as padded unless `padded` is given. `keep_values` is False for runs that do not store v.
    `spelled_out` is True for runs that edit scores or weights, which are then stored as tensors, `edited_rules` for runs that edit
    masks, scales or the softmax. Logits are computed at one position of each text. Scratch space inside kernels is not counted.
    Raises ConfigError for lengths below 1 and unknown formats.
    """
    work = of_texts(workload, options)
    work.check(config)
    moments, captured = pass_moments(
        config,
        work,
        keep="qkv" if keep_values else "qk",
        path="spelled_out" if spelled_out else "fused",
        all_logits=False,
        traced=True,
    )
    if edited_rules:
        longest = max(work.source_len, work.target_len)
        more = rule_bytes(config, work, longest, longest, spelled_out=spelled_out)
        moments |= {name: value + more for name, value in moments.items() if name.endswith(ATTENDING)}
    moment = max(moments, key=lambda name: moments[name])
    peak = max(moments[moment], captured)
    weights = weight_bytes(config, work.by)
    keys = sum(n_layers * (n + memory_len) for _, n_layers, n, memory_len in work.stacks(config))
    values = work.batch * keys * config.n_kv_heads * config.d_head * work.by
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment)


def weight_bytes(config: ModelConfig, by: int) -> int:
    """Bytes of the parameters, with RMS norms in float32 at least, and of sinusoid tables, which are not parameters."""
    tables = len(config.stacks) * config.n_ctx * config.d_model if config.position == "sinusoidal" else 0
    return (parameters(config).total + tables) * by + float32_parameters(config) * max(0, FLOAT - by)
