"""Sweeps in small turns: a batch of rows at a time among the passes of everybody, so that no run waits for a whole sweep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import torch

from ..errors import Busy, Refused
from ..run.trace import Trace
from ..sweep.ablations import RowAnswers, Rows, together
from ..sweep.sweeps import Asked, PatchHeads, SilenceHeads, Sweeping, begin_edges, begin_heads, begin_patches
from .answer_cache import AnswerCache
from .answers import SweepPart
from .arrival import arrival, into_loop
from .worker import cores

T = TypeVar("T")

TURN = 0.05  # seconds of work that one batch of a sweep is meant to be: what somebody who types waits for it at most
LONGEST = 0.1  # seconds by the clock, where others keep the processor busy
LEAST = 0.5  # of a turn's work that a batch is all the same: batches of a row or two cost twice the work
FIRST = 2  # rows of a batch cost at most half of a pass of one text, which has little to multiply at a time
FEWEST = 4  # rows that are worth a core of their own
KEPT_BYTES = 16 << 20  # of sweeps that are done
MOST_WAITING = 128  # sweeps that have begun or wait
LABEL_BYTES = 80  # of a token's name in memory, about


@dataclass(eq=False)
class SweepUnderWay:
    """A sweep with listeners: its parts so far, and who is told of the next, each in a loop of his own."""

    parts: list[SweepPart] = field(default_factory=list)
    hearers: list[Callable[[SweepPart], object]] = field(default_factory=list)


class Sweeps:
    """The sweeps of a process. `again` runs something in its turn among the passes, `run_of` gives the trace of a key,
    and `weights` whatever else an answer depends on."""

    def __init__(
        self,
        again: Callable[[Callable[[], Any]], Future[Any]],
        run_of: Callable[[str], Awaitable[Trace]],
        weights: Callable[[Hashable], Hashable],
    ) -> None:
        self._again, self._run_of = again, run_of
        self._kept = AnswerCache(KEPT_BYTES, sweep_bytes, weights)
        self._turns = ThreadPoolExecutor(
            1, thread_name_prefix="sweep"
        )  # one batch of all sweeps waits for a pass at a time
        self._beside = ThreadPoolExecutor(cores(), thread_name_prefix="sweep-beside")
        self._lock, self._waiting = threading.Lock(), 0
        self._coming: dict[tuple[str, Asked], SweepUnderWay] = {}

    async def parts(self, key: str, asked: Asked) -> AsyncGenerator[SweepPart]:
        """What is found, as soon as it is; all of it at once where it is known. Raises Refused in its kinds."""
        found: asyncio.Queue[SweepPart | None] = asyncio.Queue()
        name, hear = (key, asked), into_loop(found.put_nowait)
        with self._lock:
            coming = self._coming.setdefault(name, SweepUnderWay())
            coming.hearers.append(hear)
            for part in coming.parts:  # another caller has begun it
                found.put_nowait(part)
        making = asyncio.ensure_future(self._kept.get(name, lambda: self._made(key, asked, coming)))
        making.add_done_callback(lambda _: found.put_nowait(None))
        first = 0
        try:
            while (part := await found.get()) is not None:
                if part.first == first:  # not so where whoever had begun it has left, and it was begun again
                    first += part.sweep.after.n_rows
                    yield part
            whole = await making
            if first < whole.of:
                yield rest(whole, first)
        finally:
            making.cancel()
            with self._lock:
                coming.hearers.remove(hear)
                if not coming.hearers:
                    del self._coming[name]

    async def _made(self, key: str, asked: Asked, coming: SweepUnderWay) -> SweepPart:
        with self._lock:
            coming.parts.clear()
        run = await self._run_of(key)
        other = await self._run_of(asked.other) if isinstance(asked, PatchHeads) else None
        with self._lock:
            if self._waiting >= MOST_WAITING:
                raise Busy(f"{self._waiting} sweeps are waiting already. Try again in a few seconds.")
            self._waiting += 1
        try:
            sweeping, turns = await self._turn(partial(timed, partial(begun, run, other, asked)))
            n, most = sweeping.rows.n, sweeping.rows.most()
            done: list[RowAnswers] = []
            at, size = 0, max(1, int(FIRST * turns))
            while at < n:
                stop = min(n, at + min(size, most))
                outcome, turns = await self._turn(partial(self._rows, sweeping.rows, at, stop))
                self._tell(coming, SweepPart(at, n, sweeping.part(outcome, at)))
                size = max(1, min(4 * size, int((stop - at) * turns)))
                done.append(outcome)
                at = stop
            return SweepPart(0, n, sweeping.part(together(done), 0))
        except IndexError as error:
            raise Refused(f"This run has no {error}.") from None
        finally:
            with self._lock:
                self._waiting -= 1

    def _tell(self, coming: SweepUnderWay, part: SweepPart) -> None:
        with self._lock:
            coming.parts.append(part)
            hearers = [*coming.hearers]
        for hear in hearers:
            hear(part)

    def _rows(self, rows: Rows, start: int, stop: int) -> tuple[RowAnswers, float]:
        """What these rows give, and how many times they would fit into one turn. In a turn.

        A sweep alone has the cores that torch leaves over as well, and takes half of the time; many leave them to the server.
        """
        alone = self._waiting == 1 and rows.forward.loaded.device.type == "cpu"
        most = min(cores() // torch.get_num_threads(), (stop - start) // FEWEST) if alone else 1
        parts = rows.shares(start, stop, max(1, most))
        beside = [self._beside.submit(timed, partial(rows.run, *part)) for part in parts[1:]]
        try:
            made = [timed(partial(rows.run, *parts[0]))]
        finally:
            wait(beside)  # the turn is over when all of it is
        made += [future.result() for future in beside]
        return together([outcome for outcome, _ in made]), min(turns for _, turns in made)

    async def _turn(self, make: Callable[[], T]) -> T:
        return await arrival(self._turns.submit(lambda: self._again(make).result()))


def begun(run: Trace, other: Trace | None, asked: Asked) -> Sweeping:
    """A sweep that is asked for."""
    if isinstance(asked, SilenceHeads):
        return begin_heads(run, asked)
    if isinstance(asked, PatchHeads):
        assert other is not None
        return begin_patches(run, other, asked.where, asked.position, asked.token)
    return begin_edges(run, asked)


def rest(whole: SweepPart, first: int) -> SweepPart:
    """The rows of a whole sweep from `first` on."""
    sweep = whole.sweep
    lengths = None if sweep.lengths is None else sweep.lengths[first:]
    after = sweep.after[first:]
    return SweepPart(first, whole.of, replace(sweep, places=sweep.places[first:], after=after, lengths=lengths))


def timed(make: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and how many times it would fit into one turn."""
    clock, work = time.perf_counter(), time.thread_time()
    made = make()
    work, clock = time.thread_time() - work, time.perf_counter() - clock
    by_work, by_clock = TURN / max(work, 1e-4), LONGEST / max(clock, 1e-4)
    return made, min(by_work, max(by_clock, LEAST * by_work))


def sweep_bytes(part: SweepPart) -> int:
    """About what a sweep takes."""
    sweep = part.sweep
    return 2048 + sweep.after.nbytes + 200 * len(sweep.places) + LABEL_BYTES * len(sweep.labels)
