"""Benchmark of one fused product for queries, keys and values against three separate ones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..device import pick_device

ROUNDS = 9
MOST_PRODUCT_FLOPS = 4e9  # a fraction of a second on one CPU core
MOST_WEIGHTS = 1 << 26


@dataclass(frozen=True)
class Compared:
    """Median times of ROUNDS alternating rounds, and the largest difference between the two results."""

    fused: float  # ms
    separate: float  # ms
    difference: float
    rows: int  # tokens that were multiplied
    of: int  # tokens that were requested
    device: str


def timed(d_model: int, widths: tuple[int, int, int], rows: int, device: torch.device | None = None) -> Compared:
    """Time x W_qkv against x W_Q, x W_K and x W_V, for random float32 x [rows, d_model] and outputs of `widths` numbers (q, k, v).

    W_qkv is the three matrices stacked, like `nn.MultiheadAttention.in_proj_weight`. Large sizes use fewer rows. Raises ValueError
    for matrices that are too large.
    """
    numbers = d_model * sum(widths)
    if numbers > MOST_WEIGHTS:
        raise ValueError(f"tables of {d_model:,} × {sum(widths):,}")
    used = min(rows, max(1, int(MOST_PRODUCT_FLOPS // (2 * numbers))))
    device = device or pick_device()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(used, d_model, generator=generator).to(device)
    tables = [(torch.randn(width, d_model, generator=generator) / d_model**0.5).to(device) for width in widths]
    joined = torch.cat(tables)

    def fused() -> tuple[Tensor, ...]:
        return F.linear(x, joined).split(widths, -1)

    def separate() -> tuple[Tensor, ...]:
        return tuple(F.linear(x, table) for table in tables)

    with torch.inference_mode():
        difference = max((a - b).abs().max().item() for a, b in zip(fused(), separate(), strict=True))
        times = [(_seconds_of(fused, device), _seconds_of(separate, device)) for _ in range(ROUNDS)]
    one, three = (1000 * statistics.median(each) for each in zip(*times, strict=True))
    return Compared(one, three, difference, used, rows, device.type)


def _seconds_of(work: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
