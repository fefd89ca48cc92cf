"""How a server ends: no one new comes in, what runs is answered."""

from __future__ import annotations

import asyncio
import logging
import time

from app.classroom import routes as classroom
from app.session import service
from app.transport import admission

PATIENCE = 20.0  # seconds; platforms kill a process some 30 after they asked it to end
LOOK = 0.1
LAST_WORDS = 3.0  # seconds for the picture of the last run to be drawn and sent, also by a machine that has much to do

log = logging.getLogger("headlight")


async def finish() -> None:
    """Close the doors, and wait until no run is left, or for PATIENCE seconds."""
    admission.house.closing = True
    until = time.monotonic() + PATIENCE
    while (await service.service().status())["running_or_waiting"] and time.monotonic() < until:
        await asyncio.sleep(LOOK)
    classroom.close()
    await asyncio.sleep(LAST_WORDS)
    log.warning("Ended with %d runs left.", (await service.service().status())["running_or_waiting"])
