"""A server that is far away: each piece of what passes between it and a browser comes a while later, in its order.

`FAR=20,150 python -m pytest tests/app` delays each piece by 20 to 150 ms. What takes for granted that an answer is there by now fails.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

DELAYS = os.environ.get("FAR", "")  # "least,most", in ms


@contextmanager
def away(address: str) -> Iterator[str]:
    """The address through which a server is that far away; its own where FAR says nothing."""
    if not DELAYS:
        yield address
        return
    least, most = (float(ms) / 1000 for ms in DELAYS.split(","))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    passing: set[asyncio.Task[None]] = set()

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", urlsplit(address).port)
        except OSError:
            writer.close()
            return
        for one in ((reader, back), (there, writer)):
            task = asyncio.create_task(_passed_on(*one, least, most))
            passing.add(task)
            task.add_done_callback(passing.discard)

    async def end() -> None:
        server.close()
        for task in [*passing]:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(visited, "127.0.0.1", 0), loop).result()
    try:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, least: float, most: float) -> None:
    """One direction of a connection, until either end closes it."""
    clock = asyncio.get_running_loop().time
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        due, piece = 0.0, b"-"
        while piece:
            try:
                piece = await reader.read(1 << 16)
            except OSError:
                piece = b""
            due = max(due, clock() + random.uniform(least, most))
            pieces.put_nowait((due, piece))

    reading = asyncio.create_task(read())
    try:
        while (of := await pieces.get())[1]:
            await asyncio.sleep(max(0.0, of[0] - clock()))
            writer.write(of[1])
            await writer.drain()
    except OSError:
        pass  # its other end has gone
    finally:
        reading.cancel()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
