"""Addresses as browsers see them, at random, and a proxy that stands between a browser and a server as the examples of docs/hosting.md do."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

# Parts of paths: plain words, dots, dashes, names that the server has itself, and text that needs percent signs.
PARTS = ("lab", "headlight", "static", "r", "_stcore", "user", "alice@uni", "proxy", "8501", "v1.2", "a-b", "~kim", "X", "naïve", "two words", "学校", "50%")  # fmt: skip
HOSTS = ("headlight.example", "a.b-c.example", "10.1.2.3", "xn--bcher-kva.example", "[2001:db8::1]", "HUB.example")
TEXT = "The animal didn't cross the street because it was too tired."


@dataclass(frozen=True)
class Outside:
    """Where a browser finds the page: "https://uni.example:8443/user/alice/"; `base` is where the server has it."""

    origin: str
    prefix: str  # as the browser writes it: "/user/two%20words", or nothing
    base: str  # as the server is told it: "lab/v1.2", or nothing

    @property
    def page(self) -> str:
        return f"{self.origin}{self.prefix}/"


def outsides(seed: int, n: int) -> Iterator[Outside]:
    """Proxies that take a path away, that keep it, and that put another one in its place; and none."""
    draw = random.Random(seed)

    def path() -> str:
        return "/".join(draw.choice(PARTS) for _ in range(draw.randint(1, 4)))

    for _ in range(n):
        port = draw.choice(("", "", f":{draw.randint(1, 65535)}"))
        origin = f"{draw.choice(('http', 'https'))}://{draw.choice(HOSTS)}{port}".lower()
        seen, base = draw.choice(((path(), ""), (kept := path(), kept), (path(), path()), ("", path()), ("", "")))
        yield Outside(origin, f"/{quote(seen, safe='/@~')}" if seen else "", base)


@dataclass
class Proxy:
    """Requests that a proxy got, and what became of them."""

    port: int
    beside: list[str] = field(
        default_factory=list
    )  # asked for outside the prefix: of another application of the same host
    asked: list[str] = field(default_factory=list)
    websockets: bool = True  # whether it passes them
    refused: int = 0  # of them


@contextmanager
def proxying(upstream: str, prefix: str = "", base: str = "", websockets: bool = True) -> Iterator[Proxy]:
    """A proxy on a port of its own: `prefix`, as a browser writes it, is `base` upstream. It passes on the host that was asked for,
    and no address in an answer is changed. Without `websockets` it refuses them.
    """
    to = urlsplit(upstream)
    found = Proxy(0, websockets=websockets)
    loop = asyncio.new_event_loop()
    begun, ended = threading.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await passed(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        method, path, version = first.split(" ")
        found.asked.append(path)
        is_socket = any(re.match(r"upgrade:\s*websocket", line, re.IGNORECASE) for line in lines)
        if not re.match(rf"{re.escape(prefix)}(?:[/?]|$)", path):
            found.beside.append(path)
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return await writer.drain()
        if is_socket and not found.websockets:
            found.refused += 1
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return await writer.drain()
        inside = f"{base}{path[len(prefix) :]}"
        kept = [line for line in lines if is_socket or not re.match(r"connection:", line, re.IGNORECASE)]
        head = [f"{method} {inside if inside.startswith('/') else f'/{inside}'} {version}", *kept]
        head += (
            [] if is_socket else ["Connection: close"]
        )  # a connection for each request, or the next would not be read here
        server, there = await asyncio.open_connection(to.hostname, to.port)
        try:
            there.write("\r\n".join([*head, "", ""]).encode("latin-1"))
            await asyncio.gather(pour(reader, there), pour(server, writer, then=there))
        finally:
            there.close()

    async def pour(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, then: asyncio.StreamWriter | None = None
    ) -> None:
        with suppress(OSError):
            while part := await reader.read(1 << 16):
                writer.write(part)
                await writer.drain()
        for one in (writer, then):
            if one is not None:
                one.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        found.port = server.sockets[0].getsockname()[1]
        begun.set()
        await ended.wait()
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for _ in range(3):  # what was closed goes
            await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    begun.wait(20)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
