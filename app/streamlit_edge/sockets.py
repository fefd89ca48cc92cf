"""Answers are sent at once."""

from __future__ import annotations

import asyncio
import socket
from typing import Any


def send_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Have whatever this loop listens to send small messages at once (TCP_NODELAY), as asyncio means to.

    asyncio asks for it only where a socket's protocol is spelled out, and the one that Streamlit binds and hands to uvicorn
    has none. The second half of every answer, the body after its headers, then waits for the browser's delayed
    acknowledgement of the first: some 40 ms (github.com/Kludex/uvicorn/issues/3149). The lifespan is the one place of ours that
    runs before the port is listened on.
    """
    create_server = loop.create_server

    async def create(*given: Any, **options: Any) -> asyncio.Server:
        listens = options.get("sock")
        if listens is not None and listens.family in (socket.AF_INET, socket.AF_INET6):
            listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections that it accepts inherit it
        return await create_server(*given, **options)

    loop.create_server = create
