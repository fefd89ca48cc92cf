"""Measured memory of a planned model: a small run on this machine's CPU, with every allocated byte counted."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Refused, TooLarge
from ..memory import admit, free_bytes
from ..model.config import ModelConfig
from ..model.transformer import Transformer
from .live_bytes import LiveBytes
from .plan import memory_plan, plan
from .ways import Ran, attending, foretell, ran
from .workload import Workload

MOST_FLOPS = 10**11  # of one measurement: some seconds on two cores
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
class Subject:
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


def at_most(subject: Subject, budget: int) -> tuple[Subject, tuple[int, ...]]:
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


def lengths(subject: Subject, budget: int) -> tuple[int, ...]:
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
    admit(bytes_of(1), budget, WHAT)
    if flops_of(1) > MOST_FLOPS // 2:
        raise TooLarge(TOO_MUCH_WORK.format(needed=flops_of(1) / 1e9, allowed=MOST_FLOPS / 2e9))
    low, high = 1, ceiling + 1  # low is safe, high is not
    while high - low > 1:
        middle = (low + high) // 2
        safe = bytes_of(middle) <= budget and flops_of(middle) <= MOST_FLOPS // 2
        low, high = (middle, high) if safe else (low, middle)
    return tuple(sorted({max(1, low // part) for part in (4, 2, 1)}))


def measure(subject: Subject, budget: int) -> Measured:
    """Run the model with random weights at every one of lengths(), with the batch of at_most(). Raises Refused as it does.

    A prompt is read in one pass, without chunked prefill.
    """
    subject, sizes = at_most(subject, budget)
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
        self._runs: OrderedDict[Subject, Future[Measured]] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, subject: Subject) -> Future[Measured]:
        """The run of this subject, pending or done. Raises Refused if it is too large or the queue is full."""
        with self._lock:
            if (known := self._runs.get(subject)) is not None and not (known.done() and known.exception()):
                return known
            if sum(not run.done() for run in self._runs.values()) >= WAITING:
                raise Refused(BUSY)
            budget = free() // SHARE
            at_most(subject, budget)  # refuse at once, not after waiting in the queue
            self._runs[subject] = run = self._pool.submit(measure, subject, budget)
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
            return run

    def found(self, subject: Subject) -> Measured | None:
        """The result for this subject, if there is one."""
        run = self._runs.get(subject)
        return run.result() if run is not None and run.done() and not run.exception() else None


WORKER = Worker()


def _check_measurable(subject: Subject) -> None:
    """Raises Refused for workloads that can be planned but not measured on this machine."""
    if subject.workload.dtype != "float32" or subject.workload.weight_dtype or subject.workload.kv_dtype:
        raise Refused(FLOAT32.format(dtype=subject.workload.dtype))
    if subject.workload.rank:
        raise Refused(ALL_WEIGHTS.format(rank=subject.workload.rank))
    if subject.workload.training and (subject.workload.recompute != "none" or subject.workload.dropout):
        raise Refused(PLAIN)


def _point(subject: Subject, model: Transformer, weights: int, n: int) -> Point:
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


def _train(model: Transformer, ids: Tensor, target: Tensor | None, subject: Subject, live: LiveBytes) -> int:
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
