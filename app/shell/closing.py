"""How a server ends: newcomers are turned away, what visitors wait for is answered, and the rest is cut off."""

from __future__ import annotations

import asyncio
import logging
import time

from app.classroom import routes as classroom
from app.session import service
from app.transport import admission, open_answers

PATIENCE = 20.0  # seconds; platforms kill a process some 30 after they asked it to end
LOOK = 0.1
LAST_WORDS = 3.0  # seconds to draw and send the picture of the last run, enough for a busy machine
LONGEST = PATIENCE + LAST_WORDS  # seconds that finish() takes

log = logging.getLogger("headlight")


async def finish() -> None:
    """Turn newcomers away, wait for runs and answers, then cut off every answer that is still open."""
    admission.house.closing = True
    until = time.monotonic() + PATIENCE
    while (open_answers.here.awaited or await _runs()) and time.monotonic() < until:
        await asyncio.sleep(LOOK)
    classroom.close()
    await asyncio.sleep(LAST_WORDS)
    runs = await _runs()
    log.warning("Ended with %d runs left. Answers cut off: %d.", runs, open_answers.here.cut())


async def _runs() -> int:
    return (await service.service().status())["running_or_waiting"]
