"""What one traced inference run will hold and peak at, known before it starts so that it can be refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..model.config import ModelConfig
from .edits import rule_bytes
from .parameters import float32_parameters, parameters
from .peak import ATTENDING, FLOAT, pass_moments
from .workload import Workload, of_texts


@dataclass(frozen=True)
class RunBytes:
    """Bytes. `captured` is what the trace keeps of q, k and v, and of scores and weights where they are edited.

    `transient` is what the peak holds beside that.
    """

    weights: int
    captured: int
    transient: int
    total: int
    values: int  # the part of v in what a trace may keep: a long run can do without, see run_bytes
    moment: str  # where the peak is
    host: int = 0  # beside all that, in the machine's own memory, where a run in chunks keeps q, k and v there

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
    """An upper bound, and a close one, on what core.trace holds at once, for a workload or one whose fields `options` name.

    Without a workload, several texts count as padded unless `padded` is given. `keep_values` is False for runs that let v go.
    `spelled_out` is True for runs that edit scores or weights, which are tensors then and are kept, `edited_rules` for runs
    that edit masks, scales or the softmax. The head is asked about one position of each text. Scratch space inside a kernel
    is not counted. Raises ConfigError for lengths below 1 and formats it does not know.
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
    values = _value_bytes(config, work)
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment)


def weight_bytes(config: ModelConfig, by: int) -> int:
    """Bytes of the parameters, those of RMS norms in float32 at least, and of the sinusoid tables, which are no parameters."""
    tables = len(config.stacks) * config.n_ctx * config.d_model if config.position == "sinusoidal" else 0
    return (parameters(config).total + tables) * by + float32_parameters(config) * max(0, FLOAT - by)


def _value_bytes(config: ModelConfig, work: Workload) -> int:
    keys = sum(n_layers * (n + memory_len) for _, n_layers, n, memory_len in work.stacks(config))
    return work.batch * keys * config.n_kv_heads * config.d_head * work.by
