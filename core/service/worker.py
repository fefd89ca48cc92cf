"""Worker: what all questions of the Service share. It starts and awaits runs and computes answers in queues, threads and a cache."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
from torch import Tensor

from .. import device
from ..edits import Intervention
from ..errors import HeadlightError
from ..run.attention import AttentionRecord
from ..run.predictions import Predictions
from ..run.recorder import HeldTensor
from ..run.request import Request
from ..trace import Trace
from .engine import OWN, Engine
from .facts import Site, SiteId, run_sites
from .queue import Askers, Slots, TaskQueue, asked_by, current_askers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def into_loop(call: Callable[[*Ts], object]) -> Callable[[*Ts], None]:
    """Wrap a callback so that any thread may call it: it runs in the current event loop, and is ignored once that loop is closed."""
    loop = asyncio.get_running_loop()

    def from_thread(*args: *Ts) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call, *args)

    return from_thread


async def wait_in_loop(future: Future[T]) -> T:
    """The result of another thread's future. Unlike asyncio.wrap_future, cancelling this wait does not cancel the future."""
    if not future.done():
        done = asyncio.Event()
        notify = into_loop(done.set)
        future.add_done_callback(lambda _: notify())
        await done.wait()
    return future.result()


async def wait_or_cancel(future: Future[T]) -> T:
    """Like wait_in_loop(), for a future without other waiters: it is cancelled with the caller, unless its task has started."""
    try:
        return await wait_in_loop(future)
    finally:
        future.cancel()


class AnswerCache:
    """Computed answers by key, up to `max_bytes`; the least recently used are dropped first. Thread-safe, for any number of loops.

    `size` returns the bytes of a value. `version` returns whatever else the value of a key depends on: a value of another version is
    computed again. Concurrent requests for the same key share one computation.
    """

    def __init__(
        self,
        max_bytes: int,
        size: Callable[[Any], int],
        version: Callable[[Hashable], Hashable] = lambda _: None,
    ) -> None:
        self.max_bytes, self.size, self.version, self.nbytes = max_bytes, size, version, 0
        self._values: OrderedDict[Hashable, tuple[Any, int, Hashable]] = OrderedDict()  # (value, bytes, version)
        self._computing: dict[Hashable, tuple[Future[Any], Askers]] = {}
        self._lock = threading.Lock()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The cached value, or a new one from make(). Errors of make() are raised by all waiting calls, and are not cached."""
        while True:
            version = self.version(key)
            with self._lock:
                if key in self._values and self._values[key][2] == version:
                    self._values.move_to_end(key)
                    return self._values[key][0]
                is_mine = (key, version) not in self._computing
                if is_mine:
                    self._computing[key, version] = Future(), Askers(parent=current_askers())
                future, askers = self._computing[key, version]
                if not is_mine:
                    askers.join(current_askers())
            if is_mine:
                with asked_by(askers):
                    return await self._compute(key, version, future, make)
            with suppress(_Abandoned):
                return await wait_in_loop(future)

    def known(self, key: Hashable) -> Any:
        """The cached value, or None."""
        version = self.version(key)
        with self._lock:
            return self._values[key][0] if key in self._values and self._values[key][2] == version else None

    def put(self, key: Hashable, value: object) -> None:
        """Store a value that was computed elsewhere."""
        self._put(key, value, self.version(key))

    def _put(self, key: Hashable, value: object, version: Hashable) -> None:
        size = self.size(value)
        with self._lock:
            if key in self._values:
                self.nbytes -= self._values.pop(key)[1]
            self._values[key] = (value, size, version)
            self.nbytes += size
            while self.nbytes > self.max_bytes:
                self.nbytes -= self._values.popitem(last=False)[1][1]

    async def _compute(
        self, key: Hashable, version: Hashable, future: Future[Any], make: Callable[[], Awaitable[T]]
    ) -> T:
        try:
            value = await make()
            self._put(key, value, version)
        except BaseException as error:
            with self._lock:
                del self._computing[key, version]
            # If only this caller was cancelled, one of the other waiters starts the computation again.
            future.set_exception(_Abandoned() if isinstance(error, asyncio.CancelledError) else error)
            raise
        with self._lock:
            del self._computing[key, version]
        future.set_result(value)
        return value


class _Abandoned(Exception):
    """The caller that computed this value was cancelled."""


CACHE_BYTES = 64 << 20  # of answers that took long to compute
WORD_BYTES = 160  # of a predicted word: its id, spelling and probability
MAX_WAITING = 512  # answers that wait for a thread
MANY = "{n} parts of pictures are waiting already. Try again in a few seconds."
SHORTER = "Try a shorter text, or a smaller part of the map."


class Worker:
    """Base of the classes that answer the questions of one topic."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        self.engine = engine
        # Torch work leaves a core to the server. Quick answers never wait for slow ones.
        workers = workers or max(1, cores() - 1)
        self._quick = TaskQueue("quick", workers, engine.usage)
        self._slow = TaskQueue("slow", workers, engine.usage)
        self._slots = Slots(MAX_WAITING, MANY, OWN)
        self._kept = AnswerCache(CACHE_BYTES, nbytes, engine.weight_versions)

    async def submit(self, request: Request) -> str:
        """Start or join a run and return its key. Raises Busy; follow() raises all other errors."""
        self.engine.begin(request)
        return request.key

    async def release(self, key: str) -> None:
        """The viewer moved on; the run need not be kept for them. Unknown keys are ignored."""
        self.engine.release(key)

    async def edited(self, key: str, interventions: Sequence[Intervention]) -> str:
        """Start or join the same run with additional interventions, and return its key.

        It reads the same tokens: a target that an encoder-decoder generated is now given to it.
        """
        request = await self.edited_request(key, interventions)
        self.engine.begin(request, background=True)
        return request.key

    async def edited_request(self, key: str, interventions: Sequence[Intervention]) -> Request:
        """The request of the run that edited() starts. Nothing is started."""
        request, run = self.engine.request_of(key), await self._run(key)
        # A classifier whose decoder reads the text again was given no target, and is given none now.
        rereads = run.spec.classes is not None and request.target_text is None
        written = None if run.target is None or rereads else run.target.text
        source = request.texts if written is not None or not request.write else (run.source.text, *request.texts[1:])
        return replace(
            request,
            texts=source,
            target_text=request.target_text if written is None else written,
            interventions=(*request.interventions, *interventions),
            write=0,
        )

    # how answers are computed

    async def _run(self, key: str) -> Trace:
        """The trace of a key, as seen from its first text. The caller counts as a waiter of the run."""
        handle = self.engine.submit(self.engine.request_of(key))
        try:
            return (await wait_in_loop(handle.future)).text(0)
        finally:
            handle.cancel()

    async def _rerun(self, key: str, make: Callable[[Trace], T], background: bool = False) -> T:
        """Compute something that runs the model again, in the queue of passes. Raises Refused for positions outside the run."""
        run = await self._run(key)
        try:
            return await self._pass(partial(make, run), background)
        except IndexError as error:
            raise HeadlightError(f"This run has no {error}.") from None

    async def _rerun_once(self, name: Hashable, key: str, make: Callable[[Trace], T], background: bool = False) -> T:
        """Like _rerun(), cached under `name`."""
        return await self._kept.get(name, lambda: self._rerun(key, make, background))

    async def _pass(self, make: Callable[[], T], background: bool = False) -> T:
        """Call a function that runs a model in the queue of passes."""
        return await wait_or_cancel(self.engine.schedule(make, background))

    async def _work(self, make: Callable[[], T], slow: bool = False) -> T:
        """Compute something that only reads the tensors of a run, in a thread of one of the two pools."""
        release_slot = self._slots.acquire(current_askers())
        future = (self._slow if slow else self._quick).submit(partial(self._guarded, make))
        future.add_done_callback(lambda _: release_slot())
        return await wait_or_cancel(future)

    async def _work_once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Compute something slow that only reads tensors, cached under `name`."""
        return await self._kept.get(name, lambda: self._work(make, slow=True))

    def _guarded(self, make: Callable[[], T]) -> T:
        with device.oom_guard(self.engine.device, "This picture", SHORTER):
            return make()

    # parts of a run

    async def _record(self, key: str, record: int) -> AttentionRecord:
        run = await self._run(key)
        check_below("record", record, len(run.records))
        return run.attention[record]

    async def _site(self, key: str, site: SiteId) -> tuple[Trace, Site]:
        run = await self._run(key)
        sites = {found.id: found for found in run_sites(run)}
        if site not in sites:
            raise HeadlightError(f"This run has no attention called {site!r}. It has {', '.join(sites)}.")
        return run, sites[site]

    async def _norms(self, key: str, run: Trace, record: int) -> Tensor:
        """[head, key]: norms of the projected values. For a long run this takes another pass."""

        async def make() -> Tensor:
            return await self._work((await self._with_values(run.attention[record])).value_norms, slow=True)

        return await self._kept.get(("norms", key, record), make)

    async def _with_values(self, record: AttentionRecord) -> AttentionRecord:
        """The record with its values, which another pass computes if the run is too long to hold them."""
        if isinstance(record.values, HeldTensor):
            return record
        return replace(record, values=HeldTensor(await self._pass(record.values)))


def check_below(what: str, value: int, n: int) -> None:
    """Raises Refused unless 0 ≤ value < n."""
    if not 0 <= value < n:
        raise HeadlightError(f"There is no {what} {value} in this run: they are counted from 0 to {n - 1}.")


def nbytes(value: object) -> int:
    """Approximate size of an answer."""
    if isinstance(value, Tensor | np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(nbytes, value))
    if isinstance(value, Predictions):
        return 2048 + WORD_BYTES * sum(map(len, value.ids))
    return 2048 + sum(
        part.nbytes for part in getattr(value, "__dict__", {}).values() if isinstance(part, Tensor | np.ndarray)
    )


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
