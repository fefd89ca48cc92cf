"""Peaks of real runs beside what is said of them, as benchmarks/RESULTS.md has them: `python -m benchmarks.fits` runs them again."""

from __future__ import annotations

from dataclasses import dataclass

from app.kit import numbers
from app.rooms.memory import words


@dataclass(frozen=True)
class Row:
    """One run, in MiB: what was said of it, the most that was alive at once, and the growth of its process."""

    title: str
    said: float
    alive: float
    resident: float


ROWS: tuple[Row, ...] = ()
RUNS, TRAININGS = 0.0, 0.0  # per cent: the largest error of a run and of a training, against what was alive


def said() -> str:
    """The error of all that was run, in words."""
    return words.CHECKED_SAID.format(runs=numbers.fixed(RUNS, 1), trainings=numbers.fixed(TRAININGS, 0))
