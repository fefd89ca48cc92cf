"""What there is to see of a run while it still runs: its tokens, and each layer's small pictures once the pass has left it.

A pass leaves a core to the server, which has nothing to do until it ends. What is drawn by then need not be waited for
afterwards, and a visitor sees the layers come.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from app import lens, pack
from core.attention import AttentionRecord, Thumbnail
from core.engine import Request
from core.trace import Trace

MOST_RUNS = 8  # whose thumbnails wait for somebody to take them

_pool = ThreadPoolExecutor(1, thread_name_prefix="underway")
_lock = threading.Lock()
_going: dict[str, Underway] = {}  # by the request's key, for as long as the run goes on
_made: OrderedDict[str, list[Future[Thumbnail]]] = OrderedDict()  # until somebody takes them


@dataclass(eq=False)
class Underway:
    """One run that is large enough to be sent in parts."""

    end: Future[Trace]
    header: Future[dict[str, Any]]  # of the picture, as pack.outline has it
    made: list[Future[Thumbnail]]  # of each record, in the order of the pass
    so_far: Trace | None  # none once it has ended: nobody may hold its queries and keys any longer

    def left(self, so_far: Trace) -> None:
        """The pass has left one more attention."""
        self.so_far = so_far
        _pool.submit(_make, self.made[len(so_far.records) - 1], so_far.attention[-1])


def _make(future: Future[Thumbnail], record: AttentionRecord) -> None:
    try:
        future.set_result(record.thumbnail(pack.THUMBNAIL))
    except BaseException as error:
        future.set_exception(error)


def watch(request: Request, end: Future[Trace]) -> Callable[[Trace], None]:
    """What the engine is to tell how far this run has come; `end` is what it will give.

    Nothing is made of a small run, whose every weight is sent, nor on a GPU, where it would only take turns with the pass.
    """
    run: Underway | None = None

    def tell(so_far: Trace) -> None:
        nonlocal run
        if not so_far.records:
            run = _begins(request.key, so_far, end)
        elif run is not None:
            run.left(so_far)

    return tell


def _begins(key: str, so_far: Trace, end: Future[Trace]) -> Underway | None:
    if so_far.loaded.device.type != "cpu" or so_far.texts > 1 or pack.weight_bytes(so_far) <= pack.AT_ONCE_BYTES:
        return None
    made = [Future[Thumbnail]() for place in pack.places(so_far) for _ in place.records]
    run = Underway(end, _pool.submit(pack.outline, so_far, key), made, so_far)  # the pass need not wait for it
    with _lock:
        _going[key], _made[key] = run, made
        _made.move_to_end(key)
        while len(_made) > MOST_RUNS:
            _made.popitem(last=False)

    def ended(_: Future[Trace]) -> None:
        run.so_far = None
        with _lock:
            if _going.get(key) is run:
                del _going[key]
            if end.exception() is not None and _made.get(key) is made:
                del _made[key]

    end.add_done_callback(ended)
    return run


def begun(key: str) -> Underway | None:
    """The run of this key, where it goes on and is large."""
    with _lock:
        run = _going.get(key)
    return run if run is not None and run.header.done() else None


def take(request: Request) -> list[Thumbnail]:
    """The thumbnails of a run that has ended, one for each record; none where they were not made, or were taken before."""
    with _lock:
        made = _made.pop(request.key, [])
    return [future.result() for future in made]


async def parts(run: Underway, record: int, head: int, query: int | None) -> AsyncIterator[bytes]:
    """Messages, each behind its length as a u32, as the pass goes on: every record's thumbnails, {site, layer, at, how}.

    Behind those of `record` come its map and a row of it, as the routes would answer, {path, params}; and {ms} when the run
    has ended. They stop without it where the run does.
    """
    ended = asyncio.wrap_future(run.end)
    ended.add_done_callback(lambda future: future.cancelled() or future.exception())  # somebody else is told of it

    async def have(future: Future[Any]) -> bool:
        """Whether it is there, now or later."""
        made = asyncio.wrap_future(future)
        await asyncio.wait({made, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not made.done() and ended.exception() is None:
            await asyncio.wait({made})
        return made.done() and made.exception() is None

    layers = {i: (site, layer) for site in run.header.result()["sites"] for layer, i in enumerate(site["records"])}
    for i, future in enumerate(run.made):
        if not await have(future):
            return
        site, layer = layers[i]
        at, data = pack.drawn(site, layer, future.result())
        yield _framed({"site": site["id"], "layer": layer, "at": at, "how": future.result().how}, data)
        if i == record:
            so_far = run.so_far
            if so_far is None and run.end.exception() is not None:
                return
            opened = _pool.submit(lens.opened, so_far or run.end.result(), record, head, query)
            if not await have(opened):
                return
            for path, params, message in opened.result():
                yield _framed({"path": path, "params": params}, message)
    await asyncio.wait({ended})
    if ended.exception() is None:
        yield _framed({"ms": ended.result().seconds * 1000}, b"")


def _framed(header: dict[str, Any], body: bytes) -> bytes:
    message = pack.pack(header, body)
    return struct.pack("<I", len(message)) + message
