"""Work of this process other than runs of a model, such as archives and lessons. It takes turns like runs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.transport import rate_limits
from core.service.queue import TaskQueue, Usage
from core.service.worker import wait_or_cancel

T = TypeVar("T")
USAGE = Usage(rate_limits.charge)  # of all work in this process, including the models'
_turns = TaskQueue("page", 1, USAGE)


async def done(make: Callable[[], T]) -> T:
    """Run `make` in a thread when its visitor's turn has come, and return its result."""
    return await wait_or_cancel(_turns.submit(make))
