"""What the server does now and then beside its visitors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger("headlight")


async def every(seconds: float, look: Callable[[], object]) -> None:
    """Until it is cancelled. Should it fail, that stands in the log, and it is done again when the time has come: a server that never
    again collects its garbage, or closes what has stalled, would end days later and no one would know of what."""
    while True:
        await asyncio.sleep(seconds)
        try:
            look()
        except Exception:
            log.exception("%s.%s failed, and is called again in %g s", look.__module__, look.__qualname__, seconds)
