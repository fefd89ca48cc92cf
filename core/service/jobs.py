"""Jobs: runs that have not finished. Their state, the handle of a caller who waits, and the pass of one request or of a batch."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ..checkpoints import Loaded
from ..errors import GenerationError, RunCancelled
from ..model.hooks import ReadHook, hook_points, hooked
from ..model.text import Tokens
from ..run.request import Progress, Request, RunFinished, Stage, chat_sources, user_message
from ..run.trace import trace_batch
from ..trace import Trace, as_trace, trace, trace_tokens
from ..write.generate import with_continuation
from .queue import TYPED, Askers, Task, current_askers

T = TypeVar("T")
ProgressFactory = Callable[[Request, Future[Trace], Callable[[], None]], Callable[[Trace], object]]
log = logging.getLogger("headlight")

CANCELLED = "This run was cancelled."
LONG_TEXT_CHARS = 600  # longer texts yield to shorter ones that arrive
LONG_TEXT_DELAY_SECONDS = 1.0  # within this time
SHORT_TEXT_CHARS = 160  # shorter texts of the same model may share a pass
NOTIFY_INTERVAL_SECONDS = 0.03  # shortest interval between two layer notifications


class RunHandle(Generic[T]):
    """Progress and result of a run, and the way to stop waiting for it. Every waiter of a run has a handle of its own.

    Thread-safe. In an event loop, await wait_in_loop(handle.future). The engine may be on another machine.
    """

    def __init__(
        self, request: Request, future: Future[T], poll: Callable[[], Progress], leave: Callable[[], object]
    ) -> None:
        """`poll` returns the current progress. `leave` is called once, by the first cancel()."""
        self.request, self.future = request, future
        self.cancelled = False
        self._poll, self._leave = poll, leave
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """Identifies the run in all questions about it."""
        return self.request.key

    @property
    def progress(self) -> Progress:
        """Current progress, and for a queued run the number of runs before it."""
        return self._poll()

    def done(self) -> bool:
        return self.future.done()

    def wait(self, seconds: float) -> bool:
        """Wait for at most this long. True if the run has finished."""
        return bool(wait([self.future], seconds).done)

    def result(self) -> T:
        """Wait for the result. Raises the error of the run, and RunCancelled if all its waiters have cancelled."""
        try:
            return self.future.result()
        except CancelledError:
            raise RunCancelled(CANCELLED) from None

    def cancel(self) -> None:
        """Stop waiting. A run without waiters is cancelled: before it starts, or at its next layer."""
        with self._lock:
            if self.cancelled:
                return
            self.cancelled = True
        self._leave()


@dataclass(eq=False)
class Job:
    """Internal state of an unfinished run: its waiters, its progress and the listeners to notify of changes."""

    request: Request
    future: Future[Trace] = field(default_factory=Future)
    n_waiters: int = 0
    askers: Askers = field(default_factory=lambda: Askers(parent=current_askers()))
    urgency: int = TYPED
    task: Task | None = None  # in the queue of passes, once the model has loaded
    release_slot: Callable[[], None] = lambda: None
    cancelled: threading.Event = field(default_factory=threading.Event)
    stage: Stage = "loading"
    layers_done: int = 0
    layers_total: int = 0
    chunk: int = 0  # index of the chunk of the text that is being read
    n_chunks: int = 1
    submitted_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None
    last_notified: float = 0.0  # when listeners were last notified of a layer
    listeners: list[Callable[[], object]] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return any(len(text) > LONG_TEXT_CHARS for text in (*self.request.texts, self.request.target_text or ""))

    @property
    def due_at(self) -> float:
        """Determines the order among jobs of visitors with the same usage."""
        return self.submitted_at + (LONG_TEXT_DELAY_SECONDS if self.is_long else 0)

    def notify(self) -> None:
        """Notify all listeners. An exception in one is logged and does not affect the others or the run."""
        for listener in [*self.listeners]:
            try:
                listener()
            except Exception:
                log.exception("A run listener failed")

    def on_layer_done(self) -> None:
        """The forward pass has finished another layer."""
        if self.layers_done == self.layers_total and self.chunk + 1 < self.n_chunks:
            self.chunk, self.layers_done = self.chunk + 1, 0
        self.layers_done = min(self.layers_done + 1, self.layers_total)
        # Throttled: the layers of a short text pass too quickly to show, and each notification takes time from other threads.
        if (now := time.monotonic()) - self.last_notified >= NOTIFY_INTERVAL_SECONDS:
            self.last_notified = now
            self.notify()

    def finished_event(self, outcome: Trace | BaseException, n_bytes: int) -> RunFinished:
        """The event that is reported to the operator now that the run has finished."""
        now = time.monotonic()
        started = now if self.started_at is None else self.started_at
        name, tokens = type(outcome).__name__, 0
        if isinstance(outcome, Trace):
            name, tokens = "done", sum(map(len, (*outcome.sources, *(outcome.targets or ()))))
        return RunFinished(self.request.model_id, name, tokens, started - self.submitted_at, now - started, n_bytes)


def is_short(request: Request) -> bool:
    """True for a single short, unedited text, which may share a pass with others."""
    plain = len(request.texts) == 1 and request.target_text is None and not request.interventions and not request.write
    return plain and len(request.texts[0]) <= SHORT_TEXT_CHARS


def run_request(loaded: Loaded, job: Job, on_progress: ProgressFactory) -> Trace:
    """The trace of a job's request. Raises RunCancelled at the next layer or token after the job is cancelled."""

    # The trace keeps these hooks for later passes, and the job keeps the trace: a strong reference would be a cycle.
    known = weakref.ref(job)

    def check_cancelled() -> None:
        job = known()
        if job is not None and job.cancelled.is_set():
            raise RunCancelled(CANCELLED)

    def count_layer(_: Any) -> None:
        check_cancelled()
        job = known()
        if job is not None and not job.future.done():
            job.on_layer_done()

    request = job.request
    chat = tokenize_chat(loaded, request) if request.chat else None
    texts, target = with_continuation(loaded, request, check_cancelled) if chat is None else ([], None)
    layers = _layer_output_names(loaded)
    job.layers_done, job.layers_total = 0, len(layers)
    show = on_progress(request, job.future, job.notify)

    def report(partial: Trace) -> None:
        job.n_chunks = partial.chunks
        show(partial)

    with hooked(loaded.model, dict.fromkeys(layers, ReadHook(count_layer))):
        if chat is not None:
            return trace_tokens(loaded, chat, None, request.interventions, report)
        return trace(
            loaded,
            texts,
            target,
            interventions=request.interventions,
            padding_side=request.padding_side,
            watch=report,
        )


def run_batch(loaded: Loaded, jobs: Sequence[Job]) -> list[Trace | RunCancelled]:
    """The traces of several short texts from one batched pass. Raises RunCancelled once all jobs are cancelled."""
    going = [*jobs]  # emptied after the pass: the traces keep these hooks for later passes

    def count_layer(_: Any) -> None:
        if going and all(job.cancelled.is_set() for job in going):
            raise RunCancelled(CANCELLED)
        for job in going:
            job.on_layer_done()

    layers = _layer_output_names(loaded)
    for job in jobs:
        job.layers_done, job.layers_total = 0, len(layers)
    texts = [
        tokenize_chat(loaded, job.request)[0] if job.request.chat else loaded.tokens(job.request.texts[0])
        for job in jobs
    ]
    try:
        with hooked(loaded.model, dict.fromkeys(layers, ReadHook(count_layer))):
            traces = [as_trace(run) for run in trace_batch(loaded, texts)]
    finally:
        going.clear()
    return [
        RunCancelled(CANCELLED) if job.cancelled.is_set() else found for job, found in zip(jobs, traces, strict=True)
    ]


def tokenize_chat(loaded: Loaded, request: Request) -> tuple[Tokens, ...]:
    """The texts of a request as tokenized conversations: one user message each, plus the answer so far.

    Raises TextError, and GenerationError if the request also asks for generated text.
    """
    if request.write:
        raise GenerationError("A conversation is not continued before its run. Give the answer so far as its target.")
    chats = [user_message(text) for text in request.texts]
    return chat_sources(loaded, chats, request.padding_side, answer=request.target_text or "")


def _layer_output_names(loaded: Loaded) -> list[str]:
    return [name for name in hook_points(loaded.model) if name.endswith("hook_resid_post")]
