"""The server: `streamlit run app/main.py`. Path line, warm-up, routes, sending and compression; ui.py is what runs per visitor."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `streamlit run` puts app/ on the path, not the folder that holds it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from anyio import to_thread  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

from app import page, routes, state  # noqa: E402

MIDDLEWARE = [Middleware(page.Scripted), Middleware(routes.Gzipped)]


def send_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Have whatever this loop listens to send small messages at once (TCP_NODELAY), as asyncio means to.

    asyncio asks for it only where a socket's protocol is spelled out, and the one that Streamlit binds and hands to uvicorn
    has none. The second half of every answer, the body behind its headers, then waits for the browser's delayed
    acknowledgement of the first: some 40 ms (github.com/Kludex/uvicorn/issues/3149).
    """
    create_server = loop.create_server

    async def create(*given: Any, **options: Any) -> asyncio.Server:
        listens = options.get("sock")
        if listens is not None and listens.family in (socket.AF_INET, socket.AF_INET6):
            listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections that it accepts inherit it
        return await create_server(*given, **options)

    loop.create_server = create


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[dict[str, object]]:
    """Nobody is the first visitor: the default model and its first picture are ready before the port answers."""
    send_at_once(asyncio.get_running_loop())
    await to_thread.run_sync(state.warm_up)
    yield {}


app = st.App(
    Path(__file__).with_name("ui.py"),
    lifespan=lifespan,
    routes=routes.ROUTES,
    middleware=MIDDLEWARE,
    on_script_error=state.on_script_error,
)
