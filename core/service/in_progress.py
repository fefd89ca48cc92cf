"""What there is to see of a run that goes on: its facts, and each layer's thumbnails once the pass has left it.

A pass leaves a core to the server, which has nothing to do until it ends. What is drawn by then need not be waited for
afterwards, and a visitor sees the layers come.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ..run.request import Request
from ..trace import Trace
from .answers import Facts
from .arrival import arrival
from .facts import facts_of
from .maps.answers import HeadDone, LayerDone, MapTransform, RunDone, Thumbnails
from .maps.compute import Map, row, tile
from .maps.heads import thumbnails_of
from .turns import Turns, Usage

AT_ONCE = 150_000  # weights; of a run that has no more nothing is shown before it ends, since all of them are sent then
MOST_RUNS = 8  # whose thumbnails wait for somebody to take them


@dataclass(eq=False)
class RunInProgress:
    """One run that is large enough to be shown in parts."""

    end: Future[Trace]
    facts: Future[Facts]
    made: list[Future[Thumbnails]]  # of each record, in the order of the pass
    so_far: Trace | None  # none once it has ended: nobody may hold its queries and keys any longer


class RunsInProgress:
    """The runs of one engine that go on, and what was drawn of those that have ended until somebody takes it."""

    def __init__(self, usage: Usage | None = None) -> None:
        self._turns = Turns("live", 1, usage or Usage())
        self._lock = threading.Lock()
        self._runs: dict[str, RunInProgress] = {}  # by the request's key, for as long as the run goes on
        self._made: OrderedDict[str, list[Future[Thumbnails]]] = OrderedDict()  # until somebody takes them

    def watch(
        self, request: Request, end: Future[Trace], changed: Callable[[], object] = lambda: None
    ) -> Callable[[Trace], None]:
        """What an engine is to tell how far this run has come. `changed` is called when there is something of it to see.

        Nothing is made of a small run, whose every weight is sent, nor on a GPU, where it would only take turns with the pass.
        """
        run: RunInProgress | None = None
        begun = False

        def tell(so_far: Trace) -> None:
            nonlocal run, begun
            if not begun:  # a text that is read in parts has no records until its last one
                run, begun = self._begin(request.key, end, changed, so_far), True
            elif run is not None and so_far.records:
                run.so_far = so_far
                at = len(so_far.records) - 1
                self._turns.add(partial(_fulfil, run.made[at], partial(thumbnails_of, so_far.attention[at])))

        return tell

    def _begin(
        self, key: str, end: Future[Trace], changed: Callable[[], object], so_far: Trace
    ) -> RunInProgress | None:
        if so_far.loaded.device.type != "cpu" or so_far.texts > 1:
            return None
        facts = facts_of(so_far, key)
        if facts.weights <= AT_ONCE:
            return None
        made = [Future[Thumbnails]() for _ in facts.records]
        run = RunInProgress(end, Future(), made, so_far)
        with self._lock:
            self._runs[key], self._made[key] = run, made
            self._made.move_to_end(key)
            while len(self._made) > MOST_RUNS:
                self._made.popitem(last=False)
        self._turns.add(partial(_fulfil, run.facts, partial(_with_labels, facts)))
        run.facts.add_done_callback(lambda _: changed())

        def ended(_: Future[Trace]) -> None:
            run.so_far = None
            with self._lock:
                if self._runs.get(key) is run:
                    del self._runs[key]
                if end.exception() is not None and self._made.get(key) is made:
                    del self._made[key]

        end.add_done_callback(ended)
        return run

    def run(self, key: str) -> RunInProgress | None:
        """The run of this key, where it goes on and is large."""
        with self._lock:
            run = self._runs.get(key)
        return run if run is not None and run.facts.done() else None

    def take(self, key: str) -> list[Future[Thumbnails]]:
        """The thumbnails of a run that has ended, one for each record; none where they were not made, or were taken before."""
        with self._lock:
            return self._made.pop(key, [])

    async def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        """Every record's thumbnails as the pass goes on; behind those of `record` its map and a row of it; then the end.

        They stop without an end where the run does, and where there is nothing to come of it.
        """
        if (run := self.run(key)) is None:
            return
        for at, made in enumerate(run.made):
            if not await _is_made(made, run.end):
                return
            yield LayerDone(at, made.result())
            if at == record:
                so_far = run.so_far
                if so_far is None and run.end.exception() is not None:
                    return
                opened: Future[HeadDone] = Future()
                make = partial(_opened, so_far or run.end.result(), record, head, query)
                self._turns.add(partial(_fulfil, opened, make))
                del so_far, make
                if not await _is_made(opened, run.end):
                    return
                yield opened.result()
        if await _is_made(run.end, run.end):
            yield RunDone(run.end.result().seconds)


def _with_labels(facts: Facts) -> Facts:
    """The same, with the tokens' labels computed, which a text has once: the pass need not wait for them."""
    for tokens in (facts.source, facts.target):
        _ = tokens and tokens.labels
    return facts


def _opened(run: Trace, record: int, head: int, query: int | None) -> HeadDone:
    shown = Map(run, MapTransform(record, head))
    n_query, n_key = shown.record.n_query, shown.record.n_key
    whole = tile(shown, (0, n_query), (0, n_key))
    return HeadDone(record, head, query, (n_query, n_key), whole, None if query is None else row(shown, query))


async def _is_made(future: Future, end: Future[Trace]) -> bool:
    """Whether it is there, now or later; a run that fails or is cancelled makes nothing more."""
    either: Future[None] = Future()

    def tell(done: Future) -> None:
        if done is future or done.exception() is not None:
            with suppress(InvalidStateError):
                either.set_result(None)

    future.add_done_callback(tell)
    end.add_done_callback(tell)
    await arrival(either)
    return future.done() and future.exception() is None


def _fulfil(future: Future, make: Callable[[], object]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:
        future.set_exception(error)
