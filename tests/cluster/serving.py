"""Answering behind a server of its own in this process, as a replica stands behind Ray Serve's; it can be lost at any moment."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster import answering
from core.service import LocalService

Answers = Callable[[Request], Awaitable[Response]]


@contextmanager
def served(answers: Answers, port: int = 0) -> Iterator[str]:
    """The address at which `answers` answers every question."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # else every answer waits 40 ms for an acknowledgement
    listening.bind(("127.0.0.1", port))
    app = Starlette(routes=[Route("/{name}", answers, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=0, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)
        listening.close()


def answering_for(service: LocalService) -> Answers:
    """A replica of one service."""

    async def answers(asked: Request) -> Response:
        return await answering.answer(service, asked)

    return answers
