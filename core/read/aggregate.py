"""Maps of several heads: mean, maximum, rollout, and one head weighted by the norms of its values.

The map of several heads is not the map of any of them, and a value-weighted map is not a share of attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import TooLarge
from ..run.attention import AttentionRecord, Index
from . import measures

Member = tuple[AttentionRecord, int]  # one head

ROLLOUT_LENGTH = 2048  # tokens; rollout multiplies n×n matrices: n³ a layer, seconds at this length on two cores


def mean(members: Sequence[Member], queries: Index = None, keys: Index = None) -> Tensor:
    """The mean weight over heads, [query, key]. Rows sum to 1, or less if some heads can see nothing."""
    _check_shapes(members)
    total = torch.zeros(())
    for record, head in members:
        total = total + record.pattern(head, queries, keys)[0]
    return total / len(members)


def maximum(members: Sequence[Member], queries: Index = None, keys: Index = None) -> Tensor:
    """The largest weight of any of the heads, [query, key]. Rows sum to 1 or more."""
    _check_shapes(members)
    largest = torch.zeros(())
    for record, head in members:
        largest = torch.maximum(largest, record.pattern(head, queries, keys)[0])
    return largest


def rollout(records: Sequence[AttentionRecord], layer: int, residual: float = 0.5) -> Tensor:
    """Attention rollout through layers 0 to `layer` of one stack's self-attention, [query, key]; rows sum to 1.

    Heads are averaged, and each layer is mixed with the residual stream (Abnar & Zuidema 2020, arXiv:2005.00928). Raises
    TooLarge above 2,048 tokens, and ValueError unless each layer has one self-attention of the whole text: of records of
    core.capture, give those of one stack and one call.
    """
    below = _layers_up_to(records, layer)
    if (n := below[0].n_key) > ROLLOUT_LENGTH:
        raise TooLarge(
            f"Rollout multiplies whole maps: {n:,} tokens are too many, {ROLLOUT_LENGTH:,} are the most. "
            "Use a shorter text, or the mean over heads."
        )
    # One head at a time: a whole layer of them takes gigabytes at this length.
    means = [mean([(record, head) for head in range(record.n_heads)])[None] for record in below]
    return measures.rollout(means, residual)


def _layers_up_to(records: Sequence[AttentionRecord], layer: int) -> list[AttentionRecord]:
    """The self-attentions of one stack from layer 0 on, each of the whole text. Raises ValueError."""
    if lost := [record.name for record in records if record.site == "unknown" or record.layer is None]:
        raise ValueError(
            f"rollout needs to know the layer of each attention and what it reads; of {lost[0]} it does not"
        )
    below = [record for record in records if record.site == "attn" and (record.layer or 0) <= layer]
    if len({record.stack for record in below}) != 1 or len({record.layer for record in below}) < len(below):
        raise ValueError("rollout follows the self-attention of one stack")
    if {(record.n_query, record.n_key) for record in below} != {(below[0].n_key, below[0].n_key)}:
        raise ValueError("rollout needs attentions in which every token of the text looks")
    return below


def value_weighted(record: AttentionRecord, head: int, queries: Index = None, keys: Index = None) -> Tensor:
    """‖weight · value · W_O‖: how much each key writes for each query, [query, key], in units of the residual stream.

    Kobayashi et al. 2020, arXiv:2004.10102: a key may receive much attention and write almost nothing, as sinks do.
    """
    norms = record.value_norms(head)[0]
    return record.pattern(head, queries, keys)[0] * (norms if keys is None else norms[keys])


def _check_shapes(members: Sequence[Member]) -> None:
    """Raises ValueError if there is no head, or if the maps have different shapes."""
    if not members:
        raise ValueError("a map of several heads needs at least one")
    shapes = {(record.n_query, record.n_key) for record, _ in members}
    if len(shapes) > 1:
        raise ValueError(f"heads of different shapes cannot be put together: {sorted(shapes)}")
