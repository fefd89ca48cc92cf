"""Extra memory of a pass with edited attention rules: masks and softmaxes that no fused kernel computes."""

from __future__ import annotations

from ..model.config import ModelConfig
from ..model.rules import BLOCK_BYTES
from .workload import Workload

SHARED_CELL = 8  # temporary bytes per cell of a mask that all heads share: its distance, codes and result
HEAD_CELL = 4  # temporary bytes per cell of the mask of one head
STEPS = 3  # maps of a block in memory at the same time if the softmax is computed in steps


def rule_bytes(config: ModelConfig, work: Workload, n: int, n_key: int, *, spelled_out: bool) -> int:
    """Upper bound over all kinds of edits, for n queries and n_key keys: one block of rows of core.model.rules.attend.

    If the scores are tensors (`spelled_out`), the mask is made for all rows at once.
    """
    texts, heads, by = work.batch, config.n_heads, work.by
    if spelled_out:
        return texts * n * n_key * (SHARED_CELL + heads * HEAD_CELL)

    def rows(row_bytes: int) -> int:
        return min(n, max(1, BLOCK_BYTES // row_bytes))

    shared = texts * rows(texts * n_key * by) * n_key * (SHARED_CELL + by)
    apart = texts * heads * rows(texts * heads * n_key * by) * n_key * (HEAD_CELL + by)
    in_steps = texts * heads * rows(texts * heads * n_key * 4) * n_key * (STEPS * 4 + HEAD_CELL)
    return max(shared, apart, in_steps)
