"""Engine: one process's models and traces, shared by every visitor, bounded in memory, threads and patience."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from . import memory
from .checkpoints import Loaded, load
from .errors import GenerationError, Refused
from .generate import stream
from .hooks import hook_points, hooked
from .interventions import Intervention
from .text import tokenize
from .trace import Trace, target_tokens, trace

# How a decoder goes on with a text: the likeliest token each time soon turns in circles. The same text gets the same words.
GOING_ON: dict[str, Any] = {"temperature": 0.7, "top_k": 40, "seed": 1}
LONGEST_WRITTEN = 128  # tokens of a target that a model writes itself

Progress = Callable[[str, int, int], None]  # file name, bytes so far, bytes in all


class Stopped(Refused):
    """A run that everybody who waited for it gave up."""


class Busy(Refused):
    """Too many runs are waiting already; says how many, and to try again."""


@dataclass(frozen=True)
class Request:
    """Everything that decides a run, and nothing else: the cache's key and the URL's content.

    Before the run a model may write. `write` is how many tokens it puts behind the text, drawn as GOING_ON says, or behind
    the target of an encoder-decoder, the likeliest each time; the run is of what was there with what was added. An
    encoder-decoder that is given no target writes one, as far as it can.
    """

    model_id: str
    texts: tuple[str, ...]
    target_text: str | None = None
    interventions: tuple[Intervention, ...] = ()
    padding_side: Literal["left", "right"] = "right"
    write: int = 0

    @property
    def key(self) -> str:
        """A name for this run, safe in a URL, that cannot be guessed without knowing its text."""
        edits = [(type(edit).__name__, asdict(edit)) for edit in self.interventions]
        parts = (self.model_id, self.texts, self.target_text, edits, self.padding_side, self.write)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def pick_device() -> torch.device:
    """cuda, then mps, then cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


@dataclass(eq=False)
class _Job:
    """A run under way, and how many wait for it."""

    future: Future[Trace]
    waiting: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    stage: Literal["loading", "waiting", "running"] = "loading"
    layers: tuple[int, int] = (0, 0)  # that the pass has left, of how many


@dataclass(eq=False)
class Ticket:
    """What somebody holds who waits for a run. Any number of tickets may be for the same one."""

    engine: Engine
    request: Request
    job: _Job
    given_back: bool = False

    def done(self) -> bool:
        return self.job.future.done()

    def wait(self, seconds: float) -> bool:
        """Whether the run has ended, after at most this long."""
        return bool(wait([self.job.future], seconds).done)

    def result(self) -> Trace:
        """The trace, as Engine.run gives it. Raises Refused in its kinds: Stopped where everybody has cancelled."""
        return self.job.future.result()

    @property
    def stage(self) -> Literal["loading", "waiting", "running", "done"]:
        return "done" if self.done() else self.job.stage

    @property
    def progress(self) -> tuple[str, int, int] | None:
        """While the model is downloaded: file name, bytes so far, bytes in all."""
        return self.engine.progress_of(self.request.model_id) if self.stage == "loading" else None

    @property
    def layers(self) -> tuple[int, int]:
        """While the model runs: how many layers the pass has left, of how many; 0 of 0 before it begins."""
        return self.job.layers

    def cancel(self) -> None:
        """Wait no longer. When nobody does, a run that has not begun never will, and one that has ends at its next layer."""
        self.engine.give_up(self)


@dataclass(eq=False)
class Engine:
    """Loads models and runs requests. Any number of threads may call it.

    At most `workers` passes run at once and `max_waiting` more wait. Traces are dropped, oldest use first, when there are
    more than `max_traces` or they hold more than `max_trace_bytes`; models when there are more than `max_models` and these
    hold more than `max_model_bytes`, so that any number of small ones stays. `load_model` is what turns a model id into a
    model: an operator who allows less passes a stricter one. `watch` says for a request, and for
    what its run will give, who is shown how far it has come, as trace() shows it.
    """

    device: torch.device = field(default_factory=pick_device)
    dtype: torch.dtype = torch.float32
    max_models: int = 2
    max_model_bytes: int = 1 << 28
    max_traces: int = 64
    max_trace_bytes: int = 1 << 30
    max_waiting: int = 64
    workers: int = 1
    load_model: Callable[..., Loaded] = load
    watch: Callable[[Request, Future[Trace]], Callable[[Trace], object]] = lambda *_: lambda _: None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._models: OrderedDict[str, Future[Loaded]] = OrderedDict()
        self._traces: OrderedDict[str, Future[Trace]] = OrderedDict()
        self._requests: OrderedDict[str, Request] = OrderedDict()  # small, so that an old link still finds its run
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="pass")
        # Those that start runs and wait for their model: a slow download must not keep others from theirs.
        self._starters = ThreadPoolExecutor(self.workers + self.max_waiting, thread_name_prefix="start")
        self._waiting = 0
        self._jobs: dict[str, _Job] = {}  # by the request's key
        self._progress: dict[str, tuple[str, int, int]] = {}  # by model id, while it is downloaded

    def load(self, model_id: str, progress: Progress | None = None) -> Loaded:
        """The model, from memory or disk. Two visitors who ask at once wait for one load. Raises CheckpointError."""

        def tell(name: str, done: int, total: int) -> None:
            self._progress[model_id] = (name, done, total)
            if progress is not None:
                progress(name, done, total)

        def make() -> Loaded:
            try:
                return self.load_model(model_id, device=self.device, dtype=self.dtype, progress=tell)
            finally:
                self._progress.pop(model_id, None)

        with self._lock:
            future, mine = self._claim(self._models, model_id)
        if mine:
            self._finish(self._models, model_id, future, make)
            with self._lock:
                self._drop_models()
        return future.result()

    def run(self, request: Request) -> Trace:
        """The trace of this request, from memory or by running it. Raises Refused in its kinds, Busy among them."""
        return self.submit(request).result()

    def submit(self, request: Request) -> Ticket:
        """Begin a run, or join one, without waiting for it. Raises Busy; everything else comes with Ticket.result()."""
        with self._lock:
            self._remember(request)
            known, job = request.key in self._traces, self._jobs.get(request.key)
            if not known and self._waiting >= self.workers + self.max_waiting:
                raise Busy(f"{self._waiting} sentences are waiting already. Try again in a few seconds.")
            future, mine = self._claim(self._traces, request.key)
            if mine or job is None:
                job = _Job(future)
            if mine:
                self._jobs[request.key] = job
            job.waiting += 1
            self._waiting += mine
        if mine:
            self._starters.submit(self._start, request, job)
        return Ticket(self, request, job)

    def _start(self, request: Request, job: _Job) -> None:
        """In a thread of its own: load the model, wait for a turn, run. Who waits is told when the books are in order."""

        def go() -> Trace:
            job.stage = "running"
            return _run(loaded, request, job, self.watch(request, job.future))

        try:
            loaded = self.load(request.model_id)
            job.stage = "waiting"
            found: Trace | BaseException = self._pool.submit(go).result()
        except BaseException as error:
            found = error
        with self._lock:
            if self._jobs.get(request.key) is job:
                del self._jobs[request.key]
            self._waiting -= 1
        if isinstance(found, Trace):
            job.future.set_result(found)
            with self._lock:
                self._drop_traces()
        else:
            self._fail(self._traces, request.key, job.future, found)

    def give_up(self, ticket: Ticket) -> None:
        """What Ticket.cancel does."""
        with self._lock:
            if ticket.given_back:
                return
            ticket.given_back = True
            ticket.job.waiting -= 1
            if (
                ticket.job.waiting > 0
                or ticket.job.future.done()
                or self._jobs.get(ticket.request.key) is not ticket.job
            ):
                return
            ticket.job.stop.set()
            # Whoever asks again from now on gets a run of their own.
            if self._traces.get(ticket.request.key) is ticket.job.future:
                del self._traces[ticket.request.key]
            del self._jobs[ticket.request.key]

    def ready(self, model_id: str) -> Loaded | None:
        """The model if it is in memory now."""
        with self._lock:
            future = self._models.get(model_id)
        return future.result() if future is not None and _is_ready(future) else None

    def progress_of(self, model_id: str) -> tuple[str, int, int] | None:
        """While a model is downloaded: file name, bytes so far, bytes in all."""
        return self._progress.get(model_id)

    def trace(self, key: str) -> Trace:
        """The trace of a request that was run before, run again if it was dropped. Raises KeyError for an unknown key."""
        with self._lock:
            request = self._requests[key]
        return self.run(request)

    def status(self) -> dict[str, Any]:
        """What is held now, for the operator: counts, bytes and the device."""
        with self._lock:
            traces = [f.result() for f in self._traces.values() if _is_ready(f)]
            models = [name for name, f in self._models.items() if _is_ready(f)]
            return {
                "device": str(self.device),
                "dtype": str(self.dtype).removeprefix("torch."),
                "models": models,
                "traces": len(traces),
                "trace_bytes": sum(t.bytes for t in traces),
                "running_or_waiting": self._waiting,
                "free_bytes": memory.free_bytes(self.device),
            }

    # bookkeeping; every method below but _finish and _fail is called under the lock

    def _remember(self, request: Request) -> None:
        self._requests[request.key] = request
        self._requests.move_to_end(request.key)
        while len(self._requests) > 64 * self.max_traces:
            self._requests.popitem(last=False)

    def _claim(self, cache: OrderedDict[str, Future[Any]], key: str) -> tuple[Future[Any], bool]:
        """The future of this key, and whether the caller is the one to fulfil it."""
        if key in cache:
            cache.move_to_end(key)
            return cache[key], False
        cache[key] = Future()
        return cache[key], True

    def _finish(
        self, cache: OrderedDict[str, Future[Any]], key: str, future: Future[Any], make: Callable[[], Any]
    ) -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            self._fail(cache, key, future, error)

    def _fail(self, cache: OrderedDict[str, Future[Any]], key: str, future: Future[Any], error: BaseException) -> None:
        """Tell everybody who waits, and forget the key: the next visitor may have better luck."""
        with self._lock:
            if cache.get(key) is future:
                del cache[key]
        if not future.done():
            future.set_exception(error)

    def _drop_models(self) -> None:
        held = {name: weight_bytes(f.result()) if _is_ready(f) else 0 for name, f in self._models.items()}
        while len(self._models) > self.max_models and sum(held.values()) > self.max_model_bytes:
            name, future = next(iter(self._models.items()))
            del self._models[name], held[name]
            if not _is_ready(future):
                continue
            for key in [k for k, f in self._traces.items() if _is_ready(f) and f.result().loaded is future.result()]:
                del self._traces[key]  # a trace holds its model

    def _drop_traces(self) -> None:
        held = [(key, f.result().bytes) for key, f in self._traces.items() if _is_ready(f)]
        total = sum(size for _, size in held)
        for key, size in held[:-1]:  # the newest stays whatever its size: somebody is about to look at it
            if len(self._traces) <= self.max_traces and total <= self.max_trace_bytes:
                break
            del self._traces[key]
            total -= size


def _is_ready(future: Future[Any]) -> bool:
    return future.done() and future.exception() is None


def weight_bytes(loaded: Loaded) -> int:
    """Of the parameters, each that is shared once."""
    return sum(parameter.numel() * parameter.element_size() for parameter in loaded.model.parameters())


def _run(loaded: Loaded, request: Request, job: _Job, watch: Callable[[Trace], object]) -> Trace:
    def look(_: Any) -> None:
        if job.stop.is_set():
            raise Stopped("This run was stopped.")

    def left(_: Any) -> None:
        look(None)
        done, of = job.layers
        job.layers = (min(done + 1, of), of)

    look(None)
    texts, target = written(loaded, request, look)
    ends = [name for name in hook_points(loaded.model) if name.endswith("hook_resid_post")]
    job.layers = (0, len(ends))
    with hooked(loaded.model, dict.fromkeys(ends, left)):
        return trace(
            loaded,
            texts,
            target,
            interventions=request.interventions,
            padding_side=request.padding_side,
            watch=watch,
        )


def written(
    loaded: Loaded, request: Request, look: Callable[[Any], None] = lambda _: None
) -> tuple[list[str], str | None]:
    """The texts and the target of a request, with what the model writes first. `look` is called at every token.

    Raises GenerationError where the model is asked to write and cannot, or more texts than one are to be written on.
    """
    texts, target = list(request.texts), request.target_text
    pair = loaded.config.kind == "encoder-decoder"
    can = loaded.model.head is not None and loaded.tokenizer is not None and loaded.start_id is not None
    n = LONGEST_WRITTEN if pair and can and target is None and not request.write else request.write
    if not n:
        return texts, target
    if len(texts) != 1:
        raise GenerationError(f"One text can be written on at a time, not {len(texts)}.")
    if pair:
        before = target_tokens(loaded, target, None, 1, "right")[0].ids
    else:
        before = tokenize(loaded.tokenizer, texts[0]).ids
    if loaded.config.has_position_table:
        n = min(n, loaded.config.n_ctx - len(before))
    new: list[int] = []
    if n > 0:
        how = {} if pair else GOING_ON
        for step in stream(loaded, texts[0], target=target, max_tokens=n, show=1, **how):
            look(None)
            if (chosen := step.chosen[0]) is not None and not chosen.ends:
                new.append(chosen.id)
    if pair:
        return texts, _behind(loaded, target or "", before, new)
    return [_behind(loaded, texts[0], before, new)], None


def _behind(loaded: Loaded, text: str, before: tuple[int, ...], new: list[int]) -> str:
    """The text with what the new tokens add to it. Half of a character at the end is left out."""
    assert loaded.tokenizer is not None
    alone, joined = (loaded.tokenizer.decode([*ids], skip_special_tokens=True) for ids in (before, [*before, *new]))
    added = joined.removeprefix(alone) if joined.startswith(alone) else loaded.tokenizer.decode(new)
    return text + added.rstrip("\ufffd")
