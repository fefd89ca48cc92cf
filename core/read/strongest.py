"""Strongest keys of some rows, and one edge in all heads, for texts of any length: no map of a head is held."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from ..errors import TextError
from ..run.predictions import checked_positions
from ..run.trace import Trace
from .directions import Site, asked, has_looks, records_of
from .looks import each_look
from .ragged import stacked

T = TypeVar("T")

BLOCK_BYTES = 1 << 25  # of the weights of one layer that are held together


@dataclass(frozen=True, eq=False)
class Strongest:
    """The k keys with the largest weights of each head and row, the strongest first; fewer if a text has fewer keys.

    additions are the contributions of these edges to the logit of the most likely token after their row, in logits; None if
    logits are not sums over edges. If a layer has fewer heads than another, keys are −1 and weights NaN for the missing ones.
    """

    positions: tuple[int, ...]
    keys: Tensor  # [layer, head, row, k] int64
    weights: Tensor  # [layer, head, row, k] float32
    additions: Tensor | None  # [layer, head, row, k] float32


@dataclass(frozen=True, eq=False)
class Link:
    """One edge, from a query to a key, in every head of every layer."""

    query: int
    key: int
    weights: Tensor  # [layer, head] float32
    additions: Tensor | None  # [layer, head] float32, in logits; see Strongest


def strongest_looks(
    run: Trace, positions: Sequence[int] | None = None, k: int = 9, site: Site | None = None
) -> Strongest:
    """The k keys with the largest weights in every head, for the rows `positions` (None: the last real token).

    site None is cross-attention if the model has it, otherwise self-attention of the last stack. Only some rows of a layer
    are held at a time. Raises IndexError for a position, TextError for fewer than one key, and the errors of core.looks() for
    memory and weights.
    """
    if k < 1:
        raise TextError(f"The strongest keys are 1 or more, not {k}. Ask for 9.")
    record = records_of(run, site)[0]
    _, real_keys = run.tokens_of(record)
    n = min(k, sum(not padding for padding in real_keys.padding))
    queries = run.forward.prompt.last_read[run.index]  # of the last stack
    rows = checked_positions(queries, positions)
    step = max(1, BLOCK_BYTES // (4 * record.n_heads * record.n_key))

    def strongest(weights: Tensor, additions: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        best, keys = weights.topk(n)  # [head, row, k]
        return keys.cpu(), best.cpu(), None if additions is None else additions.gather(-1, keys).cpu()

    blocks = [_in_layers(run, rows[i : i + step], site, strongest) for i in range(0, len(rows), step)]
    layers = [
        [torch.cat(parts, 1) for parts in zip(*layer, strict=True) if parts[0] is not None]
        for layer in zip(*blocks, strict=True)
    ]
    keys, weights, *additions = (
        stacked(parts, math.nan if parts[0].is_floating_point() else -1) for parts in zip(*layers, strict=True)
    )
    return Strongest(tuple(rows), keys, weights, additions[0] if additions else None)


def link(run: Trace, query: int, key: int, site: Site | None = None) -> Link:
    """The weight from `query` to `key` in every head, and the edge's contribution to the most likely token after the query.

    `site` is that of strongest_looks(). Raises IndexError for a query or a key that the run does not have.
    """
    record = records_of(run, site)[0]
    if not 0 <= key < record.n_key:
        raise IndexError(f"key {key} of {record.n_key}")
    if not 0 <= query < record.n_query:
        raise IndexError(f"query {query} of {record.n_query}")

    def one(weights: Tensor, additions: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return weights[:, 0, key].cpu(), None if additions is None else additions[:, 0, key].cpu()

    layers = _in_layers(run, [query], site, one)
    added = [found for _, found in layers if found is not None]
    return Link(
        query, key, stacked([weights for weights, _ in layers], math.nan), torch.stack(added) if added else None
    )


def _in_layers(
    run: Trace, rows: Sequence[int], site: Site | None, take: Callable[[Tensor, Tensor | None], T]
) -> list[T]:
    """take(weights, additions) of every layer, [head, row, key] each; additions are None if the model has none."""
    if has_looks(run):
        return each_look(asked(run, rows, None, site), lambda found: take(found.weights, found.additions))
    return [take(record.pattern(queries=list(rows)), None) for record in records_of(run, site)]
