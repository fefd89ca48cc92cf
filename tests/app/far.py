"""A server that is far away, and a browser that has much to do: what takes for granted that something is there by now fails.

`FAR=20,150 python -m pytest tests/app` delays each piece of what passes between server and browser by 20 to 150 ms, in its order.
`LATE=300 …` lets timers, idle callbacks and answers of fetch come up to 300 ms late in every page; by how much goes up and down
slowly enough to leave them in their order.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext

DELAYS = os.environ.get("FAR", "")  # "least,most", in ms
LATE = float(os.environ.get("LATE", "0"))  # ms
BUSY = """(() => {
  const begun = Math.random() * 7;
  const extra = () => MOST * (0.5 + 0.5 * Math.sin(performance.now() / 400 + begun));
  const { setTimeout: wait, clearTimeout: forget, requestIdleCallback: idle, cancelIdleCallback: drop, fetch: ask } = window;
  window.setTimeout = (act, ms, ...more) => wait(act, (Number(ms) || 0) + extra(), ...more);
  let last = 1e9; // far from the ids of the browser's own
  const open = new Map();
  window.requestIdleCallback = (act, options) => {
    const id = ++last;
    const later = () => open.set(id, [drop, idle((deadline) => { open.delete(id); act(deadline); }, options)]);
    open.set(id, [forget, wait(later, extra())]);
    return id;
  };
  window.cancelIdleCallback = (id) => {
    const [end, of] = open.get(id) ?? [];
    open.delete(id);
    end?.(of);
  };
  window.fetch = async (...asked) => {
    const answer = await ask(...asked);
    await new Promise((go) => wait(go, extra()));
    return answer;
  };
})();"""


def busy(browser: Browser) -> Browser:
    """The browser, in whose pages all that comes late."""
    if LATE:
        opened = browser.new_context

        def new_context(**options: Any) -> BrowserContext:
            context = opened(**options)
            context.add_init_script(BUSY.replace("MOST", str(LATE)))
            return context

        browser.new_context = new_context
    return browser


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
