"""longest_fit(): the largest text, batch or depth that still fits into so many bytes, with the next one that does not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from ..errors import ConfigError
from ..model.config import ModelConfig
from .depth import with_layers
from .plan import Memory, memory_plan
from .workload import Workload, as_workload

Vary = Literal["source_len", "target_len", "batch", "layers"]


@dataclass(frozen=True)
class Fit:
    """`n` takes `bytes` and fits; n + 1 takes `next_bytes` and does not. n is 0 where not even 1 fits.

    `ceiling` is what the model allows whatever the memory: the rows of its table of positions. None: nothing does.
    """

    vary: str
    budget: int
    n: int
    bytes: int
    next_bytes: int
    ceiling: int | None
    memory: Memory | None  # of n, item by item; None where nothing fits

    @property
    def usable(self) -> int:
        """n, or the ceiling where that is lower."""
        return self.n if self.ceiling is None else min(self.n, self.ceiling)

    def to_dict(self) -> dict[str, Any]:
        memory = None if self.memory is None else self.memory.to_dict()
        return asdict(self) | {"memory": memory, "usable": self.usable}


def longest_fit(
    config: ModelConfig, budget: int, workload: Workload | None = None, *, vary: Vary = "source_len", **options: Any
) -> Fit:
    """The largest value of `vary` whose plan takes at most `budget` bytes; the rest of the workload, or of its fields that
    `options` name, stays as it is.

    Memory never shrinks when any of them grows, so the answer is found by halving. "layers" varies every stack the model
    has. Raises ConfigError for a `vary` that is not one of the four, and as plan() does.
    """
    if vary not in get_args(Vary):
        raise ConfigError(f"vary ({vary!r}) must be one of {', '.join(map(repr, get_args(Vary)))}")
    if vary == "target_len" and config.kind != "encoder-decoder":
        raise ConfigError(
            f"vary='target_len' is for encoder-decoders; this model is {config.kind}-only: vary source_len"
        )

    if vary == "source_len":
        options = {"source_len": 1, **options} if workload is None else options
    work = as_workload(workload, options)

    def memory(n: int) -> Memory:
        if vary == "layers":
            return memory_plan(with_layers(config, n), work)
        return memory_plan(config, replace(work, **{vary: n}))

    low, high = 0, 1  # low fits, high is not known to
    while memory(high).total <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if memory(middle).total <= budget else (low, middle)
    best = memory(low) if low else None
    ceiling = config.n_ctx if config.has_position_table and vary in ("source_len", "target_len") else None
    return Fit(vary, budget, low, best.total if best else 0, memory(low + 1).total, ceiling, best)
