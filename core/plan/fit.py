"""longest_fit(): the longest text, largest batch or deepest model that fits into a number of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from ..errors import ConfigError
from ..model.config import ModelConfig
from .alive import alive_bytes
from .depth import with_layers
from .dtypes import check_choice
from .plan import Memory, memory_plan
from .workload import Workload, as_workload

Vary = Literal["source_len", "target_len", "batch", "layers"]
Counted = Literal["bound", "alive"]


@dataclass(frozen=True)
class Fit:
    """`n` takes `bytes` and fits; n + 1 takes `next_bytes` and does not. n is 0 if not even 1 fits.

    `counted`: the bytes are an upper bound ("bound"), so that n + 1 may fit after all, or live bytes of a trace ("alive").
    `ceiling` is the model's own limit, the rows of its table of positions; None if it has no limit.
    """

    vary: str
    budget: int
    n: int
    bytes: int
    next_bytes: int
    ceiling: int | None
    memory: Memory | None  # of n in closed form, by purpose; None if nothing fits
    counted: Counted = "bound"

    @property
    def usable(self) -> int:
        """n, or the ceiling if that is lower."""
        return self.n if self.ceiling is None else min(self.n, self.ceiling)

    def to_dict(self) -> dict[str, Any]:
        memory = None if self.memory is None else self.memory.to_dict()
        return asdict(self) | {"memory": memory, "usable": self.usable}


def longest_fit(
    config: ModelConfig,
    budget: int,
    workload: Workload | None = None,
    *,
    vary: Vary = "source_len",
    counted: Counted = "bound",
    **options: Any,
) -> Fit:
    """The largest value of `vary` whose plan takes at most `budget` bytes, with the rest of the workload unchanged.

    `options` are the fields of a workload by name. Memory never shrinks with larger values, so the answer is found by bisection.
    "layers" varies every stack of the model. With counted="alive" the bytes are those of a trace (core.plan.alive), which takes
    seconds, and at least as much fits as by the bound. Raises ConfigError for other choices, as plan() does, and as check_alive does.
    """
    check_choice("vary", vary, Vary)
    check_choice("counted", counted, Counted)
    if vary == "target_len" and config.kind != "encoder-decoder":
        raise ConfigError(
            f"vary='target_len' is for encoder-decoders; this model is {config.kind}-only: vary source_len"
        )

    if vary == "source_len":
        options = {"source_len": 1, **options} if workload is None else options
    work = as_workload(workload, options)

    def subject(n: int) -> tuple[ModelConfig, Workload]:
        if vary == "layers":
            return with_layers(config, n), work
        change: dict[str, Any] = {vary: n}
        return config, replace(work, **change)

    def bound(n: int) -> int:
        return memory_plan(*subject(n)).total

    def alive(n: int) -> int:
        longer, at = subject(n)
        if vary in ("source_len", "target_len") and longer.has_position_table:  # a longer table is not counted
            longer = replace(longer, n_ctx=max(longer.n_ctx, n))
            extra = memory_plan(longer, at).total - memory_plan(config, at).total
            return alive_bytes(longer, at) - extra
        return alive_bytes(longer, at)

    n, total = largest_within(budget, bound), bound
    if counted == "alive":
        total = cache(alive)  # each call is slow
        n = _largest_near(total, budget, n, bound(n + 1) - bound(n) if n else 0)
    best = memory_plan(*subject(n)) if n else None
    ceiling = config.longest_text if vary in ("source_len", "target_len") else None
    return Fit(vary, budget, n, total(n) if n else 0, total(n + 1), ceiling, best, counted)


def largest_within(budget: int, bytes_of: Callable[[int], int], most: int | None = None, start: int = 1) -> int:
    """The largest n up to `most` whose bytes are within the budget, by bisection from `start`; 0 if not even 1 fits."""
    low, high = 0, max(1, start if most is None else min(start, most))  # low fits, high is not known to
    while bytes_of(high) <= budget:
        if high == most:
            return high
        low, high = high, 2 * high if most is None else min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_of(middle) <= budget else (low, middle)
    return low


def _largest_near(total: Callable[[int], int], budget: int, n: int, slope: int) -> int:
    """The same, by interpolation from a nearby n with few calls. `slope` estimates the bytes of one more."""
    low, high = 0, None
    points: list[tuple[int, int]] = []
    guess = max(1, n)
    while high is None or high - low > 1:
        points = sorted([*points, (guess, total(guess))], key=lambda point: abs(point[1] - budget))[:2]
        low, high = (guess, high) if total(guess) <= budget else (low, guess)
        if len(points) == 2:
            (a, at_a), (b, at_b) = points
            slope = max(1, abs(at_a - at_b) // abs(a - b))
        nearest, at = points[0]
        guess = nearest + (budget - at) // max(1, slope)
        guess = max(guess, low + 1) if high is None else min(max(guess, low + 1), high - 1)
    return low
