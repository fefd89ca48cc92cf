"""Engine: one process's models and traces, shared by every visitor, bounded in memory, threads and patience."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from .. import memory
from ..checkpoints import Loaded, load
from ..device import default_budget, dtype_name, pick_device, pick_dtype
from ..errors import GenerationError, Refused, RunCancelled, TooLarge, Unknown
from ..model.hooks import ReadHook, hook_points, hooked
from ..model.text import Tokens
from ..run.batched_trace import trace_together
from ..run.prompt import chat_sources, said_by_user
from ..run.request import Progress, Request, RunEnded, Stage
from ..trace import Trace, as_trace, trace, trace_tokens
from ..write.continuation import with_continuation
from .turns import ASIDE, QUESTION, TYPED, Askers, Places, Task, Turns, Usage, current_askers
from .waiting import CANCELLED, Waiting

T = TypeVar("T")
Watch = Callable[[Request, Future[Trace], Callable[[], None]], Callable[[Trace], object]]
log = logging.getLogger("headlight")

LET_GO = 32  # traces that are kept for who goes back to one
REMEMBERED_BYTES = 64 << 20  # of requests, so that an old link still finds its run
LOOK = 30.0  # seconds at most between two looks for traces that nobody asks about
LARGEST_REQUEST = 8 << 20  # bytes of one
LONG = 600  # characters of a text that lets shorter ones go first,
YIELDS = 1.0  # those that are asked for within so many seconds
SHORT = 160  # characters of a text that may run together with others of its model,
TOGETHER = 8  # so many at most,
ALIKE = 2.0  # of which the longest is at most so many times as long as the first
BETWEEN = 0.03  # seconds at least between two layers of a run of which those who listen are told
MANY = "{n} sentences are waiting already. Try again in a few seconds."
OWN = "{n} of your questions are waiting already. Try again when some of them are answered."


@dataclass(eq=False)
class Job:
    """The engine's own record of a run that has not ended: how many wait for it, and who is told when something about it changes."""

    request: Request
    future: Future[Trace] = field(default_factory=Future)
    waiting: int = 0
    askers: Askers = field(default_factory=lambda: Askers(parent=current_askers()))
    urgency: int = TYPED
    task: Task | None = None  # in the line of passes, once its model is there
    leave_place: Callable[[], None] = lambda: None
    cancelled: threading.Event = field(default_factory=threading.Event)
    stage: Stage = "loading"
    layers_done: int = 0
    layers_total: int = 0
    part: int = 0  # which chunk of its text is read, from 0
    parts: int = 1
    asked: float = field(default_factory=time.monotonic)
    begun: float | None = None  # when its turn came
    told: float = 0.0  # when a layer was told of last
    listeners: list[Callable[[], object]] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return any(len(text) > LONG for text in (*self.request.texts, self.request.target_text or ""))

    @property
    def due(self) -> float:
        """Its place among those of visitors with the same share."""
        return self.asked + (YIELDS if self.is_long else 0)

    def changed(self) -> None:
        """Tell those who listen. One that fails is a mistake of its own, and keeps neither the others nor the run waiting."""
        for listener in [*self.listeners]:
            try:
                listener()
            except Exception:
                log.exception("Who was told of a run failed")

    def passed_layer(self) -> None:
        """Its pass has left another layer."""
        if self.layers_done == self.layers_total and self.part + 1 < self.parts:
            self.part, self.layers_done = self.part + 1, 0
        self.layers_done = min(self.layers_done + 1, self.layers_total)
        # Nobody could see more of a short text's layers, and each that is told takes time of other threads.
        if (now := time.monotonic()) - self.told >= BETWEEN:
            self.told = now
            self.changed()


@dataclass(eq=False)
class Engine:
    """Loads models and runs requests. Any number of threads may call it.

    At most `workers` passes run at once and `max_waiting` more wait. Turns shares them out between visitors. Of one visitor a
    text that was typed goes before questions about one, and these before background work such as a sweep. A long text lets
    shorter ones go first that are asked for within a second, and short texts of one model that wait together run in one pass.

    Traces are dropped, oldest use first, when there are
    more than `max_traces` or they hold more than `max_trace_bytes`; models when there are more than `max_models` and these
    hold more than `max_model_bytes`, so that any number of small ones stays. None: a share of the device's memory. A trace that
    nobody asked about for `idle` seconds is dropped as well (None: never), and so are all but the newest LET_GO of those that
    were let go; whoever comes back to one has it run again.
    `load_model` is what turns a model id into a model: an operator who allows less passes a stricter one. `watch` says who
    is shown how far a run has come, as trace() shows it: it is called when the run begins, with its request, the future of its
    trace, and the way to tell those who wait that there is more to see. `ended` is told of every run that has ended, in the
    thread of its turn. `usage` knows how much work each visitor has had.
    """

    device: torch.device = field(default_factory=pick_device)
    dtype: torch.dtype | None = None  # None: what HEADLIGHT_DTYPE says, or the best that the device has
    max_models: int = 2
    max_model_bytes: int | None = None
    max_traces: int = 384
    max_trace_bytes: int | None = None
    max_waiting: int = 256
    idle: float | None = None
    workers: int = 1
    load_model: Callable[..., Loaded] = load
    watch: Watch = lambda *_: lambda _: None
    ended: Callable[[RunEnded], object] = lambda _: None
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        budget = default_budget(self.device)
        self.dtype = pick_dtype(self.device) if self.dtype is None else self.dtype
        self._model_budget = budget.models if self.max_model_bytes is None else self.max_model_bytes
        self._trace_budget = budget.traces if self.max_trace_bytes is None else self.max_trace_bytes
        self._lock = threading.Lock()  # of everything below; nothing slow happens under it
        self._models: OrderedDict[str, tuple[Loaded, int]] = OrderedDict()  # with their bytes
        self._dropped: dict[str, int] = {}  # by model id: how often a model was let go whose files may change
        self._loads: dict[str, Future[Loaded]] = {}  # under way
        self._downloads: dict[str, tuple[str, int, int]] = {}  # by model id: file, bytes so far, bytes in all
        self._traces: OrderedDict[str, tuple[Trace, int]] = OrderedDict()  # by the request's key, with their bytes
        self._let_go: OrderedDict[str, None] = OrderedDict()  # traces that nobody has asked for since
        self._used: dict[str, float] = {}  # when somebody asked for each trace last, by time.monotonic()
        self._trace_bytes = 0
        self._jobs: dict[str, Job] = {}  # by the request's key
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._request_bytes = 0
        self._places = Places(self.workers + self.max_waiting, MANY, OWN)  # of passes that run or wait
        self._turns = Turns("pass", self.workers, self.usage)
        # For loading what runs need: a slow download must not keep other runs from starting.
        self._loaders = ThreadPoolExecutor(self.workers + self.max_waiting, thread_name_prefix="load")
        if self.idle is not None:
            gone = threading.Event()
            weakref.finalize(self, gone.set)
            look = (weakref.ref(self), self.idle, gone)
            threading.Thread(target=_drop_idle, args=look, name="idle", daemon=True).start()

    # models

    def load(self, model_id: str) -> Loaded:
        """The model, from memory or disk. Two visitors who ask at once wait for one load. Raises CheckpointError, TooLarge."""
        return self._loading(model_id).result()

    def _loading(self, model_id: str) -> Future[Loaded]:
        """What gives the model: at once where it is in memory, else from a thread of its own."""
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
        def tell(name: str, done: int, total: int) -> None:
            with self._lock:
                self._downloads[model_id] = (name, done, total)
                waiting = [job for job in self._jobs.values() if job.request.model_id == model_id]
            for job in waiting:
                job.changed()

        def make() -> Loaded:
            with memory.guarded(self.device, f"Loading {model_id}", "Try a smaller model."):
                return self.load_model(model_id, device=self.device, dtype=self.dtype, progress=tell)

        try:
            work = time.thread_time()  # a download is no work
            loaded = self._with_room(make, self._drop_all)
            size = weight_bytes(loaded)
            self.usage.add(askers, time.thread_time() - work)
        except BaseException as error:
            with self._lock:
                self._loaded(model_id)
            future.set_exception(error)
            return
        with self._lock:
            self._loaded(model_id)
            self._models[model_id] = (loaded, size)
            while len(self._models) > self.max_models and self._weights > self._model_budget:
                self._drop_model(next(iter(self._models)))
        future.set_result(loaded)

    def _with_room(self, make: Callable[[], T], drop: Callable[[], None]) -> T:
        """What `make` makes; where that is too large, once more without what is only kept for later."""
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

    def weights(self, key: Hashable) -> tuple[int, ...]:
        """Whatever else than their keys decides the answers about runs, whose keys are in `key`: of each, which of the models
        that had its id so far. A model that is loaded again may come from files that have changed."""
        parts = key if isinstance(key, tuple) else (key,)
        with self._lock:
            runs = [self._requests[part] for part in parts if isinstance(part, str) and part in self._requests]
            return tuple(self._dropped.get(run.model_id, 0) for run in runs)

    def ready(self, model_id: str) -> Loaded | None:
        """The model if it is in memory now."""
        with self._lock:
            return self._models[model_id][0] if model_id in self._models else None

    # runs

    def run(self, request: Request) -> Trace:
        """The trace of this request, from memory or by running it. Raises Refused in its kinds, Busy among them."""
        return self.submit(request).result()

    def submit(self, request: Request, listener: Callable[[], object] | None = None) -> Waiting[Trace]:
        """Begin a run, or join one, without waiting for it. Raises Busy; everything else comes with Waiting.result().

        `listener` is called, in some thread, whenever Waiting.progress has changed, and when the run has ended.
        """
        job = self._job(request, waiting=1)
        if listener is not None:
            job.listeners.append(listener)
            job.future.add_done_callback(lambda _: listener())
        return Waiting(request, job.future, partial(self._progress_of, job), partial(self._leave, job))

    def begin(self, request: Request, aside: bool = False) -> None:
        """Begin a run that nobody waits for yet; it is cancelled when everybody who has joined it meanwhile cancels."""
        self._job(request, waiting=0, urgency=ASIDE if aside else TYPED)

    def _job(self, request: Request, waiting: int, urgency: int = TYPED) -> Job:
        what = "A request of this size"
        memory.admit(request.nbytes, LARGEST_REQUEST, what, "Shorten the text, or edit fewer cells.")
        key = request.key
        with self._lock:
            self._remember(request)
            if key in self._traces:
                self._traces.move_to_end(key)
                self._let_go.pop(key, None)
                self._used[key] = time.monotonic()
                job = Job(request, stage="done")
                job.future.set_result(self._traces[key][0])
                return job
            job = self._jobs.get(key)
            is_new = job is None
            if job is None:
                leave_place = self._places.take(current_askers())
                job = self._jobs[key] = Job(request, urgency=urgency, leave_place=leave_place)
            else:
                job.askers.join(current_askers())
                job.urgency = min(job.urgency, urgency)
                if job.task is not None:
                    job.task.urgency = job.urgency
            job.waiting += waiting
        if is_new:
            self._loading(request.model_id).add_done_callback(partial(self._line_up, job))
        return job

    def trace(self, key: str) -> Trace:
        """The trace of a request that was submitted before, run again if it was dropped. Raises Unknown for any other key."""
        return self.run(self.request_of(key))

    def request_of(self, key: str) -> Request:
        """The request of this key. Raises Unknown if it was never submitted, or so long ago that it is forgotten."""
        with self._lock:
            if key not in self._requests:
                raise Unknown("This run is no longer known. Reload the page.")
            return self._requests[key]

    def again(self, make: Callable[[], T], aside: bool = False) -> Future[T]:
        """Something that runs a model once more, when its turn among the passes comes. Raises Busy."""
        leave_place = self._places.take(current_askers())
        future = self._turns.submit(partial(self._guarded, make), ASIDE if aside else QUESTION)
        future.add_done_callback(lambda _: leave_place())
        return future

    def _guarded(self, make: Callable[[], T]) -> T:
        with memory.guarded(self.device, "This run"):
            return make()

    def _line_up(self, job: Job, loading: Future[Loaded]) -> None:
        """The model is there, or cannot be: wait for a turn, which takes no thread."""
        if (error := loading.exception()) is not None:
            self._end(job, error)
            return
        with self._lock:
            if job.stage == "loading":
                job.stage = "waiting"
        job.changed()
        run = partial(self._run, loading.result(), job)
        job.task = self._turns.add(run, job.urgency, job.askers, job.due, job.is_long)

    def _run(self, loaded: Loaded, job: Job) -> None:
        """In a turn: the pass itself, unless nobody waits for it any longer or it went along with another's."""
        with self._lock:
            if job.cancelled.is_set() or job.stage != "waiting":
                return
            jobs = [job, *(self._alike(job) if loaded.config.kind != "encoder-decoder" else ())]
            for one in jobs:
                one.stage, one.begun = "running", time.monotonic()
        for one in jobs:
            job.askers.join(one.askers)  # each pays its part of the pass
            if one.task is not None:
                self._turns.drop(one.task)
            one.changed()
        if len(jobs) > 1:
            jobs = self._run_together(loaded, jobs)
        for one in jobs:
            self._run_alone(loaded, one)

    def _run_alone(self, loaded: Loaded, job: Job) -> None:
        def make() -> Trace:
            return self._guarded(lambda: run_request(loaded, job, self.watch))

        try:
            found: Trace | BaseException = self._with_room(make, self._drop_traces)
        except BaseException as error:
            found = error
        self._end(job, found)

    def _run_together(self, loaded: Loaded, jobs: list[Job]) -> list[Job]:
        """One pass for all of them. Those are left over, each to run and to be refused by itself, that it has not ended."""
        try:
            found = self._guarded(lambda: run_together(loaded, jobs))
        except Refused:
            return jobs
        except BaseException as error:
            found = [error for _ in jobs]
        for job, trace_or_error in zip(jobs, found, strict=True):
            self._end(job, trace_or_error)
        return []

    def _end(self, job: Job, found: Trace | BaseException) -> None:
        """Keep the trace or forget the run, and only then tell those who wait."""
        size = found.nbytes if isinstance(found, Trace) else 0
        with self._lock:
            is_current = self._jobs.get(job.request.key) is job
            if is_current:
                del self._jobs[job.request.key]
            if is_current and isinstance(found, Trace):
                self._keep(job.request.key, found, size)
            first = job.stage != "done"
            job.stage = "done"
        if not first:
            return
        job.leave_place()
        try:
            self.ended(_told(job, found, size))
        except Exception:  # whatever an operator's own counting comes to, those who wait hear of the end
            log.exception("Counting a run that has ended failed")
        if isinstance(found, Trace):
            job.future.set_result(found)
        else:
            job.future.set_exception(found)

    def _leave(self, job: Job) -> None:
        """One of those who waited for a run waits no longer. When nobody does, it never begins, or ends at its next layer."""
        with self._lock:
            job.waiting -= 1
            if job.waiting > 0 or self._jobs.get(job.request.key) is not job:
                return
            job.cancelled.set()
            del self._jobs[job.request.key]  # whoever asks again from now on gets a run of their own
            begun = job.stage == "running"
        if job.task is not None:
            self._turns.drop(job.task)
        if not begun:
            self._end(job, RunCancelled(CANCELLED))

    # what there is to say

    def _progress_of(self, job: Job) -> Progress:
        """How far a run is."""
        if job.future.done():
            return Progress("done")
        file = self._downloads.get(job.request.model_id, ("", 0, 0)) if job.stage == "loading" else ("", 0, 0)
        return Progress(job.stage, *file, job.layers_done, job.layers_total, job.part, job.parts, self._ahead(job))

    def _ahead(self, job: Job) -> int:
        """How many runs and questions have their turn before this one."""
        return self._turns.ahead(job.task) if job.stage == "waiting" and job.task is not None else 0

    def drop_idle(self, seconds: float) -> None:
        """Drop every trace that nobody asked about for so long."""
        with self._lock:
            before = time.monotonic() - seconds
            for key in [key for key in self._traces if self._used[key] <= before]:
                self._drop_trace(key)

    def let_go(self, key: str) -> None:
        """A viewer left this run. Of runs without a request after that only the newest stay."""
        with self._lock:
            if key not in self._traces:
                return
            self._let_go[key] = None
            self._let_go.move_to_end(key)
            if len(self._let_go) > LET_GO:
                self._drop_trace(next(iter(self._let_go)))

    def status(self) -> dict[str, Any]:
        """The memory in use now, for the operator: counts, bytes and the device."""
        with self._lock:
            found = {
                "device": str(self.device),
                "dtype": dtype_name(self.dtype),
                "models": [*self._models],
                "traces": len(self._traces),
                "trace_bytes": self._trace_bytes,
                "running_or_waiting": self._places.taken,
            }
        return found | {"free_bytes": memory.free_bytes(self.device)}

    # bookkeeping; every method below is called under the lock

    def _alike(self, job: Job) -> list[Job]:
        """Those that wait as urgently for short texts of the same model, and so may run with this one in one pass."""
        if not is_short(job.request):
            return []
        size = len(job.request.texts[0])
        others = (other for other in self._jobs.values() if other.stage == "waiting" and other.urgency == job.urgency)
        found = [
            other
            for other in others
            if other is not job
            and other.request.model_id == job.request.model_id
            and is_short(other.request)
            and len(other.request.texts[0]) <= ALIKE * size
        ]
        return sorted(found, key=lambda other: other.due)[: TOGETHER - 1]

    def _loaded(self, model_id: str) -> None:
        del self._loads[model_id]
        self._downloads.pop(model_id, None)

    def _remember(self, request: Request) -> None:
        if request.key not in self._requests:
            self._requests[request.key] = request
            self._request_bytes += request.nbytes
        self._requests.move_to_end(request.key)
        while self._request_bytes > REMEMBERED_BYTES:
            _, oldest = self._requests.popitem(last=False)
            self._request_bytes -= oldest.nbytes

    def _keep(self, key: str, found: Trace, size: int) -> None:
        """The newest stays whatever its size: somebody is about to look at it."""
        self._traces[key] = (found, size)
        self._used[key] = time.monotonic()
        self._trace_bytes += size
        while len(self._traces) > 1 and (len(self._traces) > self.max_traces or self._trace_bytes > self._trace_budget):
            self._drop_trace(next(iter(self._traces)))

    def _drop_trace(self, key: str) -> None:
        _, size = self._traces.pop(key)
        self._let_go.pop(key, None)
        del self._used[key]
        self._trace_bytes -= size

    def _drop_traces(self) -> None:
        for key in [*self._traces]:
            self._drop_trace(key)

    def _drop_all(self) -> None:
        for model_id in [*self._models]:
            self._drop_model(model_id)

    def forget(self, model_id: str) -> None:
        """Let go of a model, and of what ran on it."""
        with self._lock:
            if model_id in self._models:
                self._drop_model(model_id)

    @property
    def _weights(self) -> int:
        return sum(size for _, size in self._models.values())

    def _drop_model(self, model_id: str) -> None:
        """With its traces, since a trace holds its model."""
        loaded, _ = self._models.pop(model_id)
        if loaded.spec.source not in ("shipped", "package"):  # those come with their hashes
            self._dropped[model_id] = self._dropped.get(model_id, 0) + 1
        for key in [key for key, (found, _) in self._traces.items() if found.loaded is loaded]:
            self._drop_trace(key)


def _drop_idle(engine: weakref.ref[Engine], seconds: float, gone: threading.Event) -> None:
    """Look now and then, for as long as there is the engine."""
    while not gone.wait(min(seconds / 4, LOOK)):
        there = engine()
        try:
            if there is not None:
                there.drop_idle(seconds)
        except Exception:
            log.exception("Dropping what nobody asks about failed, and is done again")
        del there


def _told(job: Job, found: Trace | BaseException, size: int) -> RunEnded:
    """What the operator hears of a run that has ended now."""
    now = time.monotonic()
    begun = now if job.begun is None else job.begun
    outcome, tokens = type(found).__name__, 0
    if isinstance(found, Trace):
        outcome, tokens = "done", sum(map(len, (*found.sources, *(found.targets or ()))))
    return RunEnded(job.request.model_id, outcome, tokens, begun - job.asked, now - begun, size)


def is_short(request: Request) -> bool:
    """Whether it is one short text as it stands, which may share a pass with others."""
    plain = len(request.texts) == 1 and request.target_text is None and not request.interventions and not request.write
    return plain and len(request.texts[0]) <= SHORT


def weight_bytes(loaded: Loaded) -> int:
    """Of the parameters, each that is shared once."""
    return sum(parameter.nbytes for parameter in loaded.model.parameters())


def run_request(loaded: Loaded, job: Job, watch: Watch) -> Trace:
    """The trace of a job's request. Raises RunCancelled at the next layer or token once nobody waits for it."""

    # The trace keeps the hooks around it, for second passes. The job keeps the trace: weakly, or neither would ever go.
    known = weakref.ref(job)

    def check_cancelled() -> None:
        job = known()
        if job is not None and job.cancelled.is_set():
            raise RunCancelled(CANCELLED)

    def count_layer(_: Any) -> None:
        check_cancelled()
        job = known()
        if job is not None and not job.future.done():
            job.passed_layer()

    request = job.request
    chat = chat_of(loaded, request) if request.chat else None
    texts, target = with_continuation(loaded, request, check_cancelled) if chat is None else ([], None)
    ends = _ends_of_layers(loaded)
    job.layers_done, job.layers_total = 0, len(ends)
    show = watch(request, job.future, job.changed)

    def tell(so_far: Trace) -> None:
        job.parts = so_far.chunks
        show(so_far)

    with hooked(loaded.model, dict.fromkeys(ends, ReadHook(count_layer))):
        if chat is not None:
            return trace_tokens(loaded, chat, None, request.interventions, tell)
        return trace(
            loaded,
            texts,
            target,
            interventions=request.interventions,
            padding_side=request.padding_side,
            watch=tell,
        )


def chat_of(loaded: Loaded, request: Request) -> tuple[Tokens, ...]:
    """The texts of a request as conversations, each what a user says, with what was answered so far.

    Raises TextError, and GenerationError for a conversation to be continued before its run.
    """
    if request.write:
        raise GenerationError("A conversation is not continued before its run. Give the answer so far as its target.")
    chats = [said_by_user(text) for text in request.texts]
    return chat_sources(loaded, chats, request.padding_side, answer=request.target_text or "")


def run_together(loaded: Loaded, jobs: Sequence[Job]) -> list[Trace | RunCancelled]:
    """The traces of short texts from one pass. Raises RunCancelled at the next layer once nobody waits for any of them."""
    going = [*jobs]  # none once the pass is over: the traces keep its hooks, for second passes that are nobody's run

    def count_layer(_: Any) -> None:
        if going and all(job.cancelled.is_set() for job in going):
            raise RunCancelled(CANCELLED)
        for job in going:
            job.passed_layer()

    ends = _ends_of_layers(loaded)
    for job in jobs:
        job.layers_done, job.layers_total = 0, len(ends)
    texts = [
        chat_of(loaded, job.request)[0] if job.request.chat else loaded.tokens(job.request.texts[0]) for job in jobs
    ]
    try:
        with hooked(loaded.model, dict.fromkeys(ends, ReadHook(count_layer))):
            found = [as_trace(run) for run in trace_together(loaded, texts)]
    finally:
        going.clear()
    return [RunCancelled(CANCELLED) if job.cancelled.is_set() else its for job, its in zip(jobs, found, strict=True)]


def _ends_of_layers(loaded: Loaded) -> list[str]:
    return [name for name in hook_points(loaded.model) if name.endswith("hook_resid_post")]
