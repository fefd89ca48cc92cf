"""Where heads rest: the token that most heads give most of their attention to, whatever the words are, and how much each gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..run.attention import AttentionRecord
from .ragged import stacked

ROWS = 64  # evenly spaced rows that are looked at, at most
LOOKED_AT = 8  # attentions in which the token is looked for, evenly spaced
NAMED_FROM = 0.3  # of the middle head; where it gives less, heads rest on no one token


@dataclass(frozen=True, eq=False)
class Sink:
    """The token that gets the most over all heads, and the share of each head's attention that it gets.

    A share is the mean over the rows that may see another token as well: the first row of a decoder can see nothing else, and says
    nothing. Xiao et al. 2023, arXiv:2309.17453.
    """

    key: int
    shares: np.ndarray  # float32 [layer, head], from 0 to 1; NaN for heads that a layer does not have
    rows: int  # looked at, of each head

    @property
    def between(self) -> tuple[float, float]:
        """The share that the head gives which a quarter of all heads give less than, and the one that a quarter give more than."""
        low, high = np.nanquantile(self.shares, (0.25, 0.75))
        return float(low), float(high)

    @property
    def is_sink(self) -> bool:
        """Whether half of all heads give it 30 % or more."""
        return bool(np.nanmedian(self.shares) >= NAMED_FROM)


def sink(records: Sequence[AttentionRecord], patterns: Sequence[Tensor] | None = None) -> Sink | None:
    """Of all layers of one kind of attention. None where no row may see two keys, or where there is no record.

    patterns are the weights of each record, [head, query, key], where they are computed already.
    """
    if not records:
        return None
    rows = _rows(records[0])
    if not len(rows):
        return None

    def weights(i: int, key: int | None = None) -> Tensor:  # [head, row, key]
        if patterns is not None:
            return patterns[i][:, rows] if key is None else patterns[i][:, rows, key, None]
        return records[i].pattern(queries=rows, keys=None if key is None else [key])

    spread = sorted({round(i) for i in np.linspace(0, len(records) - 1, LOOKED_AT)})
    got = torch.stack([weights(i).mean((0, 1)).cpu() for i in spread]).mean(0)  # [key]
    key = int(got.argmax())
    shares = [weights(i, key)[:, :, 0].mean(-1) for i in range(len(records))]
    return Sink(key, stacked(shares, math.nan).float().cpu().numpy(), len(rows))


def _rows(record: AttentionRecord) -> list[int]:
    """Evenly spaced rows that may see two keys at least."""
    spread = sorted({round(i) for i in np.linspace(0, record.n_query - 1, min(ROWS, record.n_query))})
    sees = record.mask(queries=spread).sum(-1)
    return [row for row, n in zip(spread, sees.tolist(), strict=True) if n > 1]
