"""Clients that are slow on purpose, or send what no browser does: they get nothing more, and everybody else gets answers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from app.streamlit_edge import connections
from app.streamlit_edge.connections import ASKING, LEAST, READING, Connections
from app.transport import background, bad_requests, visitors
from benchmarks import load

APP = "app/main.py"
PATIENCE = 30.0  # seconds for anything
LARGE = b"x" * (32 << 20)  # more than the system keeps for somebody who does not read


# what is closed, and when


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Line:
    """As much of a connection as is looked at."""

    def __init__(self, protocol: Any, left: int = 0) -> None:
        self.protocol: Any = protocol
        self.left, self.aborted = left, False

    def get_protocol(self) -> Any:
        return self.protocol

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        self.aborted, self.protocol = True, None


def asked(**said: Any) -> Any:
    """uvicorn's protocol of a connection whose request is half here."""
    cycle = SimpleNamespace(more_body=True, response_complete=False) if said.pop("body", False) else None
    return SimpleNamespace(timeout_keep_alive_task=None, flow=SimpleNamespace(read_paused=False), cycle=cycle, **said)


def looked(line: Line, clock: Clock, seconds: float, change: Any = None) -> bool:
    """Whether a connection is closed that is looked at for so long; change(line) happens before each look."""
    known = Connections(clock)
    known._open[cast(asyncio.Transport, line)] = connections._Seen()
    until = clock.now + seconds
    while clock.now < until and not line.aborted:
        if change is not None:
            change(line)
        known.look()
        clock.now += connections.LOOK
    return line.aborted


@pytest.mark.parametrize("body", [False, True])
def test_half_a_request_is_waited_for_and_then_closed(body: bool) -> None:
    assert not looked(Line(asked(body=body)), Clock(), ASKING)
    assert looked(Line(asked(body=body)), Clock(), ASKING + 2 * connections.LOOK)


def test_who_waits_for_the_server_is_never_closed() -> None:
    def asks_again(line: Line) -> None:
        line.protocol.cycle = SimpleNamespace(more_body=True, response_complete=False)

    between = asked(body=True)
    between.cycle.response_complete, between.timeout_keep_alive_task = True, object()
    answering = asked(body=True)
    answering.cycle.more_body = False
    held_back = asked(body=True)
    held_back.flow.read_paused = True
    websocket = SimpleNamespace()
    for protocol in (between, answering, held_back, websocket):
        assert not looked(Line(protocol), Clock(), 10 * READING)
    assert not looked(Line(asked(body=True)), Clock(), 10 * READING, asks_again)


def test_an_answer_that_nobody_reads_is_closed_and_one_that_goes_on_is_not() -> None:
    def read(least: int) -> Any:
        def some(line: Line) -> None:
            line.left -= round(least * connections.LOOK / READING) + 1

        return some

    def more(line: Line) -> None:
        line.left += 100

    done, size = SimpleNamespace(), 10 * LEAST
    assert looked(Line(done, size), Clock(), 2 * READING)
    assert looked(Line(done, size), Clock(), 2 * READING, more)  # a websocket that is written to
    assert looked(Line(done, size), Clock(), 3 * READING, read(LEAST // 100))
    assert not looked(Line(done, size), Clock(), 5 * READING, read(2 * LEAST))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[tuple[str, int], Connections]]:
    """uvicorn, which waits ten looks for a request and for a reader, and who is connected to it.

    Looks, and no seconds: a machine that stands still for a moment lets nobody's time pass.
    """
    monkeypatch.setattr(connections, "ASKING", 10)
    monkeypatch.setattr(connections, "READING", 10)
    looks, began = count(), threading.Event()
    known = Connections(lambda: next(looks))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        known.watch(asyncio.get_running_loop())
        task = asyncio.create_task(background.every(0.05, known.look))
        yield
        task.cancel()

    async def large(_: Request) -> Response:
        return Response(LARGE)

    async def said(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    routes = [Route("/large", large), Route("/said", said, methods=["POST"])]
    listens = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Starlette(routes=routes, lifespan=lifespan), ws="websockets-sansio", log_level="error")
    server = uvicorn.Server(config)

    async def serve() -> None:
        serving = asyncio.create_task(server.serve([listens]))
        while not server.started:
            await asyncio.sleep(0.01)
        began.set()
        await serving

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert began.wait(PATIENCE)
    yield listens.getsockname(), known
    server.should_exit = True
    thread.join()
    listens.close()


def rest(line: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(1 << 16):
            found += part
    return found


def test_slow_clients_are_closed_and_the_next_one_is_answered(impatient) -> None:
    address, known = impatient
    silent, half, body, deaf = (socket.create_connection(address, PATIENCE) for _ in range(4))
    half.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nX-Half: ")
    body.sendall(b"POST /said HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
    deaf.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    with urlopen(f"http://{address[0]}:{address[1]}/said", b"whole") as answer:
        assert answer.read() == b"5"
    assert rest(silent) == rest(half) == rest(body) == b""
    while len(known):  # until nothing is kept for him who reads nothing
        threading.Event().wait(0.05)
    assert len(rest(deaf)) < len(LARGE)
    for line in (silent, half, body, deaf):
        line.close()


# what no browser sends


def test_cookies_that_take_seconds_to_read_are_not_read() -> None:
    name = visitors.new_name()
    own = f"headlight={name}"
    bad = 'x="' + '\\"' * 30_000 + '"'
    assert bad_requests.readable(f"a=b; {bad}; {own}".encode()) == f"a=b; {own}".encode()
    assert visitors.named(f"{bad}; {own};y=z") == name == visitors.named(own)
    assert visitors.named(f"x{own}") == visitors.named(f"{own}a") == visitors.named(f"x={own}") == ""


def test_what_fails_beside_the_visitors_is_logged_and_done_again(caplog: pytest.LogCaptureFixture) -> None:
    times: list[int] = []

    async def looks() -> None:
        again = asyncio.Event()

        def look() -> None:
            times.append(1)
            if len(times) == 1:
                raise RuntimeError("a fault of ours")
            again.set()

        task = asyncio.create_task(background.every(0.001, look))
        await asyncio.wait_for(again.wait(), PATIENCE)
        task.cancel()

    with ThreadPoolExecutor(1) as pool:  # this thread's loop may be Playwright's
        pool.submit(asyncio.run, looks()).result()
    assert len(times) >= 2 and "look failed" in caplog.text and "a fault of ours" in caplog.text


def websocket(address: str) -> ClientConnection:
    return connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        origin=cast(Any, address),
        max_size=None,
        open_timeout=PATIENCE,
        close_timeout=0,
        ping_interval=None,
    )


def rerun(query: str = "") -> bytes:
    asked = BackMsg()
    asked.rerun_script.query_string = query
    return asked.SerializeToString()


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
LONG = "x" * 12_000
ODD: dict[str, bytes] = {
    "a long address": f"GET /?text={LONG} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    "an address without an end": b"GET /?text=" + b"x" * 400_000,
    "thousands of parameters": f"GET /headlight/tile?{'&'.join(f'a{i}={i}' for i in range(4000))} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    "a long header": HEAD + f"X-Long: {LONG}\r\n\r\n".encode(),
    "headers without an end": HEAD + b"X-Long: " + b"x" * 400_000,
    "thousands of headers": HEAD + b"".join(b"X-%d: y\r\n" % i for i in range(1500)) + b"\r\n",
    "cookies that are slow to read": HEAD + b'Cookie: a="' + b'\\"' * 4000 + b'"\r\n\r\n',
    "a large body": b"POST /headlight/classroom/open HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n"
    + b"[" * 9_000_000,
    "a body for a page": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000,
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 50 + b"\r\n\r\n",
    "a strange upgrade": HEAD + b"Connection: upgrade\r\nUpgrade: nothing\r\n\r\n",
    "half a websocket": HEAD.replace(b"GET /", b"GET /_stcore/stream")
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
}


def odd(address: str, request: bytes) -> int:
    """The status of the answer; 0 where there is none before the line is closed."""
    there = urlsplit(address)
    with socket.create_connection((there.hostname or "", there.port or 0), PATIENCE) as line:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            found = line.recv(1 << 16)
            assert b"Traceback" not in found and b"site-packages" not in found
            return int(found.split()[1]) if found else 0
    return 0


@pytest.fixture
def process(address: str) -> int:
    return load._process(int(address.rsplit(":", 1)[1]))


@pytest.mark.thorough
def test_strange_and_slow_visitors_hold_nobody_up(address: str, process: int) -> None:
    there = urlsplit(address)
    with contextlib.ExitStack() as stack:
        # who stays: half a request, half a body, and five who ask for the page again and again and read nothing of it
        for begun in (HEAD, ODD["a large body"][:200]):
            line = stack.enter_context(socket.create_connection((there.hostname or "", there.port or 0), PATIENCE))
            line.sendall(begun)
        for _ in range(5):
            deaf = stack.enter_context(websocket(address))
            for _ in range(5):
                deaf.send(rerun())
        seen = {name: odd(address, request) for name, request in ODD.items()}
        assert {name for name, status in seen.items() if status >= 500} == set()
        assert [
            name for name in ("a long address", "a long header", "cookies that are slow to read") if seen[name] != 200
        ] == []
        assert seen["headers without an end"] == seen["an address without an end"] == seen["no HTTP"] == 400
        assert seen["a large body"] == 413 or seen["a large body"] == 0

        before = load.memory(process)
        too_large = b"\x82\xff" + (16_000_001).to_bytes(8, "big") + b"mask" + b"x" * 1000
        for frame, code in (("text", 1003), (b"\xff" * 100, 1003), (too_large, 1009)):
            with websocket(address) as line, pytest.raises(ConnectionClosed) as closed:
                if code == 1009:
                    line.socket.sendall(too_large)  # its beginning says how long it is
                else:
                    line.send(frame)
                while True:
                    line.recv(PATIENCE)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == code, frame[:10]
        with urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(asyncio.run, load.crowd(address, visitors=1, seconds=1, think=0.5, seed=3)).result()
        assert found.counts["exceptions"] == found.counts["no answer"] == 0
        assert not [name for name in found.counts if name.startswith(("status", "failed"))]
        assert load.memory(process) - before < 64 << 20
    with urlopen(f"{address}/metrics", timeout=PATIENCE) as answer:
        assert re.search(r"^headlight_stalled_total \d", answer.read().decode(), re.MULTILINE)
