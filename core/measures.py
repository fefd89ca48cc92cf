"""What one number can say about a head: entropy, distance, sink share, previous-token, induction, rollout.

Patterns are [head, query, key] or any [..., query, key], float32. Rows that may see nothing (all zeros) are left out of
every mean. Nothing here knows about models.
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
    """What each key gets from the average query, [..., key]."""
    return _mean_over_rows(pattern, pattern)


def sink_share(pattern: Tensor, key: int = 0) -> Tensor:
    """The share of all attention that goes to one key, [...]: near 1 for heads that rest on the first token.

    Xiao et al. 2023, arXiv:2309.17453.
    """
    return received(pattern)[..., key]


def previous_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight on the token just before, over queries that have one, [...]."""
    return _offset_mean(pattern, -1, queries)


def diagonal(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight of each token on itself, [...]."""
    return _offset_mean(pattern, 0, queries)


def next_token(pattern: Tensor, queries: Tensor | None = None) -> Tensor:
    """The mean weight on the token just after, over queries that have one, [...]."""
    return _offset_mean(pattern, 1, queries)


def induction(pattern: Tensor, ids: Sequence[int], queries: Tensor | None = None) -> Tensor:
    """The mean weight on tokens that followed an earlier copy of the query's token, [...]; nan where no token repeats.

    Olsson et al. 2022, arXiv:2209.11895.
    """
    asked = _rows(pattern, queries).tolist()
    followers = [[j + 1 for j in range(i) if ids[j] == ids[i]] for i in asked]
    rows = [i for i, after in enumerate(followers) if after]
    if not rows:
        return torch.full(pattern.shape[:-2], float("nan"), device=pattern.device)
    return torch.stack([pattern[..., i, followers[i]].sum(-1) for i in rows], dim=-1).mean(-1)


def rollout(patterns: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """Attention followed through all layers, [query, key], each layer's heads averaged and mixed with the residual stream.

    Abnar & Zuidema 2020, arXiv:2005.00928. patterns are [head, n, n], first layer first.
    """
    n = patterns[0].shape[-1]
    joint = torch.eye(n, device=patterns[0].device)
    for pattern in patterns:
        joint = ((1 - residual) * pattern.mean(0) + residual * torch.eye(n, device=pattern.device)) @ joint
    return joint


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
