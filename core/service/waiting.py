"""Waiting: the handle of somebody who waits for a run, in this process or on another machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from typing import Generic, TypeVar

from ..errors import RunCancelled
from ..run.request import Progress, Request

T = TypeVar("T")

CANCELLED = "This run was cancelled."


class Waiting(Generic[T]):
    """How far a run is, its result, and the way to wait no longer. Of those who wait for one run, each has a handle of their own.

    Any thread may use it; in an event loop, await arrival(waiting.future).
    """

    def __init__(
        self, request: Request, future: Future[T], look: Callable[[], Progress], leave: Callable[[], object]
    ) -> None:
        """`look` says how far the run is, and `leave` is called once, by the first cancel()."""
        self.request, self.future = request, future
        self.cancelled = False
        self._look, self._leave = look, leave
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """The run's name in every question about it."""
        return self.request.key

    @property
    def progress(self) -> Progress:
        """How far it is by now; while it waits for its turn, how many have theirs before it."""
        return self._look()

    def done(self) -> bool:
        return self.future.done()

    def wait(self, seconds: float) -> bool:
        """Whether the run has ended, after at most this long."""
        return bool(wait([self.future], seconds).done)

    def result(self) -> T:
        """Wait for the end. Raises Refused in its kinds where the run was refused, RunCancelled where everybody has cancelled it."""
        try:
            return self.future.result()
        except CancelledError:
            raise RunCancelled(CANCELLED) from None

    def cancel(self) -> None:
        """Wait no longer. When nobody does, a run that has not begun never will, and one that has ends at its next layer."""
        with self._lock:
            if self.cancelled:
                return
            self.cancelled = True
        self._leave()
