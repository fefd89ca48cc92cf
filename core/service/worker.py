"""Worker: where the answers of a Service in this process are computed, in turns, threads and from what is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from torch import Tensor

from .. import memory
from ..edits import Intervention
from ..errors import Refused
from ..run.attention import AttentionRecord
from ..run.predictions import Predictions
from ..run.recorder import Held
from ..run.request import Request
from ..run.trace import Trace
from .engine import OWN, Engine
from .event_loop import AnswerCache, wait_in_loop, wait_or_cancel
from .facts import Site, SiteId, array, sites_of
from .queue import Slots, TaskQueue, current_askers

T = TypeVar("T")

KEPT_BYTES = 64 << 20  # of answers that took long to compute
WORD_BYTES = 160  # of a predicted word: its id, spelling and probability
MOST_WAITING = 512  # answers that wait for a thread
MANY = "{n} parts of pictures are waiting already. Try again in a few seconds."
SHORTER = "Try a shorter text, or a smaller part of the map."


class Worker:
    """What all topics of a LocalService share: beginning a run, waiting for it, and the ways of working something out of it."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        self.engine = engine
        # Torch work: leave a core to the server. What is quick never waits for what takes seconds.
        workers = workers or max(1, cores() - 1)
        self._quick = TaskQueue("quick", workers, engine.usage)
        self._slow = TaskQueue("slow", workers, engine.usage)
        self._slots = Slots(MOST_WAITING, MANY, OWN)
        self._kept = AnswerCache(KEPT_BYTES, nbytes, engine.weight_versions)

    async def submit(self, request: Request) -> str:
        """The key of a run, which is begun or joined. Raises Busy; whatever else is wrong comes with follow()."""
        self.engine.begin(request)
        return request.key

    async def release(self, key: str) -> None:
        """Somebody who was shown this run looks at another one now: it need not be kept for them. Any key will do."""
        self.engine.release(key)

    async def edited(self, key: str, interventions: Sequence[Intervention]) -> str:
        """The key of the same run with these interventions as well, begun or joined as by submit().

        It reads the tokens that the run read: a target that an encoder-decoder wrote itself is now given to it.
        """
        request = await self.edited_request(key, interventions)
        self.engine.begin(request, background=True)
        return request.key

    async def edited_request(self, key: str, interventions: Sequence[Intervention]) -> Request:
        """What edited() begins."""
        request, run = self.engine.request_of(key), await self._run(key)
        # A classifier whose decoder reads the text once more was given no target, and is given none.
        again = run.spec.classes is not None and request.target_text is None
        written = None if run.target is None or again else run.target.text
        source = request.texts if written is not None or not request.write else (run.source.text, *request.texts[1:])
        return replace(
            request,
            texts=source,
            target_text=request.target_text if written is None else written,
            interventions=(*request.interventions, *interventions),
            write=0,
        )

    # how it is computed

    async def _run(self, key: str) -> Trace:
        """The trace of a key, seen from its first text. Whoever waits for it here counts as one who waits for the run."""
        waiting = self.engine.submit(self.engine.request_of(key))
        try:
            return (await wait_in_loop(waiting.future)).text(0)
        finally:
            waiting.cancel()

    async def _again(self, key: str, make: Callable[[Trace], T], background: bool = False) -> T:
        """Something that runs the model once more, in its turn. Raises Refused for positions that the run does not have."""
        run = await self._run(key)
        try:
            return await self._pass(partial(make, run), background)
        except IndexError as error:
            raise Refused(f"This run has no {error}.") from None

    async def _pass(self, make: Callable[[], T], background: bool = False) -> T:
        """Run a model in its turn and return the result."""
        return await wait_or_cancel(self.engine.schedule(make, background))

    async def _record(self, key: str, record: int) -> AttentionRecord:
        run = await self._run(key)
        check_below("record", record, len(run.records))
        return run.attention[record]

    async def _site(self, key: str, site: SiteId) -> tuple[Trace, Site]:
        run = await self._run(key)
        sites = {found.id: found for found in run_sites(run)}
        if site not in sites:
            raise Refused(f"This run has no attention called {site!r}. It has {', '.join(sites)}.")
        return run, sites[site]

    async def _norms(self, key: str, run: Trace, record: int) -> Tensor:
        """[head, key], which for a long run takes another pass."""

        async def make() -> Tensor:
            return await self._work((await self._held(run.attention[record])).value_norms, slow=True)

        return await self._kept.get(("norms", key, record), make)

    async def _held(self, record: AttentionRecord) -> AttentionRecord:
        """The same record with its values, which of a long run come from another pass, in its turn."""
        if isinstance(record.values, Held):
            return record
        return replace(record, values=Held(await self._pass(record.values)))

    async def _work(self, make: Callable[[], T], slow: bool = False) -> T:
        """Something that only reads what a run holds, in a thread of one of the two pools."""
        release_slot = self._slots.acquire(current_askers())
        future = (self._slow if slow else self._quick).submit(partial(self._guarded, make))
        future.add_done_callback(lambda _: release_slot())
        return await wait_or_cancel(future)

    def _guarded(self, make: Callable[[], T]) -> T:
        with memory.guarded(self.engine.device, "This picture", SHORTER):
            return make()


def run_sites(run: Trace) -> tuple[Site, ...]:
    lengths = {"source": len(run.source), "target": 0 if run.target is None else len(run.target)}
    return sites_of(run.config, lengths, has_target=run.target is not None)  # type: ignore[arg-type]


def check_below(what: str, value: int, n: int) -> None:
    if not 0 <= value < n:
        raise Refused(f"There is no {what} {value} in this run: they are counted from 0 to {n - 1}.")


def array_of(rows: Sequence[Tensor]) -> np.ndarray:
    return np.stack([array(row) for row in rows])


def nbytes(value: object) -> int:
    """About what an answer takes."""
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
