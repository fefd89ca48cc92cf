"""The answers that are being sent. A server that is asked to end waits for them, then cuts off those that are left."""

from __future__ import annotations

import asyncio

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.transport import words


class Open:
    """The answers of one server, each by the task that sends it."""

    def __init__(self) -> None:
        self._all: set[asyncio.Task[object]] = set()
        self._lasting: set[asyncio.Task[object]] = (
            set()
        )  # until a long piece of work, a class or the visitor's page ends
        self._cut: set[asyncio.Task[object]] = set()

    @property
    def awaited(self) -> int:
        """How many will be complete soon, so that a server should not end before them."""
        return len(self._all - self._lasting)

    def lasts(self) -> None:
        """Say in a route that its answer reports on work of minutes, or on a class: no server stays up for it."""
        self._lasting |= self._all & {_task()}

    def cut(self) -> int:
        """Cut off all answers, and return how many. A browser sees a connection that broke, not an answer that is complete."""
        self._cut |= self._all
        for task in self._all:
            task.cancel("the server ends")
        return len(self._all)

    def enter(self) -> None:
        self._all.add(_task())

    def leave(self) -> None:
        for tasks in (self._all, self._lasting, self._cut):
            tasks.discard(_task())

    def was_cut(self) -> bool:
        return _task() in self._cut


here = Open()


class Counted:
    """ASGI middleware: keeps `here`. An answer that is cut off before it began is a refusal, which browsers ask for again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        here.enter()
        try:
            await self.app(scope, receive, noted)
        except asyncio.CancelledError:
            if not here.was_cut():
                raise
            _task().uncancel()  # else the server would log a traceback for each
            if not began:
                await PlainTextResponse(words.CLOSING, 503)(scope, receive, send)
        finally:
            here.leave()


def _task() -> asyncio.Task[object]:
    found = asyncio.current_task()
    assert found is not None  # an ASGI server runs each request in a task
    return found
