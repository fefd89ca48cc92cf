"""Peaks of real runs beside what is said of them, as benchmarks/RESULTS.md has them: `python -m benchmarks.fits` runs them again."""

from __future__ import annotations

from dataclasses import dataclass

from app.kit import numbers
from app.rooms.memory import words


@dataclass(frozen=True)
class Row:
    """One run, in MiB: what was said of it, the most that PyTorch's allocator gave out, and the growth of its process."""

    title: str
    said: float
    allocated: float
    resident: float


ROWS = (
    Row("SmolLM2, 128 tokens", 521.9, 521.9, 534.6),
    Row("SmolLM2, 1,024 tokens", 583.4, 583.1, 621.4),
    Row("SmolLM2, 4,096 tokens", 794.2, 793.2, 931.6),
)
RUNS = 14
OFF, TRAINING, RESIDENT = 3.3, 19.3, 26.4  # per cent: of all runs, of training, and of the memory of a run's process


def said() -> str:
    """The error of all that was run, in words."""
    return words.CHECKED_SAID.format(
        n=RUNS,
        runs=numbers.fixed(OFF, 1),
        trainings=numbers.fixed(TRAINING, 0),
        resident=numbers.fixed(RESIDENT, 0),
    )
