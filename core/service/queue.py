"""Task queues: a few threads do the work of many visitors and share it out fairly.

The next task is that of the visitor with the least recent usage. A pass whose visitor has used up a share pauses between two layers
while another visitor's task runs, so a short question waits for one layer at most. Decaying usage is the classic fair-share scheduler
of time-sharing systems (Kay and Lauder, "A fair share scheduler", CACM 31(1), 1988).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

from ..errors import ServerBusy
from ..model.hooks import between_layers

T = TypeVar("T")
Accounts = tuple[str, ...]  # accounts of one visitor, the narrowest first: a browser, then its network address
log = logging.getLogger("headlight")

# Urgency of a run that a visitor waits for, of a question about a run, and of background work
TYPED, QUESTION, BACKGROUND = range(3)
HALF_LIFE_SECONDS = 10.0  # past work counts half after this time
EQUAL_USAGE_SECONDS = 0.5  # visitors whose usage differs by less are served in the order of their requests
VISITORS_PER_ADDRESS = 16  # visitors with full shares at one network address, such as a school's
MAX_PAUSED = 4  # passes paused at the same time; each keeps the memory of its layers so far
CHECK_INTERVAL_SECONDS = 0.005  # shortest time between two checks for a waiting visitor
MAX_TASKS_OF_ONE, MIN_TASKS_OF_ONE = (
    64,
    4,
)  # waiting tasks of one visitor: at most as many as are left for others, but always a few
MAX_ACCOUNTS = 20_000


class Askers:
    """All visitors who wait for the same work: the first one, and those who joined later."""

    def __init__(self, *accounts: Accounts, parent: Askers | None = None) -> None:
        self._own = set(accounts)
        self._parent = parent

    def join(self, others: Askers) -> None:
        """Add visitors who now wait for it too."""
        self._own |= set(others)

    def __iter__(self) -> Iterator[Accounts]:
        return iter(self._own | set(self._parent or ()))


NOBODY = Askers(())
_askers: ContextVar[Askers] = ContextVar("askers", default=NOBODY)


def current_askers() -> Askers:
    """The visitors for whom this context works."""
    return _askers.get()


@contextmanager
def asked_by(askers: Askers) -> Iterator[None]:
    """Charge work that starts in this block to these visitors."""
    token = _askers.set(askers)
    try:
        yield
    finally:
        _askers.reset(token)


def asked_from_now_on(askers: Askers) -> None:
    """Charge all further work of this context to these visitors."""
    _askers.set(askers)


class Usage:
    """Recent seconds of work of each account. Thread-safe; several queues share one."""

    def __init__(
        self,
        charged: Callable[[Accounts, float], object] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`charged(accounts, seconds)` is called for work during which another visitor waited."""
        self.charged, self.clock = charged, clock
        self._lock = threading.Lock()
        self._used: dict[str, tuple[float, float]] = {}  # (seconds, time of that value), last used last

    def add(self, askers: Iterable[Accounts], seconds: float, others_wait: bool = False) -> None:
        """Charge work to the visitors who wait for it, in equal parts."""
        visitors = [*askers]
        for accounts in visitors:
            with self._lock:
                for account in accounts:
                    used = self._of(account) + seconds / len(visitors)
                    self._used.pop(account, None)
                    self._used[account] = used, self.clock()
                while len(self._used) > MAX_ACCOUNTS:
                    del self._used[next(iter(self._used))]
            if others_wait:
                self.charged(accounts, seconds / len(visitors))

    def least(self, askers: Iterable[Accounts]) -> float:
        """Smallest usage among these visitors, which determines the rank of the work they share."""
        with self._lock:
            return min(max(self._shares(accounts), default=0.0) for accounts in askers)

    def _shares(self, accounts: Accounts) -> Iterator[float]:
        return (self._of(account) / VISITORS_PER_ADDRESS**i for i, account in enumerate(accounts))

    def _of(self, account: str) -> float:
        used, at = self._used.get(account, (0.0, 0.0))
        return used * 0.5 ** ((self.clock() - at) / HALF_LIFE_SECONDS)


@dataclass(eq=False)
class Task:
    """Work that waits or runs. A `long` task never interrupts another one."""

    do: Callable[[], object]
    askers: Askers
    urgency: int
    due: float
    order: int
    long: bool = False
    since: float = 0.0  # start of the work that is not charged yet
    resumed: threading.Event | None = None  # set when a paused pass may continue


class TaskQueue:
    """A queue of tasks of all visitors, run by `workers` threads."""

    def __init__(self, name: str, workers: int, usage: Usage) -> None:
        self.workers, self.usage = workers, usage
        self._lock = threading.Lock()
        self._waiting: list[Task] = []
        self._running = self._paused = 0
        self._order = count()
        self._pool = ThreadPoolExecutor(workers + MAX_PAUSED, thread_name_prefix=name)

    def add(
        self,
        do: Callable[[], object],
        urgency: int = QUESTION,
        askers: Askers | None = None,
        due: float | None = None,
        long: bool = False,
    ) -> Task:
        """Queue a task. Among tasks of equal rank, the one with the smallest `due` (time.monotonic()) runs first."""
        askers, due = askers or current_askers(), time.monotonic() if due is None else due
        task = Task(do, askers, urgency, due, next(self._order), long)
        with self._lock:
            self._waiting.append(task)
            self._start()
        return task

    def submit(self, make: Callable[[], T], urgency: int = QUESTION) -> Future[T]:
        """Queue make() and return the future of its result. Cancelling the future removes it from the queue."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(make())
            except BaseException as error:
                future.set_exception(error)

        task = self.add(run, urgency)
        future.add_done_callback(lambda _: self.drop(task))
        return future

    def drop(self, task: Task) -> None:
        """Remove a task that has not started. One that has started is not affected, even if it is paused."""
        with self._lock:
            if task in self._waiting and task.resumed is None:
                self._waiting.remove(task)
                task.do = _done

    def ahead(self, task: Task) -> int:
        """Number of tasks that are running or will run before this one."""
        with self._lock:
            mine = self._rank(task)
            return self._running + sum(self._rank(other) < mine for other in self._waiting if other is not task)

    def _rank(self, task: Task) -> tuple[int, int, float, int]:
        return int(self.usage.least(task.askers) / EQUAL_USAGE_SECONDS), task.urgency, task.due, task.order

    def _start(self) -> None:
        """Start waiting tasks while a worker is free. Call with the lock held."""
        while self._running < self.workers and self._waiting:
            task = min(self._waiting, key=self._rank)
            self._waiting.remove(task)
            self._running += 1
            if task.resumed is None:
                self._pool.submit(self._run, task)
            else:
                self._paused -= 1
                task.resumed.set()

    def _run(self, task: Task) -> None:
        task.since = time.monotonic()
        token = between_layers.set(partial(self._between_layers, task))
        try:
            with asked_by(task.askers):
                task.do()
        except Exception:  # the pool would swallow it
            log.exception("A task failed")
        finally:
            between_layers.reset(token)
            self._charge(task)
            task.do = _done  # whoever keeps the task must not keep its trace alive
            with self._lock:
                self._running -= 1
                self._start()

    def _charge(self, task: Task) -> None:
        now, mine = time.monotonic(), set(task.askers)
        with self._lock:
            others_wait = any(mine.isdisjoint(other.askers) for other in self._waiting)
        self.usage.add(mine, now - task.since, others_wait)
        task.since = now

    def _between_layers(self, task: Task) -> None:
        """Called in the thread of a running task: pause it while a task of a better rank runs."""
        if time.monotonic() - task.since < CHECK_INTERVAL_SECONDS:
            return
        self._charge(task)
        with self._lock:
            others = [other for other in self._waiting if not other.long or other.resumed is not None]
            if not others or self._paused == MAX_PAUSED:
                return
            if min(map(self._rank, others))[:2] >= self._rank(task)[:2]:
                return
            task.resumed = threading.Event()
            self._waiting.append(task)
            self._paused += 1
            self._running -= 1
            self._start()
        task.resumed.wait()
        task.resumed, task.since = None, time.monotonic()


def _done() -> None:
    """Replaces the work of a finished task."""


@dataclass(eq=False)
class Slots:
    """Limits the waiting tasks, in total and of one visitor. `many` and `own` are the error messages, with {n}."""

    most: int
    many: str
    own: str
    taken: int = 0
    _by_visitor: dict[Accounts, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(self, askers: Askers) -> Callable[[], None]:
        """Take a slot and return the function that releases it; call it once. Raises Busy."""
        visitors = [accounts for accounts in askers if accounts]
        with self._lock:
            if self.taken >= self.most:
                raise ServerBusy(self.many.format(n=self.taken))
            own = min((self._by_visitor.get(one, 0) for one in visitors), default=0)
            if own >= max(MIN_TASKS_OF_ONE, min(MAX_TASKS_OF_ONE, self.most - self.taken)):
                raise ServerBusy(self.own.format(n=own))
            self.taken += 1
            for one in visitors:
                self._by_visitor[one] = self._by_visitor.get(one, 0) + 1
        return partial(self._release, visitors)

    def _release(self, visitors: list[Accounts]) -> None:
        with self._lock:
            self.taken -= 1
            for one in visitors:
                self._by_visitor[one] -= 1
                if not self._by_visitor[one]:
                    del self._by_visitor[one]
