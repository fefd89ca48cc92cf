"""How the server starts and sends: one line on the terminal, and every message at once on whatever socket it listens."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from app.streamlit_edge.sockets import send_at_once
from tests import servers


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_connections_to_a_socket_without_a_protocol_send_at_once(family: socket.AddressFamily, host: str):
    """As Streamlit binds one: asyncio itself leaves it, and what it accepts, alone."""
    listens = socket.socket(family)
    try:
        listens.bind((host, 0))
    except OSError:
        pytest.skip(f"this machine has no {host}")
    assert listens.proto == 0
    listens.listen()
    listens.setblocking(False)

    async def connect() -> int:
        loop, sent = asyncio.get_running_loop(), asyncio.Queue[int]()

        class Server(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                own = transport.get_extra_info("socket")
                sent.put_nowait(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        send_at_once(loop)
        async with await loop.create_server(Server, sock=listens):
            _, writer = await asyncio.open_connection(*listens.getsockname()[:2])
            at_once = await sent.get()
            writer.close()
            await writer.wait_closed()
        return at_once

    assert asyncio.run(connect()) == 1


def test_an_address_is_listened_on_as_before():
    async def listen() -> int:
        send_at_once(asyncio.get_running_loop())
        async with await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0) as server:
            return len(server.sockets)

    assert asyncio.run(listen()) == 1


def test_a_start_prints_one_line_with_the_address(request: pytest.FixtureRequest):
    log = servers.shared("app/main.py", request.config).log.read_text("utf-8")
    start = log.partition("tests: ")[0].strip()
    assert re.fullmatch(r"Headlight answers at http\S+; Ctrl-C stops it\.", start), start
