"""longest_fit(): the largest text, batch or depth that still fits into so many bytes, with the next one that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

from ..errors import ConfigError
from ..model.config import ModelConfig
from .alive import alive_bytes
from .depth import with_layers
from .plan import Memory, memory_plan
from .workload import Workload, as_workload

Vary = Literal["source_len", "target_len", "batch", "layers"]
Counted = Literal["bound", "alive"]


@dataclass(frozen=True)
class Fit:
    """`n` takes `bytes` and fits; n + 1 takes `next_bytes` and does not. n is 0 where not even 1 fits.

    `counted` says what the bytes are: an upper bound, so that n + 1 may fit after all, or what is alive at once in a trace.
    `ceiling` is what the model allows whatever the memory: the rows of its table of positions. None: nothing does.
    """

    vary: str
    budget: int
    n: int
    bytes: int
    next_bytes: int
    ceiling: int | None
    memory: Memory | None  # of n by the closed forms, item by item; None where nothing fits
    counted: Counted = "bound"

    @property
    def usable(self) -> int:
        """n, or the ceiling where that is lower."""
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
    """The largest value of `vary` whose plan takes at most `budget` bytes; the rest of the workload, or of its fields that
    `options` name, stays as it is.

    Memory never shrinks when any of them grows, so the answer is found by halving. "layers" varies every stack the model
    has. With counted="alive" the bytes are those of a trace (core.plan.alive), which takes a second or several, and never fewer
    fit than by the bound. Raises ConfigError for choices that are none of those above, as plan() does, and as check_alive does.
    """
    for name, value, known in (("vary", vary, Vary), ("counted", counted, Counted)):
        if value not in get_args(known):
            raise ConfigError(f"{name} ({value!r}) must be one of {', '.join(map(repr, get_args(known)))}")
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
        if (
            vary in ("source_len", "target_len") and longer.has_position_table
        ):  # a longer table is not counted, here as there
            longer = replace(longer, n_ctx=max(longer.n_ctx, n))
            extra = memory_plan(longer, at).total - memory_plan(config, at).total
            return alive_bytes(longer, at) - extra
        return alive_bytes(longer, at)

    n, total = _largest(bound, budget), bound
    if counted == "alive":
        total = cache(alive)  # each takes a while
        n = _largest_near(total, budget, n, bound(n + 1) - bound(n) if n else 0)
    best = memory_plan(*subject(n)) if n else None
    ceiling = config.longest_text if vary in ("source_len", "target_len") else None
    return Fit(vary, budget, n, total(n) if n else 0, total(n + 1), ceiling, best, counted)


def _largest(total: Callable[[int], int], budget: int) -> int:
    """The largest n whose total is within the budget, by halving."""
    low, high = 0, 1  # low fits, high is not known to
    while total(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= budget else (low, middle)
    return low


def _largest_near(total: Callable[[int], int], budget: int, n: int, slope: int) -> int:
    """The same from an n near it, with as few questions as can be: `slope` is about what one more takes."""
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
