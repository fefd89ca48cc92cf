"""Bytes alive in a traced pass, the longest text that fits, and measurements on this machine."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ..device import check_fits, dtype_name, free_bytes
from ..errors import ConfigError, HeadlightError, TooLarge
from ..model.config import ModelConfig
from ..model.transformer import Transformer, to_dtype
from .parameters import with_layers
from .plan import Memory, memory_plan, plan
from .tracing import LiveBytes, Ran, attending, foretell, ran
from .workload import Workload, as_workload, check_choice

_ONE_AT_A_TIME = threading.Lock()  # the model without data is reused from one size to the next


def check_countable(config: ModelConfig, work: Workload) -> None:
    """Raises ConfigError for options that a trace does not support: recomputation, dropout, chunked prefill, eager biases and windows."""
    if work.training and (work.recompute != "none" or work.dropout):
        raise ConfigError("bytes alive at once are counted without recompute and without dropout")
    if work.attention == "eager" and ran(config, work) != "eager":
        raise ConfigError(
            "bytes alive at once are counted for eager attention without a window or a bias: take spelled_out or flash"
        )
    if work.rank:
        raise ConfigError(
            f"bytes alive at once are counted where all weights are trained: leave rank ({work.rank}) at 0"
        )
    if work.piece:
        raise ConfigError(
            f"bytes alive at once are counted for a prompt that is read at once: leave piece ({work.piece}) at 0"
        )


def live_peak_bytes(config: ModelConfig, work: Workload) -> int:
    """Peak of live bytes in a run, or in a training step with its optimizer's state.

    A training step starts with the gradients of the previous one and adds to them, as in core.plan.live_memory. The result is at most
    memory_plan's total, which bounds the temporary buffers. Fused attention is the CPU's kernel. Raises ConfigError as check_alive
    and Workload.check do.
    """
    work.check(config)
    check_countable(config, work)
    plan = memory_plan(config, work)
    # With a window or another cache format, the cache is not the keys and values of the pass, and is counted separately.
    keep = (
        not work.training
        and config.window is None
        and dtype_name(work.kv_dtype or work.dtype) == dtype_name(work.dtype)
    )
    with _ONE_AT_A_TIME:
        weights, peak = _traced(config, work, keep)
    if work.training:
        return plan.masters + plan.optimizer + peak
    return plan.weights + (0 if keep else plan.kv_cache) + peak - weights


def _traced(config: ModelConfig, work: Workload, keep: bool) -> tuple[int, int]:
    """Bytes of the weights, and peak bytes of all tensors. The peak includes the cache if `keep` is True."""
    way = ran(config, work)
    model, mode = _model_without_data(config, dtype_name(work.dtype), way)
    with ExitStack() as contexts:
        contexts.enter_context(_tensors(mode))
        contexts.enter_context(torch.enable_grad() if work.training else torch.no_grad())
        live = contexts.enter_context(LiveBytes())
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
        if work.training:
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
                live.track(parameter.grad)
        ids = torch.zeros(work.batch, work.source_len, dtype=torch.long)
        target = torch.zeros(work.batch, work.target_len, dtype=torch.long) if work.target_len else None
        with attending(model, way, keep=keep):
            out = foretell(model, ids, target, last=work.logit_positions(config) == 1)
        if work.training:
            wanted = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long)
            loss = F.cross_entropy(out.flatten(0, 1), wanted)
            del out
            loss.backward()
            model.zero_grad(set_to_none=True)
        return weights, live.peak


@lru_cache(maxsize=2)
def _model_without_data(config: ModelConfig, dtype: str, way: Ran) -> tuple[Transformer, FakeTensorMode | None]:
    """A model that takes no memory: on the meta device, or on fake tensors for the fused kernel, which differs on meta."""
    mode = FakeTensorMode() if way == "flash" else None
    with _tensors(mode):
        return to_dtype(Transformer(config), getattr(torch, dtype)).eval(), mode


@contextmanager
def _tensors(mode: FakeTensorMode | None) -> Iterator[None]:
    with mode if mode is not None else torch.device("meta"), nullcontext():
        yield


Vary = Literal["source_len", "target_len", "batch", "layers"]
Counted = Literal["bound", "alive"]


@dataclass(frozen=True)
class Fit:
    """`n` takes `bytes` and fits; n + 1 takes `next_bytes` and does not. n is 0 if not even 1 fits.

    `counted`: the bytes are an upper bound ("bound"), so that n + 1 may fit after all, or live bytes of a trace ("alive").
    `ceiling` is the model's own limit, the rows of its table of positions; None if it has no limit.
    """

    vary: str
    budget: int
    n: int
    bytes: int
    next_bytes: int
    ceiling: int | None
    memory: Memory | None  # of n in closed form, by purpose; None if nothing fits
    counted: Counted = "bound"

    @property
    def usable(self) -> int:
        """n, or the ceiling if that is lower."""
        return self.n if self.ceiling is None else min(self.n, self.ceiling)

    def to_dict(self) -> dict[str, Any]:
        memory = None if self.memory is None else self.memory.to_dict()
        return asdict(self) | {"memory": memory, "usable": self.usable}


def longest_fit(
    config: ModelConfig,
    budget: int,
    workload: Workload | None = None,
    *,
    vary: Vary = "source_len",
    counted: Counted = "bound",
    **options: Any,
) -> Fit:
    """The largest value of `vary` whose plan takes at most `budget` bytes, with the rest of the workload unchanged.

    `options` are the fields of a workload by name. Memory never shrinks with larger values, so the answer is found by bisection.
    "layers" varies every stack of the model. With counted="alive" the bytes are those of a trace (core.plan.live_memory), which takes
    seconds, and at least as much fits as by the bound. Raises ConfigError for other choices, as plan() does, and as check_alive does.
    """
    check_choice("vary", vary, Vary)
    check_choice("counted", counted, Counted)
    if vary == "target_len" and config.kind != "encoder-decoder":
        raise ConfigError(
            f"vary='target_len' is for encoder-decoders; this model is {config.kind}-only: vary source_len"
        )

    if vary == "source_len":
        options = {"source_len": 1, **options} if workload is None else options
    work = as_workload(workload, options)

    def subject(n: int) -> tuple[ModelConfig, Workload]:
        if vary == "layers":
            return with_layers(config, n), work
        change: dict[str, Any] = {vary: n}
        return config, replace(work, **change)

    def bound(n: int) -> int:
        return memory_plan(*subject(n)).total

    def alive(n: int) -> int:
        longer, at = subject(n)
        if vary in ("source_len", "target_len") and longer.has_position_table:  # a longer table is not counted
            longer = replace(longer, n_ctx=max(longer.n_ctx, n))
            extra = memory_plan(longer, at).total - memory_plan(config, at).total
            return live_peak_bytes(longer, at) - extra
        return live_peak_bytes(longer, at)

    n, total = largest_within(budget, bound), bound
    if counted == "alive":
        total = cache(alive)  # each call is slow
        n = _largest_near(total, budget, n, bound(n + 1) - bound(n) if n else 0)
    best = memory_plan(*subject(n)) if n else None
    ceiling = config.longest_text if vary in ("source_len", "target_len") else None
    return Fit(vary, budget, n, total(n) if n else 0, total(n + 1), ceiling, best, counted)


def largest_within(budget: int, bytes_of: Callable[[int], int], most: int | None = None, start: int = 1) -> int:
    """The largest n up to `most` whose bytes are within the budget, by bisection from `start`; 0 if not even 1 fits."""
    low, high = 0, max(1, start if most is None else min(start, most))  # low fits, high is not known to
    while bytes_of(high) <= budget:
        if high == most:
            return high
        low, high = high, 2 * high if most is None else min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_of(middle) <= budget else (low, middle)
    return low


def _largest_near(total: Callable[[int], int], budget: int, n: int, slope: int) -> int:
    """The same, by interpolation from a nearby n with few calls. `slope` estimates the bytes of one more."""
    low, high = 0, None
    points: list[tuple[int, int]] = []
    guess = max(1, n)
    while high is None or high - low > 1:
        points = sorted([*points, (guess, total(guess))], key=lambda point: abs(point[1] - budget))[:2]
        low, high = (guess, high) if total(guess) <= budget else (low, guess)
        if len(points) == 2:
            (a, at_a), (b, at_b) = points
            slope = max(1, abs(at_a - at_b) // abs(a - b))
        nearest, at = points[0]
        guess = nearest + (budget - at) // max(1, slope)
        guess = max(guess, low + 1) if high is None else min(max(guess, low + 1), high - 1)
    return low


MAX_FLOPS = 10**11  # of one measurement: some seconds on two cores
SHARE = 2  # one part in so many of the free memory may be used
WHAT = "A run of this model on a single token"
FLOAT32 = "A run here is in float32, so that it can be compared: choose float32 (it is {dtype}), and the same data type for weights and cache."
PLAIN = "A run here keeps everything and drops nothing: choose recompute “none” and switch dropout off."
ALL_WEIGHTS = "A run here trains all weights: choose a rank of 0, which is no adapters (it is {rank})."
TOO_MUCH_WORK = (
    "A run on a single source token would take {needed:,.0f} GFLOP, and at most {allowed:,.0f} are run here. "
    "Try a smaller batch, fewer layers, or a shorter target."
)
BUSY = "Others are measuring just now. Press the button again in a few seconds."
WAITING = 4  # runs that may wait for the worker thread
KEPT = 64  # runs whose results are kept


@dataclass(frozen=True)
class MeasurementSetup:
    """A model and the workload to measure."""

    config: ModelConfig
    workload: Workload


@dataclass(frozen=True)
class Point:
    """One run. All sizes are bytes; `predicted` numbers are those of the planner."""

    n: int
    measured: int  # peak
    predicted: int
    weights: int
    predicted_weights: int
    kept: int  # after the pass: a decoder's KV cache, or the tensors that autograd keeps
    predicted_kept: int
    seconds: float


@dataclass(frozen=True)
class Measured:
    """Runs at several lengths, with the attention implementation and the batch size that were used."""

    ran: Ran
    batch: int
    points: tuple[Point, ...]


def free() -> int:
    """Free bytes for a run on this machine's CPU."""
    return free_bytes(torch.device("cpu"))


def largest_safe_setup(subject: MeasurementSetup, budget: int) -> tuple[MeasurementSetup, tuple[int, ...]]:
    """The subject with the largest batch that can be measured at its own length, and lengths() of it.

    A long text says more than a large batch of short ones, so the batch is halved until the length is safe, or 1 is left. Raises as
    lengths() does.
    """
    tried = subject
    while True:
        is_last = tried.workload.batch == 1
        try:
            sizes = lengths(tried, budget)
            if is_last or sizes[-1] >= subject.workload.source_len:
                return tried, sizes
        except TooLarge:
            if is_last:
                raise
        tried = replace(tried, workload=replace(tried.workload, batch=tried.workload.batch // 2))


def lengths(subject: MeasurementSetup, budget: int) -> tuple[int, ...]:
    """The source lengths to run: the longest safe one, and a half and a quarter of it.

    A length is safe if it is predicted to take at most `budget` bytes, and at most MOST_FLOPS for all runs together. Raises TooLarge
    with both numbers if a single token is not safe, and Refused for workloads that cannot be measured.
    """
    _check_measurable(subject)
    way = ran(subject.config, subject.workload)

    def bytes_of(n: int) -> int:
        return memory_plan(subject.config, replace(subject.workload, source_len=n, attention=way, piece=0)).total

    def flops_of(n: int) -> int:
        n = min(n, subject.config.n_ctx) if subject.config.has_position_table else n
        flops = plan(subject.config, replace(subject.workload, source_len=n)).step_flops
        return flops * (2 if subject.workload.training else 1)

    ceiling = subject.config.n_ctx if subject.config.has_position_table else 1 << 17
    check_fits(bytes_of(1), budget, WHAT)
    if flops_of(1) > MAX_FLOPS // 2:
        raise TooLarge(TOO_MUCH_WORK.format(needed=flops_of(1) / 1e9, allowed=MAX_FLOPS / 2e9))
    low, high = 1, ceiling + 1  # low is safe, high is not
    while high - low > 1:
        middle = (low + high) // 2
        safe = bytes_of(middle) <= budget and flops_of(middle) <= MAX_FLOPS // 2
        low, high = (middle, high) if safe else (low, middle)
    return tuple(sorted({max(1, low // part) for part in (4, 2, 1)}))


def measure(subject: MeasurementSetup, budget: int) -> Measured:
    """Run the model with random weights at every one of lengths(), with the batch of largest_safe_setup(). Raises Refused as it does.

    A prompt is read in one pass, without chunked prefill.
    """
    subject, sizes = largest_safe_setup(subject, budget)
    with LiveBytes() as live:
        model = Transformer(subject.config).eval()
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
    return Measured(
        ran(subject.config, subject.workload),
        subject.workload.batch,
        tuple(_point(subject, model, weights, n) for n in sizes),
    )


class Worker:
    """A thread that measures, with a short queue and a cache of results."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="measure")
        self._runs: OrderedDict[MeasurementSetup, Future[Measured]] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, subject: MeasurementSetup) -> Future[Measured]:
        """The run of this subject, pending or done. Raises Refused if it is too large or the queue is full."""
        with self._lock:
            if (known := self._runs.get(subject)) is not None and not (known.done() and known.exception()):
                return known
            if sum(not run.done() for run in self._runs.values()) >= WAITING:
                raise HeadlightError(BUSY)
            budget = free() // SHARE
            largest_safe_setup(subject, budget)  # refuse at once, not after waiting in the queue
            self._runs[subject] = run = self._pool.submit(measure, subject, budget)
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
            return run

    def found(self, subject: MeasurementSetup) -> Measured | None:
        """The result for this subject, if there is one."""
        run = self._runs.get(subject)
        return run.result() if run is not None and run.done() and not run.exception() else None


WORKER = Worker()


def _check_measurable(subject: MeasurementSetup) -> None:
    """Raises Refused for workloads that can be planned but not measured on this machine."""
    if subject.workload.dtype != "float32" or subject.workload.weight_dtype or subject.workload.kv_dtype:
        raise HeadlightError(FLOAT32.format(dtype=subject.workload.dtype))
    if subject.workload.rank:
        raise HeadlightError(ALL_WEIGHTS.format(rank=subject.workload.rank))
    if subject.workload.training and (subject.workload.recompute != "none" or subject.workload.dropout):
        raise HeadlightError(PLAIN)


def _point(subject: MeasurementSetup, model: Transformer, weights: int, n: int) -> Point:
    work, way = subject.workload, ran(subject.config, subject.workload)
    predicted = memory_plan(subject.config, replace(work, source_len=n, attention=way, piece=0))
    ids = torch.zeros(work.batch, n, dtype=torch.long)
    target = torch.zeros(work.batch, work.target_len, dtype=torch.long) if work.target_len else None
    started = time.perf_counter()
    with LiveBytes() as live, torch.enable_grad() if work.training else torch.no_grad():
        live.track(*model.parameters(), *model.buffers(), ids, target)
        before = live.live
        with attending(model, way, keep=not work.training) as cache:
            if work.training:
                kept = _train(model, ids, target, subject, live) + ids.nbytes + (0 if target is None else target.nbytes)
            else:
                out = foretell(model, ids, target, last=work.logit_positions(subject.config) == 1)
                del out
                kept = live.live - before
        peak = live.peak
        cache.clear()
        model.zero_grad(set_to_none=True)
    return Point(
        n=n,
        measured=peak,
        predicted=predicted.total,
        weights=weights,
        predicted_weights=predicted.weights,
        kept=kept,
        predicted_kept=predicted.activations if work.training else predicted.kv_cache,
        seconds=time.perf_counter() - started,
    )


def _train(model: Transformer, ids: Tensor, target: Tensor | None, subject: MeasurementSetup, live: LiveBytes) -> int:
    """Two training steps, because the optimizer has no state in the first. Returns the bytes that autograd keeps in the second."""
    kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "sgd": torch.optim.SGD,
        "momentum": partial(torch.optim.SGD, momentum=0.9),
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
    }
    # fused: updates in place; other variants allocate tensors as large as the largest parameter
    optimizer = kinds[subject.workload.optimizer](model.parameters(), lr=1e-4, fused=True)
    kept = 0
    for _ in range(2):
        before = live.live
        out = model(ids, target)
        kept = live.live - before - out.untyped_storage().nbytes()
        targets = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long)
        loss = F.cross_entropy(out.flatten(0, 1), targets)
        del out
        loss.backward()
        optimizer.step()
    return kept
