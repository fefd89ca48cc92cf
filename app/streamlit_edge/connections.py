"""Connections that stall are closed, and a message that is too large is refused before it is in memory.

uvicorn looks at the clock only between two requests. Without this half a request is waited for as long as its sender likes, an answer
that no one reads is kept as long, and anyone who opens enough of such connections has all files of the server. Streamlit refuses a
message of server.maxWidgetStateSize or more when it has all of it; until then uvicorn takes server.maxMessageSize, which is for what is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes

ASKING = 20.0  # seconds in which a request must have come, from the moment when it is the visitor's turn
READING = 60.0  # seconds in which an answer must go on by LEAST bytes, however large it is
LEAST = 16_384
LOOK = 2.0  # seconds between two looks


@dataclass
class _Seen:
    """What a connection waited for when it was looked at last."""

    request: object = None  # says which request has not come; None: it is not the visitor's turn
    asked: float = 0.0  # since when
    left: int = 0  # bytes of answers that are not sent yet
    sent: int = 0  # bytes that went since `sending`
    sending: float = 0.0


class Connections:
    """Those of one server. Its methods are called in the thread of the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._open: WeakKeyDictionary[asyncio.Transport, _Seen] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._open)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Know of all that come to whatever this loop listens to from now on."""
        create_server = loop.create_server

        async def create(protocol_factory: Callable[[], Any], *given: Any, **options: Any) -> asyncio.Server:
            def made() -> Any:
                protocol = protocol_factory()
                protocol.config.ws_max_size = get_max_widget_state_size_bytes()
                come = protocol.connection_made

                def connection_made(transport: asyncio.Transport) -> None:
                    self._open[transport] = _Seen()
                    come(transport)

                protocol.connection_made = connection_made
                return protocol

            return await create_server(made, *given, **options)

        loop.create_server = create

    def look(self) -> int:
        """Close those that have stalled; how many."""
        now, closed = self.clock(), 0
        for transport, seen in [*self._open.items()]:
            protocol = transport.get_protocol()
            if protocol is None:  # it has been closed
                del self._open[transport]
            elif self._late(seen, _awaited(protocol), now) or self._stuck(seen, transport.get_write_buffer_size(), now):
                transport.abort()  # close() would wait for what is not read
                closed += 1
        return closed

    @staticmethod
    def _late(seen: _Seen, request: object, now: float) -> bool:
        if request is None or request != seen.request:
            seen.request, seen.asked = request, now
        return request is not None and now - seen.asked >= ASKING

    @staticmethod
    def _stuck(seen: _Seen, left: int, now: float) -> bool:
        seen.sent += max(0, seen.left - left)
        if left == 0 or seen.left == 0 or seen.sent >= LEAST:
            seen.sent, seen.sending = 0, now
        seen.left = left
        return left > 0 and now - seen.sending >= READING


def _awaited(protocol: Any) -> object:
    """Which request a connection waits for whose rest has not come; None where it waits for none, as a websocket does."""
    if not hasattr(protocol, "cycle"):
        return None
    cycle = protocol.cycle
    if cycle is None or cycle.response_complete:  # uvicorn has its own clock until the first byte of the next one
        return ("headers", id(cycle)) if protocol.timeout_keep_alive_task is None else None
    return ("body", id(cycle)) if cycle.more_body and not protocol.flow.read_paused else None
