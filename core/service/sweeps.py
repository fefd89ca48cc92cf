"""Sweeps in batches: a few rows at a time in the queue of passes, so that no other run waits for a whole sweep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from ..errors import HeadlightError
from ..patching.counterfactual import Component
from ..patching.edited_runs import RowAnswers, Rows, together
from ..patching.head_sweeps import (
    AblateHeads,
    PatchHeads,
    Sweeping,
    SweepRequest,
    begin_edges,
    begin_heads,
    begin_patches,
)
from ..patching.path_patching import PathEdge
from ..patching.sentence_pairs import Pair
from ..read.swaps import Swap, swaps
from ..trace import Trace
from .engine import OWN, Engine
from .queue import Slots, current_askers
from .sweep_rows import (
    EstimatedParts,
    HeadNotes,
    PairRows,
    PartEstimates,
    PartRows,
    PartRuns,
    PartTests,
    PatchRequest,
    PathEdges,
    PathRequest,
    SweepPart,
    begin_pair,
    begin_parts,
    begin_path_runs,
    estimate_and_order,
    join_pairs,
    join_parts,
    notes_of,
    pair_requests,
    tests_of,
)
from .worker import AnswerCache, Worker, cores, into_loop

T = TypeVar("T")
Found = TypeVar("Found", SweepPart, PartRows, PathEdges, PairRows)
Publish = Callable[[Any], object]

TIME_SLICE_SECONDS = 0.05  # CPU time that a batch aims at: how long a visitor who types waits for it at most
MAX_CLOCK_SECONDS = 0.1  # wall-clock time, which is longer if others keep the processor busy
MIN_SLICE_SHARE = 0.5  # but never less than this share of the CPU time: batches of a row or two cost twice the work
# The same for a batch of components, whose rows cost far less together: a row joins at the layer that it changes.
PARTS_SECONDS, PARTS_SECONDS_ALONE = 0.1, 0.25
FIRST_PARTS = 10  # rows of their first batch: the strongest estimates
FIRST_ROWS_PER_SLICE = 2  # a row of a batch costs at most half of a pass of one text, whose products are small
MIN_ROWS = 4  # rows that are worth a core of their own
CACHE_BYTES = 16 << 20  # of finished sweeps
MAX_WAITING = 128  # running and queued sweeps
MANY = "{n} sweeps are waiting already. Try again in a few seconds."
LABEL_BYTES = 80  # of a token's label in memory, about
PLACE_BYTES = 200  # of a head, an edge or a component


@dataclass(eq=False)
class RunningSweep:
    """A sweep in progress: its parts so far, and the subscribers of the next ones, each in an event loop of its own."""

    parts: list[Any] = field(default_factory=list)
    subscribers: list[Publish] = field(default_factory=list)


class LocalSweeps(Worker):
    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._sweep_cache = AnswerCache(CACHE_BYTES, sweep_bytes, engine.weight_versions)
        self._other_cores = ThreadPoolExecutor(cores(), thread_name_prefix="sweep")
        self._sweep_lock = threading.Lock()
        self._sweep_slots = Slots(MAX_WAITING, MANY, OWN)
        self._running_sweeps: dict[Hashable, RunningSweep] = {}

    def sweep(self, key: str, asked: SweepRequest) -> AsyncGenerator[SweepPart]:
        """Effect of each of many single edits: every head ablated, every edge blocked, or every head patched from another run.

        Rows are sent as they are computed, in batches between the passes of all visitors. Finished sweeps are cached.
        """
        return self._follow((key, asked), lambda publish: self._run_sweep(key, asked, publish))

    async def part_estimates(self, key: str, asked: PatchRequest) -> PartEstimates:
        """First-order estimate of how each component changes the logit difference, and what part_rows() will run.

        Raises TextError for texts of unequal lengths, and TooLarge before anything runs.
        """
        return (await self._estimated(key, asked)).estimates

    def part_rows(self, key: str, asked: PatchRequest, only: Component | None = None) -> AsyncGenerator[PartRows]:
        """The next token with one head, MLP or residual stream position changed per row, the strongest estimates first.

        With `only`, a single component, which does not wait for the others.
        """
        name = (key, asked.other, asked, only)
        return self._follow(name, lambda publish: self._run_parts(key, asked, only, publish))

    async def part_tests(self, key: str, asked: PatchRequest, part: Component) -> PartTests:
        """One head or MLP zero-ablated, mean-ablated and, if there is another run, patched; and whether these tests agree."""
        name = (key, asked.other, asked, part, "tests")
        return await self._sweep_once(name, key, asked, lambda run, other: tests_of(run, other, asked, part))

    def path_edges(self, key: str, asked: PatchRequest, paths: PathRequest) -> AsyncGenerator[PathEdges]:
        """Path patching: effect of one head through one input of a later head, everything else frozen. One run for each path.

        Raises TextError for texts of unequal lengths, and TooLarge before anything runs.
        """
        name = (key, asked.other, asked, paths)
        return self._follow(name, lambda publish: self._run_paths(key, asked, paths, publish))

    async def head_notes(self, key: str, asked: PatchRequest) -> HeadNotes:
        """The token that each head attends to where it acts, and how much its output promotes or suppresses the two answers."""
        estimates = await self.part_estimates(key, asked)
        name = (key, asked.other, asked, "notes")
        return await self._sweep_once(name, key, asked, lambda run, _: notes_of(run, estimates))

    def pair_rows(self, key: str, pairs: tuple[Pair, ...]) -> AsyncGenerator[PairRows]:
        """Every head and MLP patched from the other text of each pair, one pair after the other, in the unedited model of this run.

        Raises TextError with the line of the first pair that cannot run, before any runs, and TooLarge before a pair that does
        not fit.
        """
        return self._follow((key, pairs), lambda publish: self._run_pairs(key, pairs, publish))

    async def swaps(self, key: str, n: int = 3) -> tuple[Swap, ...]:
        """The n single-word replacements that change the answer most, each verified by a run.

        Raises TextError for a model that is not a decoder that writes.
        """

        async def make() -> tuple[Swap, ...]:
            run = await self._run(key)
            with self._sweep_slot():
                trying, found = await self._sweep_pass(partial(swaps, run, n)), ()
                while (now := await self._sweep_pass(partial(next, trying, None))) is not None:
                    found = now.found
                return found

        return await self._sweep_cache.get((key, "swaps", n), make)

    # how they run

    async def _follow(self, name: Hashable, make: Callable[[Publish], Awaitable[Found]]) -> AsyncGenerator[Found]:
        """Subscribe to a sweep, which is started if it is neither cached nor running. make(publish) returns the whole of it."""
        queue: asyncio.Queue[Found | None] = asyncio.Queue()
        subscriber = into_loop(queue.put_nowait)
        with self._sweep_lock:
            running = self._running_sweeps.setdefault(name, RunningSweep())
            running.subscribers.append(subscriber)
            for part in running.parts:  # started by another caller
                queue.put_nowait(part)

        async def start() -> Found:
            with self._sweep_lock:
                running.parts.clear()  # of a caller that started it and has left
            return await make(partial(self._publish, running))

        making = asyncio.ensure_future(self._sweep_cache.get(name, start))
        making.add_done_callback(lambda _: queue.put_nowait(None))
        first = 0
        try:
            while (part := await queue.get()) is not None:
                if part.first == first:  # otherwise it has been started again, and these rows were sent before
                    first += part.n
                    yield part
            whole = await making
            if first < whole.of:
                yield whole.rest(first)
        finally:
            making.cancel()
            with self._sweep_lock:
                running.subscribers.remove(subscriber)
                if not running.subscribers:
                    del self._running_sweeps[name]

    def _publish(self, running: RunningSweep, part: SweepPart | PartRows | PathEdges | PairRows) -> None:
        with self._sweep_lock:
            running.parts.append(part)
            subscribers = [*running.subscribers]
        for subscriber in subscribers:
            subscriber(part)

    async def _run_sweep(self, key: str, asked: SweepRequest, publish: Publish) -> SweepPart:
        run = await self._run(key)
        other = await self._run(asked.other) if isinstance(asked, PatchHeads) else None
        with self._sweep_slot():
            sweeping, fits = await self._sweep_pass(partial(timed, partial(start_sweep, run, other, asked)))
            n, most = sweeping.rows.n, sweeping.rows.most()
            done: list[RowAnswers] = []
            at, size = 0, max(1, int(FIRST_ROWS_PER_SLICE * fits))
            while at < n:
                stop = min(n, at + min(size, most))
                answers, fits = await self._sweep_pass(partial(self._sweep_rows, sweeping.rows, at, stop))
                publish(SweepPart(at, n, sweeping.part(answers, at)))
                size = next_batch_size(size, stop - at, fits)
                done.append(answers)
                at = stop
            return SweepPart(0, n, sweeping.part(together(done), 0))

    def _sweep_rows(self, rows: Rows, start: int, stop: int) -> tuple[RowAnswers, float]:
        """The answers of these rows, and how many times they would fit into a time slice. Call it in the queue of passes.

        If no other sweep runs, it also uses the cores that torch leaves free, which halves its time; otherwise they are left to the
        server.
        """
        is_alone = self._sweep_slots.taken == 1 and rows.forward.loaded.device.type == "cpu"
        most = min(cores() // torch.get_num_threads(), (stop - start) // MIN_ROWS) if is_alone else 1
        shares = rows.shares(start, stop, max(1, most))
        others = [self._other_cores.submit(timed, partial(rows.run, *share)) for share in shares[1:]]
        try:
            made = [timed(partial(rows.run, *shares[0]))]
        finally:
            wait(others)  # the task ends with all of its work
        made += [future.result() for future in others]
        return together([answers for answers, _ in made]), min(fits for _, fits in made)

    async def _estimated(self, key: str, request: PatchRequest) -> EstimatedParts:
        name = (key, request.other, request)
        return await self._sweep_once(name, key, request, lambda run, other: estimate_and_order(run, other, request))

    async def _run_parts(self, key: str, request: PatchRequest, only: Component | None, publish: Publish) -> PartRows:
        known = await self._estimated(key, request)
        run, other = await self._both_runs(key, request)
        groups = known.groups if only is None else ((only,),)
        with self._sweep_slot():
            runs = await self._sweep_pass(partial(begin_parts, run, other, request, known.estimates, groups))
            return join_parts([rows async for rows in self._batches(runs, publish)])

    async def _batches(self, runs: PartRuns, publish: Publish) -> AsyncGenerator[PartRows]:
        """The rows of all components, one batch for each pass."""
        at, size = 0, FIRST_PARTS
        while batch := runs.batch(at, size):
            rows, fits = await self._sweep_pass(partial(timed, partial(runs.run, batch, at)))
            publish(rows)
            seconds = PARTS_SECONDS_ALONE if self._sweep_slots.taken == 1 else PARTS_SECONDS
            size = max(MIN_ROWS, next_batch_size(size, rows.n, fits * seconds / TIME_SLICE_SECONDS))
            at += rows.n
            yield rows

    async def _run_pairs(self, key: str, pairs: tuple[Pair, ...], publish: Publish) -> PairRows:
        run = await self._run(key)
        with self._sweep_slot():
            requests = await self._sweep_pass(partial(pair_requests, run, pairs))
            done: list[PairRows] = []
            for at, pair in enumerate(requests):
                runs = await self._sweep_pass(partial(begin_pair, run, pair, at))
                rows = [rows async for rows in self._batches(runs.runs, lambda rows: None)]
                done.append(PairRows(at, len(requests), (runs.changes(rows),)))
                publish(done[-1])
            return join_pairs(done)

    async def _run_paths(self, key: str, request: PatchRequest, paths: PathRequest, publish: Publish) -> PathEdges:
        run, other = await self._both_runs(key, request)
        if other is None:
            raise HeadlightError("Paths carry what is different in another sentence. Give one.")
        with self._sweep_slot():
            runs = await self._sweep_pass(partial(begin_path_runs, run, other, request, paths))
            done: list[PathEdge] = []
            while (batch := await self._sweep_pass(partial(next, runs.batches, None))) is not None:
                if batch:
                    publish(PathEdges(len(done), runs.of, batch))
                done += batch
            return PathEdges(0, runs.of, tuple(done))

    async def _sweep_once(
        self, name: Hashable, key: str, request: PatchRequest, make: Callable[[Trace, Trace | None], T]
    ) -> T:
        """make(run, other run) in the queue of passes, cached under `name`."""

        async def compute() -> T:
            run, other = await self._both_runs(key, request)
            with self._sweep_slot():
                return await self._sweep_pass(partial(make, run, other))

        return await self._sweep_cache.get(name, compute)

    async def _both_runs(self, key: str, request: PatchRequest) -> tuple[Trace, Trace | None]:
        run = await self._run(key)
        return run, None if request.other is None else await self._run(request.other)

    @contextmanager
    def _sweep_slot(self) -> Iterator[None]:
        """Hold one of the slots of sweeps. Raises Busy, and Refused for positions outside the run."""
        release_slot = self._sweep_slots.acquire(current_askers())
        try:
            yield
        except IndexError as error:
            raise HeadlightError(f"This run has no {error}.") from None
        finally:
            release_slot()

    async def _sweep_pass(self, make: Callable[[], T]) -> T:
        return await self._pass(make, background=True)


def start_sweep(run: Trace, other: Trace | None, asked: SweepRequest) -> Sweeping:
    """The sweep of a request."""
    if isinstance(asked, AblateHeads):
        return begin_heads(run, asked)
    if isinstance(asked, PatchHeads):
        assert other is not None
        return begin_patches(run, other, asked.where, asked.position, asked.token)
    return begin_edges(run, asked)


def next_batch_size(size: int, n_rows: int, fits: float) -> int:
    """Rows of the next batch, if a batch of n_rows would fit this many times into a time slice."""
    return max(1, min(4 * size, int(n_rows * fits)))


def timed(make: Callable[[], T]) -> tuple[T, float]:
    """The result of make(), and how many times it would fit into a time slice."""
    clock, work = time.perf_counter(), time.thread_time()
    made = make()
    work, clock = time.thread_time() - work, time.perf_counter() - clock
    by_work, by_clock = TIME_SLICE_SECONDS / max(work, 1e-4), MAX_CLOCK_SECONDS / max(clock, 1e-4)
    return made, min(by_work, max(by_clock, MIN_SLICE_SHARE * by_work))


def sweep_bytes(
    found: SweepPart | PartRows | PathEdges | PairRows | PartTests | HeadNotes | EstimatedParts | tuple[Swap, ...],
) -> int:
    """Approximate size of an answer of Sweeps."""
    if isinstance(found, PathEdges | PartTests):
        return 2048 + (2 * PLACE_BYTES * found.n if isinstance(found, PathEdges) else 0)
    if isinstance(found, HeadNotes):
        return 2048 + sum(x.nbytes for x in (found.key, found.weight, found.first, found.pushes) if x is not None)
    if isinstance(found, tuple):
        return 2048 + sum(PLACE_BYTES + 4 * len(swap.text) for swap in found)
    if isinstance(found, PairRows):
        numbers = sum(one.heads.nbytes + one.mlps.nbytes for one in found.pairs)
        return 2048 + numbers + sum(PLACE_BYTES + 4 * len(one.pair.text + one.pair.other) for one in found.pairs)
    if isinstance(found, EstimatedParts):
        known = found.estimates
        numbers = sum(x.nbytes for x in (known.heads, known.mlps, known.resid) if x is not None)
        return 2048 + numbers + PLACE_BYTES * known.of
    if isinstance(found, PartRows):
        numbers = found.log_p.nbytes + found.top.nbytes + found.top_p.nbytes
        return 2048 + numbers + PLACE_BYTES * found.n + LABEL_BYTES * len(found.labels)
    sweep = found.sweep
    return 2048 + sweep.after.nbytes + PLACE_BYTES * len(sweep.places) + LABEL_BYTES * len(sweep.labels)
