"""Evenly spaced sample of the rows of a long text."""

from __future__ import annotations

from collections.abc import Sequence


def middles(start: int, stop: int, n: int) -> list[int]:
    """Midpoints of n equal parts of start..stop, rounded down."""
    return [start + int((i + 0.5) * (stop - start) / n) for i in range(n)]


def spread(n: int, most: int, always: Sequence[int] = ()) -> list[int]:
    """All n rows, or at most `most` evenly spaced ones and those in `always`, in order."""
    return list(range(n)) if n <= most else sorted({*middles(0, n, most), *always})
