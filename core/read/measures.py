"""Measures of attention: scalar measures of a head, attention sinks, rollout, and sampled rows of long texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import TooLarge
from ..run.attention import AttentionRecord, Index, joint_patterns


def stack_ragged(layers: Sequence[Tensor], nothing: float) -> Tensor:
    """[head, …] of each layer as [layer, head, …], padded with `nothing` for heads that a layer does not have."""
    most = max(len(layer) for layer in layers)
    return torch.stack(
        [torch.cat([layer, layer.new_full((most - len(layer), *layer.shape[1:]), nothing)]) for layer in layers]
    )


def interval_midpoints(start: int, stop: int, n: int) -> list[int]:
    """Midpoints of n equal parts of start..stop, rounded down."""
    return [start + int((i + 0.5) * (stop - start) / n) for i in range(n)]


def evenly_spaced(n: int, most: int, always: Sequence[int] = ()) -> list[int]:
    """All n rows, or at most `most` evenly spaced ones and those in `always`, in order."""
    return list(range(n)) if n <= most else sorted({*interval_midpoints(0, n, most), *always})


def entropy(pattern: Tensor) -> Tensor:
    """Entropy of each row in bits, [..., query]: 0 for one key, log2(n) for n keys with equal weights."""
    return torch.special.entr(pattern).sum(-1) / torch.log(torch.tensor(2.0))


def distance(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """Mean distance from each query back to its keys in tokens, [..., query]; later keys count as negative.

    queries [query] are the positions of the rows; None: all of them, in order.
    """
    rows = _rows(pattern, queries)
    back = rows[:, None] - torch.arange(pattern.shape[-1], device=pattern.device)
    return (pattern * back).sum(-1)


def mean_received(pattern: Tensor) -> Tensor:
    """Mean weight on each key over the queries, [..., key]."""
    return _mean_over_rows(pattern, pattern)


def sink_share(pattern: Tensor, key: int | Sequence[int] = 0, rows: Tensor | None = None) -> Tensor:
    """Share of all attention on one key or several, [...]: near 1 for heads with an attention sink there.

    Several keys are, for example, every [CLS] or </s> of a text: see Tokens.special. The mean is over the rows where rows
    [query] bool is True (None: all). The first row of a decoder can see nothing else and always has its full weight there;
    core.read.measures leaves such rows out. Xiao et al. 2023, arXiv:2309.17453.
    """
    keys = [key] if isinstance(key, int) else list(key)
    return mean_received(pattern if rows is None else pattern[..., rows, :])[..., keys].sum(-1)


def punctuation(pattern: Tensor, keys: Sequence[int]) -> Tensor:
    """Share of all attention on the given keys, those that are punctuation, [...]."""
    return sink_share(pattern, keys)


def previous_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """Mean weight on the previous token, over queries that have one, [...]."""
    return _offset_mean(pattern, -1, queries)


def diagonal(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """Mean weight of each token on itself, [...]."""
    return _offset_mean(pattern, 0, queries)


def next_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """Mean weight on the next token, over queries that have one, [...]."""
    return _offset_mean(pattern, 1, queries)


def near(pattern: Tensor, queries: Tensor | None = None, but_not: Sequence[int] = ()) -> Tensor:
    """Share of all attention on the keys 2 to 5 tokens away on either side, except some keys, [...]."""
    return shares(pattern, near_cells(_rows(pattern, queries), pattern.shape[-1], but_not)[None])[..., 0]


def same_token(pattern: Tensor, ids: Sequence[int], queries: Tensor | None = None, causal: bool = False) -> Tensor:
    """Mean weight on other copies of the query's token, over queries that have one, [...]; NaN if no token repeats.

    `causal` counts only copies before the query: later ones are masked.
    """
    copies = same_cells(ids, _rows(pattern, queries), causal)
    return shares(pattern, copies[None], copies.any(-1)[None])[..., 0]


def shares(pattern: Tensor, cells: Tensor, rows: Tensor | None = None) -> Tensor:
    """Weight on each set of cells in the average row, [..., part]; NaN for a part without rows.

    cells [part, query, key] are the cells that count, rows [part, query] the rows that the mean is over (None: all). Computed
    as one matrix product for all heads and parts.
    """
    sees = (pattern.sum(-1) > 0).float()  # [..., query]
    rows = torch.ones(cells.shape[:2], device=pattern.device) if rows is None else rows.float()
    weights = (cells * rows[..., None]).flatten(1)  # [part, query * key]
    return (pattern.flatten(-2) @ weights.T) / (sees @ rows.T)


def near_cells(queries: Tensor, n_key: int, but_not: Sequence[int] = ()) -> Tensor:
    """[query, key] bool: the keys 2 to 5 tokens away, except some keys."""
    away = (torch.arange(n_key, device=queries.device) - queries[:, None]).abs()
    cells = (away >= 2) & (away <= 5)
    cells[:, list(but_not)] = False
    return cells


def same_cells(ids: Sequence[int], queries: Tensor, causal: bool = False) -> Tensor:
    """[query, key] bool: the other copies of each query's token; with `causal` only those before it."""
    numbers = torch.as_tensor(ids, device=queries.device)
    keys = torch.arange(len(numbers), device=queries.device)
    copies = numbers[queries][:, None] == numbers
    return copies & (keys < queries[:, None] if causal else keys != queries[:, None])


def induction_cells(ids: Sequence[int], queries: Tensor) -> Tensor:
    """[query, key] bool: the tokens after an earlier copy of each query's token."""
    return same_cells(ids, queries, causal=True).roll(1, dims=-1)


def induction(pattern: Tensor, ids: Sequence[int], queries: Tensor | None = None) -> Tensor:
    """Mean weight on the token after an earlier copy of the query's token, [...]; NaN if no token repeats.

    Olsson et al. 2022, arXiv:2209.11895.
    """
    followers = induction_cells(ids, _rows(pattern, queries))
    return shares(pattern, followers[None], followers.any(-1)[None])[..., 0]


def rollout_of_patterns(patterns: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """Attention rollout through all layers, [query, key]: each layer's heads averaged and mixed with the residual stream.

    Abnar & Zuidema 2020, arXiv:2005.00928. patterns are [head, n, n], first layer first.
    """
    n = patterns[0].shape[-1]
    joint = torch.eye(n, device=patterns[0].device)
    for pattern in patterns:
        joint = ((1 - residual) * pattern.mean(0) + residual * torch.eye(n, device=pattern.device)) @ joint
    return joint


def total_variation(before: Tensor, after: Tensor) -> Tensor:
    """Total variation distance of two maps, [...]: half of Σ over keys of |before − after|, averaged over queries.

    0 if nothing has changed, 1 if every query attends to entirely different keys. Rows that see nothing in both maps are left
    out. Raises ValueError for maps of different shapes.
    """
    if before.shape != after.shape:
        raise ValueError(f"maps of different shapes: {tuple(before.shape)} and {tuple(after.shape)}")
    change = (before - after).abs().sum(-1) / 2  # [..., query]
    sees = ((before.sum(-1) > 0) | (after.sum(-1) > 0)).float()
    return (change * sees).sum(-1) / sees.sum(-1).clamp(min=1)


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """Overlap of two rows [..., key], [...]: Σ over keys of min(p, q).

    1 for equal rows that sum to 1, 0 for rows without a common key: 1 − their total variation distance. The leading axes
    broadcast. Raises ValueError for rows over different numbers of keys.
    """
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"rows over different keys: {p.shape[-1]} and {q.shape[-1]}")
    return torch.minimum(p, q).sum(-1)


def by_distance(pattern: Tensor, places: Tensor, reach: int, key_places: Tensor | None = None) -> Tensor:
    """Mean weight at each distance from −reach to +reach, [..., 2·reach + 1]; the middle is the token itself.

    Distance is key position − query position: −1 is the previous token. places [query] and key_places [key] (None: the same)
    are the positions that the model uses. The mean is over the pairs with that distance whose query sees something; NaN if
    there are none.
    """
    keys = places if key_places is None else key_places
    away = (keys - places[:, None]).flatten()  # [query * key]
    inside = (away.abs() <= reach).nonzero()[:, 0]
    bucket = away[inside] + reach
    sees = (pattern.sum(-1, keepdim=True) > 0).expand(pattern.shape).flatten(-2)[..., inside].to(pattern.dtype)
    shape = (*pattern.shape[:-2], 2 * reach + 1)
    total = pattern.new_zeros(shape).index_add_(-1, bucket, pattern.flatten(-2)[..., inside])
    return total / pattern.new_zeros(shape).index_add_(-1, bucket, sees)


def correlation(pattern: Tensor, other: Tensor, cells: Tensor) -> Tensor:
    """Pearson correlation of each map of pattern [..., query, key] with `other` [query, key], [...].

    It is over the cells where cells [query, key] bool is True. NaN if a map is constant there. Raises ValueError for maps of
    different shapes.
    """
    if not pattern.shape[-2:] == other.shape == cells.shape:
        raise ValueError(
            f"maps of different shapes: {tuple(pattern.shape)}, {tuple(other.shape)} and {tuple(cells.shape)}"
        )
    maps, one = pattern[..., cells], other[cells]
    maps, one = maps - maps.mean(-1, keepdim=True), one - one.mean()
    length = maps.norm(dim=-1) * one.norm()
    return torch.where(length > 1e-12, (maps @ one) / length, torch.nan)


def similarity(pattern: Tensor) -> Tensor:
    """Correlation of the maps of all heads, [head, head]."""
    flat = pattern.flatten(-2)
    flat = flat - flat.mean(-1, keepdim=True)
    flat = flat / flat.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return flat @ flat.mT


def _rows(pattern: Tensor, queries: Tensor | None) -> Tensor:
    return torch.arange(pattern.shape[-2], device=pattern.device) if queries is None else queries


def _offset_mean(pattern: Tensor, ahead: int, queries: Tensor | None) -> Tensor:
    """Mean weight on the key `ahead` tokens after each query, over the rows that have such a key."""
    rows = _rows(pattern, queries)
    here = (rows + ahead >= 0) & (rows + ahead < pattern.shape[-1])
    if not here.any():
        return torch.zeros(pattern.shape[:-2], device=pattern.device)
    return pattern[..., here.nonzero()[:, 0], (rows + ahead)[here]].mean(-1)


def _mean_over_rows(values: Tensor, pattern: Tensor) -> Tensor:
    """Mean over queries that see something: [..., query, x] -> [..., x]."""
    sees = (pattern.sum(-1) > 0).float()
    return (values * sees[..., None]).sum(-2) / sees.sum(-1, keepdim=True).clamp(min=1)


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
    rows = _sink_rows(records[0])
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
    return Sink(key, stack_ragged(shares, math.nan).float().cpu().numpy(), len(rows))


def _received(patterns: Sequence[Tensor]) -> Tensor:
    """[key]: mean weight on each key, every attention counting the same."""
    return torch.stack([pattern.mean((0, 1)).cpu() for pattern in patterns]).mean(0)


def _sink_rows(record: AttentionRecord) -> Tensor:
    """Evenly spaced rows that can see at least two keys."""
    n = record.n_query
    rows = torch.tensor(sorted({round(i) for i in np.linspace(0, n - 1, min(ROWS, n))}), device=record.device)
    return rows[record.mask(queries=rows).sum(-1) > 1]


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
    return rollout_of_patterns(means, residual)


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
