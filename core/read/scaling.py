"""Why scores are divided by √d: how far random q·k spread, how sharp a softmax of them is, and a model without the division."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..run.attention import AttentionRecord
from . import measures

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PAIRS, ROWS, KEYS = 20_000, 4_000, 12
CELLS = 1 << 22  # numbers of random keys at a time


@dataclass(frozen=True)
class Spread:
    """Of q and k whose d numbers are drawn from a standard normal distribution (Vaswani et al. 2017, footnote 4)."""

    d: int
    variance: float  # of q·k, over so many pairs
    scaled: float  # of q·k / √d
    largest: float  # the mean largest of the weights of a row, without the division
    largest_scaled: float


def spread(d: int, pairs: int = PAIRS, rows: int = ROWS, keys: int = KEYS, seed: int = 0) -> Spread:
    """Measured, not derived: `pairs` products, and `rows` rows of `keys` keys each. The same for the same seed."""
    generator = torch.Generator().manual_seed(seed * 1_000 + d)
    q, k = torch.randn(2, pairs, d, generator=generator)
    products = (q * k).sum(-1)
    parts = []
    for some in torch.randn(rows, d, generator=generator).split(max(1, CELLS // (keys * d))):
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
    """Of some attentions together."""

    raw: float  # variance of q·k over the cells that may be looked at, the mean over heads
    scaled: float  # the same of the scores
    entropy: float  # bits of a row, the mean over rows that have a choice


def sharpness(records: Sequence[AttentionRecord]) -> Sharpness:
    """How far the scores of these attentions spread, and how much choice their softmax leaves.

    Rows that may look at one key alone have no choice, and are in no mean.
    """
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
