"""Queries, keys and values by one product or by three: the same numbers, and what each takes on this machine."""

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
MOST_FLOPS = 4e9  # of one product, a fraction of a second of one processor core
MOST_NUMBERS = 1 << 26  # of the tables together
SEED = 0


@dataclass(frozen=True)
class Compared:
    """Medians of ROUNDS alternating rounds, ms each, and the largest difference between the numbers of both.

    `rows` tokens were multiplied, of the `of` that were asked for.
    """

    fused: float
    separate: float
    difference: float
    rows: int
    of: int
    device: str


def timed(d_model: int, widths: tuple[int, int, int], rows: int, device: torch.device | None = None) -> Compared:
    """Time x W_qkv against x W_Q, x W_K and x W_V, for x [rows, d_model] and outputs of `widths` numbers (q, k, v).

    W_qkv are the three tables, one below the other, as `nn.MultiheadAttention.in_proj_weight` has them. Random numbers, float32; of
    sizes that would take long, fewer rows. Raises ValueError for sizes whose tables alone would.
    """
    numbers = d_model * sum(widths)
    if numbers > MOST_NUMBERS:
        raise ValueError(f"tables of {d_model:,} × {sum(widths):,}")
    used = min(rows, max(1, int(MOST_FLOPS // (2 * numbers))))
    device = device or pick_device()
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(used, d_model, generator=generator).to(device)
    tables = [(torch.randn(width, d_model, generator=generator) / d_model**0.5).to(device) for width in widths]
    joined = torch.cat(tables)

    def fused() -> tuple[Tensor, ...]:
        return F.linear(x, joined).split(widths, -1)

    def separate() -> tuple[Tensor, ...]:
        return tuple(F.linear(x, table) for table in tables)

    with torch.inference_mode():
        difference = max((a - b).abs().max().item() for a, b in zip(fused(), separate(), strict=True))
        times = [(_seconds(fused, device), _seconds(separate, device)) for _ in range(ROUNDS)]
    one, three = (1000 * statistics.median(each) for each in zip(*times, strict=True))
    return Compared(one, three, difference, used, rows, device.type)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
