"""Rows of a long text that are looked at where all of them would be too many: evenly spaced ones."""

from __future__ import annotations

from collections.abc import Sequence


def middles(start: int, stop: int, n: int) -> list[int]:
    """The middles of n equal parts of start..stop, rounded down."""
    return [start + int((i + 0.5) * (stop - start) / n) for i in range(n)]


def spread(n: int, most: int, always: Sequence[int] = ()) -> list[int]:
    """All n rows, or at most `most` of them, evenly spaced, and those in `always`; from the first to the last."""
    return list(range(n)) if n <= most else sorted({*middles(0, n, most), *always})
