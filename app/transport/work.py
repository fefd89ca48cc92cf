"""Work of this process that is no run of a model: files, archives, lessons that are read. It has its turns as runs have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.transport import rate_limits
from core.service.arrival import arrival
from core.service.turns import Turns, Usage

T = TypeVar("T")
USAGE = Usage(rate_limits.charge)  # of all work here, that of the models among it
_turns = Turns("page", 1, USAGE)


async def done(make: Callable[[], T]) -> T:
    """What `make` gives, in a thread, when its visitor's turn has come."""
    future = _turns.submit(make)
    try:
        return await arrival(future)
    finally:
        future.cancel()
