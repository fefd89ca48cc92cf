"""Thumbnails made while a pass still runs: those of each layer as soon as the pass has left it.

A pass leaves a core to the server, which has nothing to do until it ends. With the small pictures drawn by then, a long
text is on the screen sooner.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from app import pack
from core.attention import AttentionRecord, Thumbnail
from core.engine import Request

MOST_RUNS = 8  # whose thumbnails wait for somebody to take them

_pool = ThreadPoolExecutor(1, thread_name_prefix="thumbnails")
_lock = threading.Lock()
_runs: OrderedDict[str, _Run] = OrderedDict()  # by the request's key


@dataclass(eq=False)
class _Run:
    """The thumbnails of one run so far, a future for each record; none while it may still turn out to be small."""

    weights: int = 0  # bytes of all records so far
    first: list[AttentionRecord] = field(default_factory=list)
    made: list[Future[Thumbnail]] = field(default_factory=list)

    def add(self, record: AttentionRecord) -> None:
        if record.batch_q.device.type != "cpu":
            return  # it would only take turns with the pass
        self.weights += pack.weight_bytes([record])
        self.first.append(record)
        if self.weights > pack.AT_ONCE_BYTES:  # of a smaller run every weight is sent, and thumbnails are not needed
            self.made += [_pool.submit(waiting.thumbnail, pack.THUMBNAIL) for waiting in self.first]
            self.first.clear()


def watch(request: Request) -> Callable[[AttentionRecord], None]:
    """What the engine is to tell of each attention of this run, in the order of the pass."""
    run = _Run()
    with _lock:
        _runs[request.key] = run
        _runs.move_to_end(request.key)
        while len(_runs) > MOST_RUNS:
            _runs.popitem(last=False)
    return run.add


def take(request: Request) -> list[Thumbnail]:
    """The thumbnails of a run that has ended, one for each record; none where they were not made, or were taken before."""
    with _lock:
        run = _runs.pop(request.key, None)
    return [] if run is None else [future.result() for future in run.made]
