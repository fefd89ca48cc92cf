"""What a pass takes more where the rules of its attentions are edited: masks and softmaxes that no kernel knows by itself."""

from __future__ import annotations

from ..model.config import ModelConfig
from ..model.rules import BLOCK_BYTES
from .workload import Workload

CELL = 8  # bytes at work on one cell of a mask that all heads share: its distance, codes, and what they make of it
HEAD_CELL = 4  # and on one cell of a head's own mask
STEPS = 3  # maps of a block at once, where the softmax is computed in steps


def rule_bytes(config: ModelConfig, work: Workload, n: int, n_key: int, *, spelled_out: bool) -> int:
    """An upper bound, over all kinds of edits, for n queries at n_key keys: one block of rows of core.model.rules.attend.

    Where scores are tensors anyway (`spelled_out`), the mask is made of all rows at once.
    """
    texts, heads, by = work.batch, config.n_heads, work.by
    if spelled_out:
        return texts * n * n_key * (CELL + heads * HEAD_CELL)

    def rows(row_bytes: int) -> int:
        return min(n, max(1, BLOCK_BYTES // row_bytes))

    shared = texts * rows(texts * n_key * by) * n_key * (CELL + by)
    apart = texts * heads * rows(texts * heads * n_key * by) * n_key * (HEAD_CELL + by)
    in_steps = texts * heads * rows(texts * heads * n_key * 4) * n_key * (STEPS * 4 + HEAD_CELL)
    return max(shared, apart, in_steps)
