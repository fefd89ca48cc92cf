"""Attention sink: the token that most heads attend to regardless of content, and the share of each head on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..run.attention import AttentionRecord
from ..run.patterns import joint_patterns
from .ragged import stacked

ROWS = 64  # evenly spaced rows that are read, at most
LOOKED_AT = 8  # evenly spaced attentions in which the token is searched
NAMED_FROM = 0.3  # of the median head; with less there is no sink


@dataclass(frozen=True, eq=False)
class Sink:
    """The token with the most attention over all heads, and the share of each head's attention on it.

    A share is the mean over the rows that can see another token too: the first row of a decoder can see only itself. Xiao
    et al. 2023, arXiv:2309.17453.
    """

    key: int
    shares: np.ndarray  # float32 [layer, head], from 0 to 1; NaN for heads that a layer does not have
    rows: int  # read, of each head

    @property
    def between(self) -> tuple[float, float]:
        """The lower and the upper quartile of the shares of all heads."""
        low, high = np.nanquantile(self.shares, (0.25, 0.75))
        return float(low), float(high)

    @property
    def is_sink(self) -> bool:
        """True if half of all heads put 30 % or more on it."""
        return bool(np.nanmedian(self.shares) >= NAMED_FROM)


def sink(records: Sequence[AttentionRecord], patterns: Sequence[Tensor] | None = None) -> Sink | None:
    """The sink of all layers of one site. None without a record, or if no row can see two keys.

    `patterns` are the complete maps [head, query, key] of the records, if they are already available.
    """
    if not records:
        return None
    rows = _rows(records[0])
    if not len(rows):
        return None
    n = len(records)
    searched = sorted({round(i) for i in np.linspace(0, n - 1, LOOKED_AT)})
    if patterns is None:
        each = [records[i].pattern(queries=rows) for i in searched]
        key = int(_received(each).argmax())
        shares = [record.pattern(queries=rows, keys=[key])[:, :, 0].mean(-1) for record in records]
    else:
        joint = [*joint_patterns(records, rows, patterns)]
        each = [weights for group in joint for weights in group.split(group.weights)]
        key = int(_received([each[i] for i in searched]).argmax())
        shares = [share for group in joint for share in group.split(group.weights[:, :, key].mean(-1))]
    return Sink(key, stacked(shares, math.nan).float().cpu().numpy(), len(rows))


def _received(patterns: Sequence[Tensor]) -> Tensor:
    """[key]: mean weight on each key, every attention counting the same."""
    return torch.stack([pattern.mean((0, 1)).cpu() for pattern in patterns]).mean(0)


def _rows(record: AttentionRecord) -> Tensor:
    """Evenly spaced rows that can see at least two keys."""
    n = record.n_query
    rows = torch.tensor(sorted({round(i) for i in np.linspace(0, n - 1, min(ROWS, n))}), device=record.device)
    return rows[record.mask(queries=rows).sum(-1) > 1]
