"""Work of this process other than runs of a model, such as archives and lessons. It takes turns like runs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.transport import rate_limits
from core.service.arrival import only_arrival
from core.service.turns import Turns, Usage

T = TypeVar("T")
USAGE = Usage(rate_limits.charge)  # of all work in this process, including the models'
_turns = Turns("page", 1, USAGE)


async def done(make: Callable[[], T]) -> T:
    """Run `make` in a thread when its visitor's turn has come, and return its result."""
    return await only_arrival(_turns.submit(make))
