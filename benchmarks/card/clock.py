"""Time and memory of work on a device, which a card does behind the program's back."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from core.plan.tracing import LiveBytes


def wait(device: torch.device) -> None:
    """Until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    wait(device)
    start = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - start


def median_ms(work: Callable[[], object], device: torch.device, rounds: int) -> float:
    """The median over rounds, after one that does not count."""
    work()
    return statistics.median(seconds(work, device) for _ in range(rounds)) * 1e3


def in_turns(ways: Mapping[str, Callable[[], object]], device: torch.device, rounds: int) -> dict[str, list[float]]:
    """Seconds of each way by round; within a round they take turns, so that what else the machine does meets all of them."""
    for work in ways.values():
        work()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(rounds):
        order = list(ways) if i % 2 else list(ways)[::-1]
        for name in order:
            found[name].append(seconds(ways[name], device))
    return found


def peak_bytes(work: Callable[[], object], device: torch.device, given: Iterable[Tensor]) -> int:
    """The most bytes of tensors at once while `work` runs, those of `given` included: by the card's allocator, else by LiveBytes.

    On a card the work is done once before, so that what libraries set aside for themselves is there already. Its allocator is
    asked for what it was asked for: what it hands out is rounded up, a large tensor by as much as 1 MiB.
    """
    given = list(given)
    if device.type != "cuda":
        with every_operation(), LiveBytes() as live:
            live.track(*given)
            work()
        return live.peak
    work()
    gc.collect()
    wait(device)
    before = requested(device, "current")
    torch.cuda.reset_peak_memory_stats(device)
    work()
    wait(device)
    return requested(device, "peak") - before + sum(tensor.nbytes for tensor in given)


def requested(device: torch.device, when: Literal["current", "peak"]) -> int:
    """Bytes that a card's allocator was asked for, before it rounds them up."""
    return torch.cuda.memory_stats(device)[f"requested_bytes.all.{when}"]


@contextmanager
def every_operation() -> Iterator[None]:
    """LiveBytes sees what a compound operation makes under no_grad, and not under inference_mode, which allocates the same."""
    real: Any = torch.inference_mode

    def instead(mode: bool = True) -> Any:
        return torch.no_grad() if mode else real(False)

    torch.inference_mode = instead  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        torch.inference_mode = real
