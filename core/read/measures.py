"""What one number can say about a head: entropy, distance, shares of the average row, induction, rollout, how far it moved.

Patterns are [head, query, key] or any [..., query, key], float32. Rows that may see nothing (all zeros) are left out of
every mean, but of those over one offset (previous_token, diagonal, next_token), which are over all rows that have such a key.
Nothing here knows about models.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def entropy(pattern: Tensor) -> Tensor:
    """Bits of each row, [..., query]: 0 looks at one key, log2(n) at n keys alike. 2^bits is how many tokens' worth it is."""
    return torch.special.entr(pattern).sum(-1) / torch.log(torch.tensor(2.0))


def distance(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """How far back each query looks on average, in tokens, [..., query]; keys ahead count as negative.

    queries [query] says which rows of the map these are; None: all of them, in order.
    """
    rows = _rows(pattern, queries)
    back = rows[:, None] - torch.arange(pattern.shape[-1], device=pattern.device)
    return (pattern * back).sum(-1)


def received(pattern: Tensor) -> Tensor:
    """The mean weight on each key over the queries, [..., key]."""
    return _mean_over_rows(pattern, pattern)


def sink_share(pattern: Tensor, key: int | Sequence[int] = 0, rows: Tensor | None = None) -> Tensor:
    """The share of all attention that goes to one key or to several, [...]: near 1 for heads that rest on them.

    Several are every [CLS] or </s> of a text: see Tokens.special. The mean is over the rows that rows [query] bool is True on
    (None: over all): a row that may see nothing else, as a decoder's first, gives all its attention there whatever the head
    does. core.read.sinks leaves such rows out. Xiao et al. 2023, arXiv:2309.17453.
    """
    keys = [key] if isinstance(key, int) else list(key)
    return received(pattern if rows is None else pattern[..., rows, :])[..., keys].sum(-1)


def punctuation(pattern: Tensor, keys: Sequence[int]) -> Tensor:
    """The share of all attention that goes to the keys named, those that are punctuation, [...]."""
    return sink_share(pattern, keys)


def previous_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight on the token just before, over queries that have one, [...]."""
    return _offset_mean(pattern, -1, queries)


def diagonal(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight of each token on itself, [...]."""
    return _offset_mean(pattern, 0, queries)


def next_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight on the token just after, over queries that have one, [...]."""
    return _offset_mean(pattern, 1, queries)


def near(pattern: Tensor, queries: Tensor | None = None, but_not: Sequence[int] = ()) -> Tensor:
    """The share of all attention that goes to the keys 2 to 5 tokens away on either side, but for some keys, [...]."""
    return shares(pattern, near_cells(_rows(pattern, queries), pattern.shape[-1], but_not)[None])[..., 0]


def same_token(pattern: Tensor, ids: Sequence[int], queries: Tensor | None = None, causal: bool = False) -> Tensor:
    """The mean weight on other copies of the query's token, over queries that have one, [...]; nan where no token repeats.

    With `causal`, only copies that come before the query are meant: those after it are masked.
    """
    copies = same_cells(ids, _rows(pattern, queries), causal)
    return shares(pattern, copies[None], copies.any(-1)[None])[..., 0]


def shares(pattern: Tensor, cells: Tensor, rows: Tensor | None = None) -> Tensor:
    """For each set of cells the weight on it in the average row, [..., part]; nan where a part has no row.

    cells [part, query, key] are True on what counts, rows [part, query] on the rows that the mean is over (None: on all).
    One matrix product for all heads and parts.
    """
    sees = (pattern.sum(-1) > 0).float()  # [..., query]
    rows = torch.ones(cells.shape[:2], device=pattern.device) if rows is None else rows.float()
    weights = (cells * rows[..., None]).flatten(1)  # [part, query * key]
    return (pattern.flatten(-2) @ weights.T) / (sees @ rows.T)


def near_cells(queries: Tensor, n_key: int, but_not: Sequence[int] = ()) -> Tensor:
    """[query, key] bool: the keys 2 to 5 tokens away, but for some keys."""
    away = (torch.arange(n_key, device=queries.device) - queries[:, None]).abs()
    cells = (away >= 2) & (away <= 5)
    cells[:, list(but_not)] = False
    return cells


def same_cells(ids: Sequence[int], queries: Tensor, causal: bool = False) -> Tensor:
    """[query, key] bool: the other copies of each query's token; with `causal` those before it."""
    numbers = torch.as_tensor(ids, device=queries.device)
    keys = torch.arange(len(numbers), device=queries.device)
    copies = numbers[queries][:, None] == numbers
    return copies & (keys < queries[:, None] if causal else keys != queries[:, None])


def induction_cells(ids: Sequence[int], queries: Tensor) -> Tensor:
    """[query, key] bool: the tokens that followed an earlier copy of each query's token."""
    return same_cells(ids, queries, causal=True).roll(1, dims=-1)


def induction(pattern: Tensor, ids: Sequence[int], queries: Tensor | None = None) -> Tensor:
    """The mean weight on tokens that followed an earlier copy of the query's token, [...]; nan where no token repeats.

    Olsson et al. 2022, arXiv:2209.11895.
    """
    followers = induction_cells(ids, _rows(pattern, queries))
    return shares(pattern, followers[None], followers.any(-1)[None])[..., 0]


def rollout(patterns: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """Attention followed through all layers, [query, key], each layer's heads averaged and mixed with the residual stream.

    Abnar & Zuidema 2020, arXiv:2005.00928. patterns are [head, n, n], first layer first.
    """
    n = patterns[0].shape[-1]
    joint = torch.eye(n, device=patterns[0].device)
    for pattern in patterns:
        joint = ((1 - residual) * pattern.mean(0) + residual * torch.eye(n, device=pattern.device)) @ joint
    return joint


def moved(before: Tensor, after: Tensor) -> Tensor:
    """How much of its attention a head has moved, [...]: half of Σ over keys of |before − after|, the mean over queries.

    0 where nothing has changed, 1 where every query looks at other keys altogether: the total variation distance of two
    rows. Rows that see nothing in either map are left out. Raises ValueError for maps of different shapes.
    """
    if before.shape != after.shape:
        raise ValueError(f"maps of different shapes: {tuple(before.shape)} and {tuple(after.shape)}")
    change = (before - after).abs().sum(-1) / 2  # [..., query]
    sees = ((before.sum(-1) > 0) | (after.sum(-1) > 0)).float()
    return (change * sees).sum(-1) / sees.sum(-1).clamp(min=1)


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """How much of its weight one row shares with another, [...]: Σ over keys of min(p, q), of [..., key] each.

    1 where two rows that sum to 1 are the same, 0 where they look at no key in common; it is 1 less the total variation distance of
    such rows. The leading axes broadcast. Raises ValueError for rows over different numbers of keys.
    """
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"rows over different keys: {p.shape[-1]} and {q.shape[-1]}")
    return torch.minimum(p, q).sum(-1)


def by_distance(pattern: Tensor, places: Tensor, reach: int, key_places: Tensor | None = None) -> Tensor:
    """The mean weight at each distance from −reach to +reach, [..., 2·reach + 1]; the middle is the token itself.

    Distance is the key's place less the query's: −1 is one back. places [query] and key_places [key] (None: the same) are
    where the model believes the tokens to be. Over the pairs that stand so far apart and whose query sees something; nan
    where there are none.
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
    """How like one map, `other` [query, key], each map of pattern [..., query, key] is over some cells, [...]: Pearson's correlation.

    Each weight counts less the mean of its map over these cells, those where cells [query, key] bool is True. 1 is the same
    pattern, 0 one that has nothing to do with it, below 0 one that looks where the other does not; nan where either map is flat.
    Raises ValueError for maps of another shape.
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
    """How alike the heads' maps are, [head, head]: correlation of the maps, each less its mean."""
    flat = pattern.flatten(-2)
    flat = flat - flat.mean(-1, keepdim=True)
    flat = flat / flat.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return flat @ flat.mT


def _rows(pattern: Tensor, queries: Tensor | None) -> Tensor:
    return torch.arange(pattern.shape[-2], device=pattern.device) if queries is None else queries


def _offset_mean(pattern: Tensor, ahead: int, queries: Tensor | None) -> Tensor:
    """The mean weight on the key `ahead` of each query, over the rows where there is such a key."""
    rows = _rows(pattern, queries)
    here = (rows + ahead >= 0) & (rows + ahead < pattern.shape[-1])
    if not here.any():
        return torch.zeros(pattern.shape[:-2], device=pattern.device)
    return pattern[..., here.nonzero()[:, 0], (rows + ahead)[here]].mean(-1)


def _mean_over_rows(values: Tensor, pattern: Tensor) -> Tensor:
    """The mean over queries that see something: [..., query, x] -> [..., x]."""
    sees = (pattern.sum(-1) > 0).float()
    return (values * sees[..., None]).sum(-2) / sees.sum(-1, keepdim=True).clamp(min=1)
