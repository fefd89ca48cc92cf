"""Measured beside predicted: a small run of the planned model on this machine's processor, every byte of it counted."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import Refused, TooLarge
from ..memory import admit, free_bytes
from ..model.config import ModelConfig
from ..model.transformer import Transformer
from .live_bytes import LiveBytes
from .plan import memory_plan, plan
from .ways import Ran, attending, foretell, ran
from .workload import Workload

MOST_FLOPS = 10**11  # of one button press: some seconds on two cores
SHARE = 2  # a run may take one part in so many of what is free: others are at work as well
WHAT = "A run of this model on a single token"
FLOAT32 = "A run here is in float32, so that it can be compared: choose float32 (it is {dtype}), and the same data type for weights and cache."
PLAIN = "A run here keeps everything and drops nothing: choose recompute “none” and switch dropout off."
ALL_WEIGHTS = "A run here trains all weights: choose a rank of 0, which is no adapters (it is {rank})."
TOO_MUCH_WORK = (
    "A run on a single source token would take {needed:,.0f} GFLOP, and at most {allowed:,.0f} are run here. "
    "Try a smaller batch, fewer layers, or a shorter target."
)
BUSY = "Others are measuring just now. Press the button again in a few seconds."
WAITING = 4  # runs that may wait for the one worker
KEPT = 64  # runs whose points are remembered


@dataclass(frozen=True)
class Subject:
    """A model, and what it is to be measured at."""

    config: ModelConfig
    workload: Workload


@dataclass(frozen=True)
class Point:
    """One run. Bytes: `measured` is the most that was alive at once, `predicted` what the closed forms say of the same run."""

    n: int
    measured: int
    predicted: int
    weights: int
    predicted_weights: int
    kept: int  # after the pass: the cache of a decoder, or what autograd keeps
    predicted_kept: int
    seconds: float


@dataclass(frozen=True)
class Measured:
    """The points of one press of the button, the way of attention that ran, and how many texts ran at once."""

    ran: Ran
    batch: int
    points: tuple[Point, ...]


def free() -> int:
    """Bytes that are free on this machine for a run on its processor."""
    return free_bytes(torch.device("cpu"))


def at_most(subject: Subject, budget: int) -> tuple[Subject, tuple[int, ...]]:
    """What is run in place of a subject: it itself, or fewer texts at once where its own length would be too much; and lengths().

    A length that the curve shows says more than a batch of two tokens: texts are halved until the length of the sliders is safe,
    or one is left. Raises as lengths() does.
    """
    tried = subject
    while True:
        try:
            found = lengths(tried, budget)
        except TooLarge:
            if tried.workload.batch == 1:
                raise
            found = (0,)
        if found[-1] >= subject.workload.source_len or tried.workload.batch == 1:
            return tried, found
        tried = replace(tried, workload=replace(tried.workload, batch=tried.workload.batch // 2))


def lengths(subject: Subject, budget: int) -> tuple[int, ...]:
    """The source lengths that are run: the longest that is safe here, and a half and a quarter of it.

    Safe is what is predicted to take at most `budget` bytes and MOST_FLOPS for all of them together. Raises TooLarge with
    both numbers where not even one token is, and Refused for what a processor does not run.
    """
    _check(subject)
    way = ran(subject.config, subject.workload)

    def bytes_of(n: int) -> int:
        return memory_plan(subject.config, replace(subject.workload, source_len=n, attention=way, piece=0)).total

    def flops_of(n: int) -> int:
        return _flops(subject, n)

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
    """Run the model with fresh weights at every one of lengths(), with as many texts as at_most() says. Raises Refused as it does.

    A prompt is read at once here, whatever the workload's piece.
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
    """One thread that measures, with a short queue; what it found for a subject stays."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="measure")
        self._runs: OrderedDict[Subject, Future[Measured]] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, subject: Subject) -> Future[Measured]:
        """The run of this subject, under way or done. Raises Refused where it is too large or the queue is full."""
        with self._lock:
            if (known := self._runs.get(subject)) is not None and not (known.done() and known.exception()):
                return known
            if sum(not run.done() for run in self._runs.values()) >= WAITING:
                raise Refused(BUSY)
            budget = free() // SHARE
            at_most(subject, budget)  # a refusal is said at once, not after the queue
            self._runs[subject] = run = self._pool.submit(measure, subject, budget)
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
            return run

    def found(self, subject: Subject) -> Measured | None:
        """The measurement of a run of this subject, if there was one."""
        run = self._runs.get(subject)
        return run.result() if run is not None and run.done() and not run.exception() else None


WORKER = Worker()


def _check(subject: Subject) -> None:
    """Raises Refused for what the closed forms know but a run here would not be."""
    if subject.workload.dtype != "float32" or subject.workload.weight_dtype or subject.workload.kv_dtype:
        raise Refused(FLOAT32.format(dtype=subject.workload.dtype))
    if subject.workload.rank:
        raise Refused(ALL_WEIGHTS.format(rank=subject.workload.rank))
    if subject.workload.training and (subject.workload.recompute != "none" or subject.workload.dropout):
        raise Refused(PLAIN)


def _flops(subject: Subject, n: int) -> int:
    if subject.config.has_position_table:
        n = min(n, subject.config.n_ctx)
    return plan(subject.config, replace(subject.workload, source_len=n)).step_flops * (
        2 if subject.workload.training else 1
    )


def _point(subject: Subject, model: Transformer, weights: int, n: int) -> Point:
    way = ran(subject.config, subject.workload)
    predicted = memory_plan(subject.config, replace(subject.workload, source_len=n, attention=way, piece=0))
    ids = torch.zeros(subject.workload.batch, n, dtype=torch.long)
    target = (
        torch.zeros(subject.workload.batch, subject.workload.target_len, dtype=torch.long)
        if subject.workload.target_len
        else None
    )
    started = time.perf_counter()
    with LiveBytes() as live, torch.enable_grad() if subject.workload.training else torch.no_grad():
        live.track(*model.parameters(), *model.buffers(), ids, target)
        given = live.live
        with attending(model, way, keep=not subject.workload.training) as cache:
            if subject.workload.training:
                kept = _train(model, ids, target, subject, live) + ids.nbytes + (0 if target is None else target.nbytes)
            else:
                out = foretell(model, ids, target, last=subject.workload.logit_positions(subject.config) == 1)
                del out
                kept = live.live - given
        peak = live.peak
        cache.clear()
        model.zero_grad(set_to_none=True)
    told = predicted.activations if subject.workload.training else predicted.kv_cache
    return Point(n, peak, predicted.total, weights, predicted.weights, kept, told, time.perf_counter() - started)


def _train(model: Transformer, ids: Tensor, target: Tensor | None, subject: Subject, live: LiveBytes) -> int:
    """Two steps, so that the second one has the optimizer's state beside it. Returns what autograd keeps of the second."""
    optimizer = _optimizer(model, subject.workload.optimizer)
    kept = 0
    for _ in range(2):
        before = live.live
        out = model(ids, target)
        kept = live.live - before - out.untyped_storage().nbytes()
        wanted = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long)
        loss = F.cross_entropy(out.flatten(0, 1), wanted)
        del out
        loss.backward()
        optimizer.step()
    return kept


def _optimizer(model: nn.Module, name: str) -> torch.optim.Optimizer:
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "sgd": (torch.optim.SGD, {}),
        "momentum": (torch.optim.SGD, {"momentum": 0.9}),
        "adam": (torch.optim.Adam, {}),
        "adamw": (torch.optim.AdamW, {}),
    }
    kind, options = kinds[name]
    # fused: the update works in place; the others make tensors as large as the largest parameter on the way
    return kind(model.parameters(), lr=1e-4, fused=True, **options)
