"""Measures of attention patterns: entropy, distance, shares of the average row, induction, rollout, total variation.

Patterns are [head, query, key] or any [..., query, key], float32. Means leave out rows that can see nothing (all zeros),
except those over one offset (previous_token, diagonal, next_token), which are over all rows that have such a key.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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


def received(pattern: Tensor) -> Tensor:
    """Mean weight on each key over the queries, [..., key]."""
    return _mean_over_rows(pattern, pattern)


def sink_share(pattern: Tensor, key: int | Sequence[int] = 0, rows: Tensor | None = None) -> Tensor:
    """Share of all attention on one key or several, [...]: near 1 for heads with an attention sink there.

    Several keys are, for example, every [CLS] or </s> of a text: see Tokens.special. The mean is over the rows where rows
    [query] bool is True (None: all). The first row of a decoder can see nothing else and always has its full weight there;
    core.read.sinks leaves such rows out. Xiao et al. 2023, arXiv:2309.17453.
    """
    keys = [key] if isinstance(key, int) else list(key)
    return received(pattern if rows is None else pattern[..., rows, :])[..., keys].sum(-1)


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


def rollout(patterns: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """Attention rollout through all layers, [query, key]: each layer's heads averaged and mixed with the residual stream.

    Abnar & Zuidema 2020, arXiv:2005.00928. patterns are [head, n, n], first layer first.
    """
    n = patterns[0].shape[-1]
    joint = torch.eye(n, device=patterns[0].device)
    for pattern in patterns:
        joint = ((1 - residual) * pattern.mean(0) + residual * torch.eye(n, device=pattern.device)) @ joint
    return joint


def moved(before: Tensor, after: Tensor) -> Tensor:
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
