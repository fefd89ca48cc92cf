"""Tests that only `make thorough` runs, which sets THOROUGH=1.

A test or a case marked `@pytest.mark.thorough` is deselected otherwise, and of one marked `@pytest.mark.thorough(but=4)` all but
four of its cases (tests/conftest.py). Of a large family inside a test, `part` and `how_many` choose the members that every run tries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
THOROUGH = os.environ.get("THOROUGH") == "1"
LEAST = 4  # cases of a family that are always tried


def how_many(whole: int, share: int = 4) -> int:
    """Of `whole` cases drawn in a fixed order, the number that is tried: one in `share`."""
    return whole if THOROUGH else min(whole, max(LEAST, whole // share))


def part(family: Sequence[T], share: int = 2, first: int = 0) -> list[T]:
    """Every `share`-th member of a family, from the one at `first` on."""
    return list(family) if THOROUGH else list(family[first % share :: share])


def of_part(files: Iterable[Path], part: str) -> set[Path]:
    """Files of one part of a run that several machines share: "2/6" is the second of six.

    Every sixth file, since neighbours are about the same room and take about as long.
    """
    number, of = map(int, part.split("/"))
    if not 1 <= number <= of:
        raise ValueError(f"There is no part {part}. The parts of six are 1/6 to 6/6.")
    return {*sorted({*files})[number - 1 :: of]}
