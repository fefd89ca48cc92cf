"""What only `make thorough` runs: it sets THOROUGH=1.

A test or a case marked `@pytest.mark.thorough` is deselected otherwise (tests/conftest.py). Of a large family, `part` and `how_many`
choose the members that every run tries.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
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
