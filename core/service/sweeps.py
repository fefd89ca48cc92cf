"""Sweeps in small turns: a batch of rows at a time among the passes of everybody, so that no run waits for a whole sweep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from ..errors import Refused
from ..read.swaps import Swap, swaps
from ..run.trace import Trace
from ..sweep.ablations import RowAnswers, Rows, together
from ..sweep.pairs import Pair
from ..sweep.part import Part
from ..sweep.paths import PathEdge
from ..sweep.sweeps import Asked, PatchHeads, SilenceHeads, Sweeping, begin_edges, begin_heads, begin_patches
from .engine import OWN
from .event_loop import AnswerCache, into_loop, wait_or_cancel
from .queue import Slots, current_askers
from .sweep_rows import (
    HeadNotes,
    Ordered,
    PairRows,
    PartEstimates,
    PartRows,
    PartRuns,
    PartTests,
    PatchRequest,
    PathEdges,
    PathRequest,
    SweepPart,
    asked_pairs,
    begin_parts,
    begin_path_runs,
    notes_of,
    opened_pair,
    ordered,
    pairs_together,
    tests_of,
)
from .sweep_rows import together as parts_together
from .worker import cores

T = TypeVar("T")
Found = TypeVar("Found", SweepPart, PartRows, PathEdges, PairRows)

TIME_SLICE_SECONDS = (
    0.05  # seconds of work that one batch of a sweep is meant to be: what somebody who types waits for it at most
)
LONGEST = 0.1  # seconds by the clock, where others keep the processor busy
# Seconds of a batch of parts, which cost far less together: rows join it after the layer that each changes.
GROWING, GROWING_ALONE = 0.1, 0.25
FIRST_PARTS = 10  # rows of their first batch: the strongest estimates
LEAST = 0.5  # of a turn's work that a batch is all the same: batches of a row or two cost twice the work
FIRST = 2  # rows of a batch cost at most half of a pass of one text, which has little to multiply at a time
FEWEST = 4  # rows that are worth a core of their own
KEPT_BYTES = 16 << 20  # of sweeps that are done
MOST_WAITING = 128  # sweeps that have start_sweep or wait
MANY = "{n} sweeps are waiting already. Try again in a few seconds."
LABEL_BYTES = 80  # of a token's name in memory, about
PLACE_BYTES = 200  # of a head, a look or a part


@dataclass(eq=False)
class RunningSweep:
    """A sweep with listeners: its parts so far, and who is told of the next, each in a loop of his own."""

    parts: list[Any] = field(default_factory=list)
    subscribers: list[Callable[[Any], object]] = field(default_factory=list)


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
        self._beside = ThreadPoolExecutor(cores(), thread_name_prefix="sweep-beside")
        self._lock = threading.Lock()
        self._slots = Slots(MOST_WAITING, MANY, OWN)
        self._coming: dict[Hashable, RunningSweep] = {}

    def parts(self, key: str, asked: Asked) -> AsyncGenerator[SweepPart]:
        """What is found, as soon as it is; all of it at once where it is known. Raises Refused in its kinds."""
        return self._follow((key, asked), lambda coming: self._made(key, asked, coming))

    async def estimates(self, key: str, asked: PatchRequest) -> PartEstimates:
        """All that is known of parts before they run. Raises Refused in its kinds."""
        return (await self._ordered(key, asked)).estimates

    def part_rows(self, key: str, asked: PatchRequest, only: Part | None) -> AsyncGenerator[PartRows]:
        """Rows of parts, as parts() gives those of a sweep."""
        name = (key, asked.other, asked, only)
        return self._follow(name, lambda coming: self._patched(key, asked, only, coming))

    def path_edges(self, key: str, asked: PatchRequest, paths: PathRequest) -> AsyncGenerator[PathEdges]:
        """Paths between heads, as parts() gives the rows of a sweep."""
        name = (key, asked.other, asked, paths)
        return self._follow(name, lambda coming: self._pathed(key, asked, paths, coming))

    async def tests(self, key: str, asked: PatchRequest, part: Part) -> PartTests:
        """Three tests of a part. Raises Refused in its kinds."""
        return await self._compute_once(
            (key, asked.other, asked, part, "tests"), key, asked, partial(tests_of, part=part)
        )

    async def notes(self, key: str, asked: PatchRequest) -> HeadNotes:
        """The tokens that heads read, and the words that they push. Raises Refused in its kinds."""
        known = (await self._ordered(key, asked)).estimates

        def make(run: Trace, _other: Trace | None, _asked: PatchRequest) -> HeadNotes:
            return notes_of(run, known)

        return await self._compute_once((key, asked.other, asked, "notes"), key, asked, make)

    def pair_rows(self, key: str, pairs: tuple[Pair, ...]) -> AsyncGenerator[PairRows]:
        """A set of pairs, each as soon as all of its parts have run."""
        return self._follow((key, pairs), lambda coming: self._paired(key, pairs, coming))

    async def swaps(self, key: str, n: int) -> tuple[Swap, ...]:
        """Words to swap. Raises Refused in its kinds."""

        async def make() -> tuple[Swap, ...]:
            run = await self._run_of(key)
            with self._place():
                trying, found = await self._turn(partial(swaps, run, n)), ()
                while (now := await self._turn(partial(next, trying, None))) is not None:
                    found = now.found
                return found

        return await self._kept.get((key, "swaps", n), make)

    async def _follow(self, name: Hashable, make: Callable[[RunningSweep], Awaitable[Found]]) -> AsyncGenerator[Found]:
        found: asyncio.Queue[Found | None] = asyncio.Queue()
        hear = into_loop(found.put_nowait)
        with self._lock:
            coming = self._coming.setdefault(name, RunningSweep())
            coming.subscribers.append(hear)
            for part in coming.parts:  # another caller has start_sweep it
                found.put_nowait(part)
        making = asyncio.ensure_future(self._kept.get(name, lambda: make(coming)))
        making.add_done_callback(lambda _: found.put_nowait(None))
        first = 0
        try:
            while (part := await found.get()) is not None:
                if (
                    part.first == first
                ):  # not so where whoever had start_sweep it has left, and it was start_sweep again
                    first += part.n
                    yield part
            whole = await making
            if first < whole.of:
                yield whole.rest(first)
        finally:
            making.cancel()
            with self._lock:
                coming.subscribers.remove(hear)
                if not coming.subscribers:
                    del self._coming[name]

    async def _made(self, key: str, asked: Asked, coming: RunningSweep) -> SweepPart:
        with self._lock:
            coming.parts.clear()
        run = await self._run_of(key)
        other = await self._run_of(asked.other) if isinstance(asked, PatchHeads) else None
        with self._place():
            sweeping, turns = await self._turn(partial(timed, partial(start_sweep, run, other, asked)))
            n, most = sweeping.rows.n, sweeping.rows.most()
            done: list[RowAnswers] = []
            at, size = 0, max(1, int(FIRST * turns))
            while at < n:
                stop = min(n, at + min(size, most))
                outcome, turns = await self._turn(partial(self._rows, sweeping.rows, at, stop))
                self._publish(coming, SweepPart(at, n, sweeping.part(outcome, at)))
                size = next_batch_size(size, stop - at, turns)
                done.append(outcome)
                at = stop
            return SweepPart(0, n, sweeping.part(together(done), 0))

    async def _ordered(self, key: str, asked: PatchRequest) -> Ordered:
        async def make() -> Ordered:
            run, other = await self._pair(key, asked)
            with self._place():
                return await self._turn(partial(ordered, run, other, asked))

        return await self._kept.get((key, asked.other, asked), make)

    async def _patched(self, key: str, asked: PatchRequest, only: Part | None, coming: RunningSweep) -> PartRows:
        with self._lock:
            coming.parts.clear()
        known = await self._ordered(key, asked)
        run, other = await self._pair(key, asked)
        groups = known.groups if only is None else ((only,),)
        with self._place():
            begin = partial(begin_parts, run, other, asked, known.estimates, groups)
            runs = await self._turn(begin)
            return parts_together(
                [rows async for rows in self._batches(runs, lambda rows: self._publish(coming, rows))]
            )

    async def _batches(self, runs: PartRuns, tell: Callable[[PartRows], object]) -> AsyncGenerator[PartRows]:
        """The rows of all parts, a batch in each turn."""
        at, size = 0, FIRST_PARTS
        while batch := runs.batch(at, size):
            rows, turns = await self._turn(partial(timed, partial(runs.run, batch, at)))
            tell(rows)
            alone = GROWING_ALONE if self._slots.taken == 1 else GROWING
            size = max(FEWEST, next_batch_size(size, rows.n, turns * alone / TIME_SLICE_SECONDS))
            at += rows.n
            yield rows

    async def _paired(self, key: str, pairs: tuple[Pair, ...], coming: RunningSweep) -> PairRows:
        with self._lock:
            coming.parts.clear()
        run = await self._run_of(key)
        with self._place():
            asked = await self._turn(partial(asked_pairs, run, pairs))
            done: list[PairRows] = []
            for at, pair in enumerate(asked):
                opened = await self._turn(partial(opened_pair, run, pair, at))
                rows = [rows async for rows in self._batches(opened.runs, lambda rows: None)]
                done.append(PairRows(at, len(asked), (opened.changes(rows),)))
                self._publish(coming, done[-1])
            return pairs_together(done)

    async def _pathed(self, key: str, asked: PatchRequest, paths: PathRequest, coming: RunningSweep) -> PathEdges:
        with self._lock:
            coming.parts.clear()
        run, other = await self._pair(key, asked)
        if other is None:
            raise Refused("Paths carry what is different in another sentence. Give one.")
        with self._place():
            runs = await self._turn(partial(begin_path_runs, run, other, asked, paths))
            done: list[PathEdge] = []
            while (batch := await self._turn(partial(next, runs.batches, None))) is not None:
                if batch:
                    self._publish(coming, PathEdges(len(done), runs.of, batch))
                done += batch
            return PathEdges(0, runs.of, tuple(done))

    async def _compute_once(
        self, name: Hashable, key: str, asked: PatchRequest, make: Callable[[Trace, Trace | None, PatchRequest], T]
    ) -> T:
        async def made() -> T:
            run, other = await self._pair(key, asked)
            with self._place():
                return await self._turn(partial(make, run, other, asked))

        return await self._kept.get(name, made)

    async def _pair(self, key: str, asked: PatchRequest) -> tuple[Trace, Trace | None]:
        run = await self._run_of(key)
        return run, None if asked.other is None else await self._run_of(asked.other)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """One of the places of sweeps. Raises Busy; and Refused for what the run does not have."""
        release_slot = self._slots.acquire(current_askers())
        try:
            yield
        except IndexError as error:
            raise Refused(f"This run has no {error}.") from None
        finally:
            release_slot()

    def _publish(self, coming: RunningSweep, part: SweepPart | PartRows | PathEdges | PairRows) -> None:
        with self._lock:
            coming.parts.append(part)
            subscribers = [*coming.subscribers]
        for hear in subscribers:
            hear(part)

    def _rows(self, rows: Rows, start: int, stop: int) -> tuple[RowAnswers, float]:
        """What these rows give, and how many times they would fit into one turn. In a turn.

        A sweep alone has the cores that torch leaves over as well, and takes half of the time; many leave them to the server.
        """
        alone = self._slots.taken == 1 and rows.forward.loaded.device.type == "cpu"
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
        return await wait_or_cancel(self._again(make))


def start_sweep(run: Trace, other: Trace | None, asked: Asked) -> Sweeping:
    """A sweep that is asked for."""
    if isinstance(asked, SilenceHeads):
        return begin_heads(run, asked)
    if isinstance(asked, PatchHeads):
        assert other is not None
        return begin_patches(run, other, asked.where, asked.position, asked.token)
    return begin_edges(run, asked)


def next_batch_size(size: int, ran: int, turns: float) -> int:
    """How many rows come next, where so many fitted so many times into a turn."""
    return max(1, min(4 * size, int(ran * turns)))


def timed(make: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and how many times it would fit into one turn."""
    clock, work = time.perf_counter(), time.thread_time()
    made = make()
    work, clock = time.thread_time() - work, time.perf_counter() - clock
    by_work, by_clock = TIME_SLICE_SECONDS / max(work, 1e-4), LONGEST / max(clock, 1e-4)
    return made, min(by_work, max(by_clock, LEAST * by_work))


def sweep_bytes(
    found: SweepPart | PartRows | PathEdges | PairRows | PartTests | HeadNotes | Ordered | tuple[Swap, ...],
) -> int:
    """About what a sweep takes."""
    if isinstance(found, PathEdges | PartTests):
        return 2048 + (2 * PLACE_BYTES * found.n if isinstance(found, PathEdges) else 0)
    if isinstance(found, HeadNotes):
        return 2048 + sum(x.nbytes for x in (found.key, found.weight, found.first, found.pushes) if x is not None)
    if isinstance(found, tuple):
        return 2048 + sum(PLACE_BYTES + 4 * len(swap.text) for swap in found)
    if isinstance(found, PairRows):
        numbers = sum(one.heads.nbytes + one.mlps.nbytes for one in found.pairs)
        return 2048 + numbers + sum(PLACE_BYTES + 4 * len(one.pair.text + one.pair.other) for one in found.pairs)
    if isinstance(found, Ordered):
        known = found.estimates
        numbers = sum(x.nbytes for x in (known.heads, known.mlps, known.resid) if x is not None)
        return 2048 + numbers + PLACE_BYTES * known.of
    if isinstance(found, PartRows):
        numbers = found.log_p.nbytes + found.top.nbytes + found.top_p.nbytes
        return 2048 + numbers + PLACE_BYTES * found.n + LABEL_BYTES * len(found.labels)
    sweep = found.sweep
    return 2048 + sweep.after.nbytes + PLACE_BYTES * len(sweep.places) + LABEL_BYTES * len(sweep.labels)
