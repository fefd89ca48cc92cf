"""Engine: loads models and runs traces for all visitors of one process, with limits on memory, threads and queue length."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from .. import device
from ..checkpoints import Loaded, load
from ..device import default_budget, dtype_name, pick_device, pick_dtype
from ..errors import HeadlightError, RunCancelled, TooLarge, UnknownRun
from ..run.request import Progress, Request, RunFinished
from ..trace import Trace
from .jobs import CANCELLED, Job, ProgressFactory, RunHandle, is_short, run_batch, run_request
from .queue import BACKGROUND, QUESTION, TYPED, Askers, Slots, TaskQueue, Usage, current_askers

T = TypeVar("T")
log = logging.getLogger("headlight")

MAX_RELEASED_TRACES = 32  # kept so that a visitor can go back
MAX_REMEMBERED_BYTES = 64 << 20  # total size of remembered requests, so that an old link can be rerun
MAX_REQUEST_BYTES = 8 << 20
IDLE_CHECK_SECONDS = 30.0  # longest interval between two checks for idle traces
MAX_BATCH = 8  # short texts that share a pass
MAX_LENGTH_RATIO = 2.0  # of the longest text of such a batch to the first one
MANY = "{n} sentences are waiting already. Try again in a few seconds."
OWN = "{n} of your questions are waiting already. Try again when some of them are answered."


@dataclass(eq=False)
class Engine:
    """Loads models and runs requests. Thread-safe.

    Scheduling. At most `workers` passes run at once and at most `max_waiting` more are queued. A TaskQueue shares them out between
    visitors. Of one visitor, typed texts go before questions about a run, and these before background work such as a sweep. A long
    text yields to shorter ones submitted within LONG_TEXT_DELAY_SECONDS, and queued short texts of the same model share one pass.
    `usage` is the recent work of each visitor.

    Eviction. The least recently used traces are dropped when there are more than `max_traces` or they exceed `max_trace_bytes`;
    models when there are more than `max_models` and they exceed `max_model_bytes`, so that many small models can stay. None means
    a share of the device's memory. A trace that is not requested for `idle_seconds` is dropped too (None: never), and of the
    released traces only the newest MAX_RELEASED_TRACES are kept. A dropped trace is rerun when it is requested again.

    Callbacks. `load_model` maps a model id to a model; pass a stricter function to restrict which models can be loaded.
    `on_progress` is called when a run starts, with its request, the future of its trace and a function that notifies the waiters
    of new results; it returns the callback that trace() reports progress to. `on_finished` is called for every finished run, in
    the worker thread.
    """

    device: torch.device = field(default_factory=pick_device)
    dtype: torch.dtype | None = None  # None: HEADLIGHT_DTYPE, or the best dtype of the device
    max_models: int = 2
    max_model_bytes: int | None = None
    max_traces: int = 384
    max_trace_bytes: int | None = None
    max_waiting: int = 256
    idle_seconds: float | None = None
    workers: int = 1
    load_model: Callable[..., Loaded] = load
    on_progress: ProgressFactory = lambda *_: lambda _: None
    on_finished: Callable[[RunFinished], object] = lambda _: None
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        budget = default_budget(self.device)
        self.dtype = pick_dtype(self.device) if self.dtype is None else self.dtype
        self._model_budget = budget.models if self.max_model_bytes is None else self.max_model_bytes
        self._trace_budget = budget.traces if self.max_trace_bytes is None else self.max_trace_bytes
        self._lock = threading.Lock()  # guards everything below; held only briefly
        self._models: OrderedDict[str, tuple[Loaded, int]] = OrderedDict()  # with their bytes
        self._evictions: dict[str, int] = {}  # by model id: evictions of models whose files may change
        self._loads: dict[str, Future[Loaded]] = {}  # in progress
        self._downloads: dict[str, tuple[str, int, int]] = {}  # by model id: (file, bytes done, total bytes)
        self._traces: OrderedDict[str, tuple[Trace, int]] = OrderedDict()  # by the request's key, with their bytes
        self._released: OrderedDict[str, None] = OrderedDict()  # traces released by their viewer, oldest first
        self._last_used: dict[str, float] = {}  # when each trace was last requested, by time.monotonic()
        self._trace_bytes = 0
        self._jobs: dict[str, Job] = {}  # by the request's key
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._request_bytes = 0
        self._slots = Slots(self.workers + self.max_waiting, MANY, OWN)  # of running and queued passes
        self._queue = TaskQueue("pass", self.workers, self.usage)
        # Models load in their own pool: a slow download must not block runs of other models.
        self._loaders = ThreadPoolExecutor(self.workers + self.max_waiting, thread_name_prefix="load")
        if self.idle_seconds is not None:
            gone = threading.Event()
            weakref.finalize(self, gone.set)
            arguments = (weakref.ref(self), self.idle_seconds, gone)
            threading.Thread(target=_drop_idle, args=arguments, name="idle", daemon=True).start()

    # models

    def load(self, model_id: str) -> Loaded:
        """The model, from memory or disk. Concurrent calls share one load. Raises CheckpointError, TooLarge."""
        return self._loading(model_id).result()

    def _loading(self, model_id: str) -> Future[Loaded]:
        """A future of the model: already done if it is in memory, otherwise completed by a loader thread."""
        with self._lock:
            if model_id in self._models:
                self._models.move_to_end(model_id)
                future: Future[Loaded] = Future()
                future.set_result(self._models[model_id][0])
                return future
            if model_id in self._loads:
                return self._loads[model_id]
            future = self._loads[model_id] = Future()
        self._loaders.submit(self._load, model_id, future, current_askers())
        return future

    def _load(self, model_id: str, future: Future[Loaded], askers: Askers) -> None:
        def report(name: str, done: int, total: int) -> None:
            with self._lock:
                self._downloads[model_id] = (name, done, total)
                waiting = [job for job in self._jobs.values() if job.request.model_id == model_id]
            for job in waiting:
                job.notify()

        def make() -> Loaded:
            with device.oom_guard(self.device, f"Loading {model_id}", "Try a smaller model."):
                return self.load_model(model_id, device=self.device, dtype=self.dtype, progress=report)

        try:
            started = time.thread_time()  # waiting for a download is not charged
            loaded = self._retry_after_eviction(make, self._drop_all)
            size = weight_bytes(loaded)
            self.usage.add(askers, time.thread_time() - started)
        except BaseException as error:
            with self._lock:
                self._loading_done(model_id)
            future.set_exception(error)
            return
        with self._lock:
            self._loading_done(model_id)
            self._models[model_id] = (loaded, size)
            while len(self._models) > self.max_models and self._model_bytes > self._model_budget:
                self._drop_model(next(iter(self._models)))
        future.set_result(loaded)

    def _retry_after_eviction(self, make: Callable[[], T], drop: Callable[[], None]) -> T:
        """Call make(). If it raises TooLarge, evict cached items with drop() and call it once more."""
        try:
            return make()
        except TooLarge:
            with self._lock:
                before = len(self._traces) + len(self._models)
                drop()
                after = len(self._traces) + len(self._models)
            if after == before:
                raise
        return make()

    def weight_versions(self, key: Hashable) -> tuple[int, ...]:
        """Version numbers of the models of the runs whose keys are in `key`, for cache keys.

        A model that is evicted and loaded again may come from changed files, so answers computed before are not reused.
        """
        parts = key if isinstance(key, tuple) else (key,)
        with self._lock:
            runs = [self._requests[part] for part in parts if isinstance(part, str) and part in self._requests]
            return tuple(self._evictions.get(run.model_id, 0) for run in runs)

    def loaded_model(self, model_id: str) -> Loaded | None:
        """The model if it is in memory, else None."""
        with self._lock:
            return self._models[model_id][0] if model_id in self._models else None

    # runs

    def run(self, request: Request) -> Trace:
        """The trace of this request, cached or computed now. Raises any Refused error, including Busy."""
        return self.submit(request).result()

    def submit(self, request: Request, listener: Callable[[], object] | None = None) -> RunHandle[Trace]:
        """Start a run, or join a running one, without blocking. Raises Busy; RunHandle.result() raises all other errors.

        `listener` is called from an arbitrary thread whenever RunHandle.progress changes and when the run finishes.
        """
        job = self._job(request, n_waiters=1)
        if listener is not None:
            job.listeners.append(listener)
            job.future.add_done_callback(lambda _: listener())
        return RunHandle(request, job.future, partial(self._progress_of, job), partial(self._remove_waiter, job))

    def begin(self, request: Request, background: bool = False) -> None:
        """Start a run that has no waiter yet. It is cancelled when all callers that joined it in the meantime have cancelled."""
        self._job(request, n_waiters=0, urgency=BACKGROUND if background else TYPED)

    def _job(self, request: Request, n_waiters: int, urgency: int = TYPED) -> Job:
        what = "A request of this size"
        device.check_fits(request.nbytes, MAX_REQUEST_BYTES, what, "Shorten the text, or edit fewer cells.")
        key = request.key
        with self._lock:
            self._remember(request)
            if key in self._traces:
                self._traces.move_to_end(key)
                self._released.pop(key, None)
                self._last_used[key] = time.monotonic()
                job = Job(request, stage="done")
                job.future.set_result(self._traces[key][0])
                return job
            job = self._jobs.get(key)
            is_new = job is None
            if job is None:
                release_slot = self._slots.acquire(current_askers())
                job = self._jobs[key] = Job(request, urgency=urgency, release_slot=release_slot)
            else:
                job.askers.join(current_askers())
                job.urgency = min(job.urgency, urgency)
                if job.task is not None:
                    job.task.urgency = job.urgency
            job.n_waiters += n_waiters
        if is_new:
            self._loading(request.model_id).add_done_callback(partial(self._enqueue_when_loaded, job))
        return job

    def trace(self, key: str) -> Trace:
        """The trace of an earlier request, rerun if it was evicted. Raises Unknown for any other key."""
        return self.run(self.request_of(key))

    def request_of(self, key: str) -> Request:
        """The request of this key. Raises Unknown if it was never submitted or is no longer remembered."""
        with self._lock:
            if key not in self._requests:
                raise UnknownRun("This run is no longer known. Reload the page.")
            return self._requests[key]

    def schedule(self, make: Callable[[], T], background: bool = False) -> Future[T]:
        """Queue a function that runs a model, and return the future of its result. Raises Busy."""
        release_slot = self._slots.acquire(current_askers())
        future = self._queue.submit(partial(self._guarded, make), BACKGROUND if background else QUESTION)
        future.add_done_callback(lambda _: release_slot())
        return future

    def _guarded(self, make: Callable[[], T]) -> T:
        with device.oom_guard(self.device, "This run"):
            return make()

    def _enqueue_when_loaded(self, job: Job, loading: Future[Loaded]) -> None:
        """Called when the model has loaded (or failed to): queue the run, without blocking a thread."""
        if (error := loading.exception()) is not None:
            self._finish(job, error)
            return
        with self._lock:
            if job.stage == "loading":
                job.stage = "waiting"
        job.notify()
        run = partial(self._run, loading.result(), job)
        job.task = self._queue.add(run, job.urgency, job.askers, job.due_at, job.is_long)

    def _run(self, loaded: Loaded, job: Job) -> None:
        """Run a queued job, unless it was cancelled or has already run in another job's batch."""
        with self._lock:
            if job.cancelled.is_set() or job.stage != "waiting":
                return
            jobs = [job, *(self._batchable(job) if loaded.config.kind != "encoder-decoder" else ())]
            for one in jobs:
                one.stage, one.started_at = "running", time.monotonic()
        for one in jobs:
            job.askers.join(one.askers)  # each pays its part of the pass
            if one.task is not None:
                self._queue.drop(one.task)
            one.notify()
        if len(jobs) > 1:
            jobs = self._run_batch(loaded, jobs)
        for one in jobs:
            self._run_alone(loaded, one)

    def _run_alone(self, loaded: Loaded, job: Job) -> None:
        def make() -> Trace:
            return self._guarded(lambda: run_request(loaded, job, self.on_progress))

        try:
            outcome: Trace | BaseException = self._retry_after_eviction(make, self._drop_traces)
        except BaseException as error:
            outcome = error
        self._finish(job, outcome)

    def _run_batch(self, loaded: Loaded, jobs: list[Job]) -> list[Job]:
        """Run the jobs in one batched pass. Returns those that must run separately because the batch was refused."""
        try:
            outcomes = self._guarded(lambda: run_batch(loaded, jobs))
        except HeadlightError:
            return jobs
        except BaseException as error:
            outcomes = [error for _ in jobs]
        for job, outcome in zip(jobs, outcomes, strict=True):
            self._finish(job, outcome)
        return []

    def _finish(self, job: Job, outcome: Trace | BaseException) -> None:
        """Store the trace or discard the run, then complete the future."""
        size = outcome.nbytes if isinstance(outcome, Trace) else 0
        with self._lock:
            is_current = self._jobs.get(job.request.key) is job
            if is_current:
                del self._jobs[job.request.key]
            if is_current and isinstance(outcome, Trace):
                self._store_trace(job.request.key, outcome, size)
            is_first = job.stage != "done"
            job.stage = "done"
        if not is_first:
            return
        job.release_slot()
        try:
            self.on_finished(job.finished_event(outcome, size))
        except Exception:  # a failing callback must not keep waiters from the result
            log.exception("The on_finished callback failed")
        if isinstance(outcome, Trace):
            job.future.set_result(outcome)
        else:
            job.future.set_exception(outcome)

    def _remove_waiter(self, job: Job) -> None:
        """Remove a waiter. A run without waiters is cancelled: before it starts, or at its next layer."""
        with self._lock:
            job.n_waiters -= 1
            if job.n_waiters > 0 or self._jobs.get(job.request.key) is not job:
                return
            job.cancelled.set()
            del self._jobs[job.request.key]  # a later request for it starts a new run
            started = job.stage == "running"
        if job.task is not None:
            self._queue.drop(job.task)
        if not started:
            self._finish(job, RunCancelled(CANCELLED))

    # status

    def _progress_of(self, job: Job) -> Progress:
        if job.future.done():
            return Progress("done")
        file = self._downloads.get(job.request.model_id, ("", 0, 0)) if job.stage == "loading" else ("", 0, 0)
        ahead = self._queue.ahead(job.task) if job.stage == "waiting" and job.task is not None else 0
        return Progress(job.stage, *file, job.layers_done, job.layers_total, job.chunk, job.n_chunks, ahead)

    def drop_idle(self, seconds: float) -> None:
        """Drop traces that have not been requested for this many seconds."""
        with self._lock:
            before = time.monotonic() - seconds
            for key in [key for key in self._traces if self._last_used[key] <= before]:
                self._drop_trace(key)

    def release(self, key: str) -> None:
        """The viewer left this run. Only the newest released traces are kept, unless they are requested again."""
        with self._lock:
            if key not in self._traces:
                return
            self._released[key] = None
            self._released.move_to_end(key)
            if len(self._released) > MAX_RELEASED_TRACES:
                self._drop_trace(next(iter(self._released)))

    def status(self) -> dict[str, Any]:
        """Current counts, memory use and device, for the operator."""
        with self._lock:
            found = {
                "device": str(self.device),
                "dtype": dtype_name(self.dtype),
                "models": [*self._models],
                "traces": len(self._traces),
                "trace_bytes": self._trace_bytes,
                "running_or_waiting": self._slots.taken,
            }
        return found | {"free_bytes": device.free_bytes(self.device)}

    # bookkeeping; every method below except forget() requires the lock

    def _batchable(self, job: Job) -> list[Job]:
        """Queued jobs that can share a pass with this one: short texts of the same model and urgency."""
        if not is_short(job.request):
            return []
        most = MAX_LENGTH_RATIO * len(job.request.texts[0])
        found = [
            other
            for other in self._jobs.values()
            if other is not job
            and (other.stage, other.urgency) == ("waiting", job.urgency)
            and other.request.model_id == job.request.model_id
            and is_short(other.request)
            and len(other.request.texts[0]) <= most
        ]
        return sorted(found, key=lambda other: other.due_at)[: MAX_BATCH - 1]

    def _loading_done(self, model_id: str) -> None:
        del self._loads[model_id]
        self._downloads.pop(model_id, None)

    def _remember(self, request: Request) -> None:
        if request.key not in self._requests:
            self._requests[request.key] = request
            self._request_bytes += request.nbytes
        self._requests.move_to_end(request.key)
        while self._request_bytes > MAX_REMEMBERED_BYTES:
            _, oldest = self._requests.popitem(last=False)
            self._request_bytes -= oldest.nbytes

    def _store_trace(self, key: str, trace: Trace, size: int) -> None:
        """Store a trace and evict old ones. The newest is kept whatever its size, because it is about to be shown."""
        self._traces[key] = (trace, size)
        self._last_used[key] = time.monotonic()
        self._trace_bytes += size
        while len(self._traces) > 1 and (len(self._traces) > self.max_traces or self._trace_bytes > self._trace_budget):
            self._drop_trace(next(iter(self._traces)))

    def _drop_trace(self, key: str) -> None:
        _, size = self._traces.pop(key)
        self._released.pop(key, None)
        del self._last_used[key]
        self._trace_bytes -= size

    def _drop_traces(self) -> None:
        for key in [*self._traces]:
            self._drop_trace(key)

    def _drop_all(self) -> None:
        for model_id in [*self._models]:
            self._drop_model(model_id)

    def forget(self, model_id: str) -> None:
        """Evict a model and its traces."""
        with self._lock:
            if model_id in self._models:
                self._drop_model(model_id)

    @property
    def _model_bytes(self) -> int:
        return sum(size for _, size in self._models.values())

    def _drop_model(self, model_id: str) -> None:
        """Evict a model with its traces, which reference it."""
        loaded, _ = self._models.pop(model_id)
        if loaded.spec.source not in ("shipped", "package"):  # their files are verified by hash
            self._evictions[model_id] = self._evictions.get(model_id, 0) + 1
        for key in [key for key, (trace, _) in self._traces.items() if trace.loaded is loaded]:
            self._drop_trace(key)


def _drop_idle(engine: weakref.ref[Engine], seconds: float, gone: threading.Event) -> None:
    """Thread that periodically drops idle traces until the engine is garbage-collected."""
    while not gone.wait(min(seconds / 4, IDLE_CHECK_SECONDS)):
        alive = engine()
        try:
            if alive is not None:
                alive.drop_idle(seconds)
        except Exception:
            log.exception("Dropping idle traces failed; retrying")
        del alive


def weight_bytes(loaded: Loaded) -> int:
    """Bytes of the parameters; tied ones count once."""
    return sum(parameter.nbytes for parameter in loaded.model.parameters())
