"""Division of scores by √d: variance of random q·k, sharpness of their softmax, and the same of a model's attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..run.attention import AttentionRecord
from . import measures

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SPREAD_PAIRS, SPREAD_ROWS, SPREAD_KEYS = 20_000, 4_000, 12
SPREAD_CELLS = 1 << 22  # random numbers that are held at one time


@dataclass(frozen=True)
class Spread:
    """Statistics of q and k with d standard normal numbers each (Vaswani et al. 2017, footnote 4)."""

    d: int
    variance: float  # of q·k
    scaled: float  # of q·k / √d
    largest: float  # mean of the largest weight of a row, without the division
    largest_scaled: float


def spread(
    d: int, pairs: int = SPREAD_PAIRS, rows: int = SPREAD_ROWS, keys: int = SPREAD_KEYS, seed: int = 0
) -> Spread:
    """Measured on `pairs` products, and on `rows` rows of `keys` keys each. Deterministic for a seed."""
    generator = torch.Generator().manual_seed(seed * 1_000 + d)
    q, k = torch.randn(2, pairs, d, generator=generator)
    products = (q * k).sum(-1)
    parts = []
    for some in torch.randn(rows, d, generator=generator).split(max(1, SPREAD_CELLS // (keys * d))):
        parts.append(torch.einsum("rd,rkd->rk", some, torch.randn(len(some), keys, d, generator=generator)))
    scores = torch.cat(parts)  # [row, key]
    variance = products.var().item()
    return Spread(
        d,
        variance,
        variance / d,
        scores.softmax(-1).amax(-1).mean().item(),
        (scores / d**0.5).softmax(-1).amax(-1).mean().item(),
    )


@dataclass(frozen=True, eq=False)
class Sharpness:
    """Averages over some attentions."""

    raw: float  # variance of q·k over the visible cells, averaged over heads
    scaled: float  # the same of the scores
    entropy: float  # bits of a row, averaged over rows with two or more visible keys


def sharpness(records: Sequence[AttentionRecord]) -> Sharpness:
    """Variance of the scores of these attentions, and entropy of their softmax."""
    raw, scaled, entropies = [], [], []
    for record in records:
        for head in range(record.n_heads):
            allowed = record.mask(head=head)
            choice = allowed.sum(-1) > 1
            raw.append(_variance(record.raw(head)[0][allowed]))
            scaled.append(_variance(record.scores(head)[0][allowed]))
            entropies.append(measures.entropy(record.pattern(head)[0][choice]))
    every = torch.cat(entropies)
    return Sharpness(sum(raw) / len(raw), sum(scaled) / len(scaled), every.mean().item() if every.numel() else 0.0)


def _variance(values: Tensor) -> float:
    return values.var().item() if values.numel() > 1 else 0.0
