"""Masks edited by hand: regions of cells, compiled so that a thousand of them cost a block of a map no more than ten do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from ..errors import TooLarge

Spans = tuple[range, ...]  # several places, as runs of neighbours in rising order: (range(2, 5), range(9, 10))
Cells = tuple[tuple[int, range], ...]  # a query and a run of its keys, in rising order

# What a compiled edit says of a cell: nothing, that it may be looked at, or that it may not.
UNTOUCHED, ALLOWED, HIDDEN = range(3)

TABLE_BYTES = 1 << 24  # the most that the edits of one run compile to: 16 MiB
MOST_REGIONS = 20_000  # rectangles and cells of one run, each painted once
MOST_BANDS = 16  # in one attention: a band is computed for each block again


@dataclass(frozen=True)
class Region:
    """The cells that one edit allows or hides, in one head or (None) in all of them.

    Either queries × keys, where None is every one, or single cells, or every cell whose distance, key − query, lies from the
    first to the last of `distances`, where None is no limit.
    """

    allowed: bool
    head: int | None = None
    queries: Spans | None = None
    keys: Spans | None = None
    cells: Cells = ()
    distances: tuple[int | None, int | None] | None = None

    def rectangles(self) -> list[tuple[range | None, range | None]]:
        """(queries, keys) of its parts; a band has none."""
        if self.distances is not None:
            return []
        if self.cells:
            return [(range(query, query + 1), keys) for query, keys in self.cells]
        return [(queries, keys) for queries in self.queries or (None,) for keys in self.keys or (None,)]

    @property
    def allows_future(self) -> bool:
        """Whether it lets some query look at a later key."""
        if not self.allowed:
            return False
        if self.distances is not None:
            return self.distances[1] is None or self.distances[1] > 0
        return any(
            keys is None or keys.stop - 1 > (0 if queries is None else queries.start)
            for queries, keys in self.rectangles()
        )

    @property
    def last_query(self) -> int:
        """-1 where no query is named."""
        return max([query for query, _ in self.cells] + [span.stop - 1 for span in self.queries or ()], default=-1)

    @property
    def last_key(self) -> int:
        """-1 where no key is named."""
        return max([keys.stop - 1 for _, keys in self.cells] + [span.stop - 1 for span in self.keys or ()], default=-1)


@dataclass(frozen=True, eq=False)
class Grid:
    """Rectangles painted over each other. Queries between two edges are all alike, and so are keys: a table holds the rest.

    table [group, rows, columns] uint8 has a row for every stretch between the query_edges [row - 1] and a column likewise.
    group_of [head] is where heads differ which of the groups a head belongs to.
    """

    query_edges: Tensor
    key_edges: Tensor
    table: Tensor
    group_of: Tensor | None = None

    @property
    def nbytes(self) -> int:
        return self.table.numel()

    @property
    def heads_differ(self) -> bool:
        return self.group_of is not None

    def codes(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[head or 1, query, key] uint8: UNTOUCHED, ALLOWED or HIDDEN, of all heads or of those asked for."""
        device = queries.device
        rows = torch.searchsorted(self.query_edges.to(device), queries, right=True)
        columns = torch.searchsorted(self.key_edges.to(device), keys, right=True)
        codes = self.table.to(device)[:, rows][:, :, columns]  # [group, query, key]
        if self.group_of is None:
            return codes
        group_of = self.group_of.to(device)
        return codes[group_of if heads is None else group_of[heads]]


@dataclass(frozen=True, eq=False)
class Band:
    """Every cell whose distance, key − query, lies from `first` to `last`, in one of n_heads or (None) in all."""

    first: int | None
    last: int | None
    code: int
    head: int | None
    n_heads: int
    nbytes: int = 0

    @property
    def heads_differ(self) -> bool:
        return self.head is not None

    def codes(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[head or 1, query, key] uint8, as Grid.codes gives it."""
        distance = keys.int() - queries.int()[:, None]
        inside = torch.ones_like(distance, dtype=torch.bool)
        if self.first is not None:
            inside &= distance >= self.first
        if self.last is not None:
            inside &= distance <= self.last
        codes = (inside.to(torch.uint8) * self.code)[None]
        if self.head is None:
            return codes
        chosen = torch.arange(self.n_heads, device=queries.device) if heads is None else heads
        return codes * (chosen == self.head)[:, None, None]


@dataclass(frozen=True, eq=False)
class Singles:
    """In every text of a batch one cell of its own, hidden: cells [row, 2] are (query, key), in one of n_heads or (None) in all."""

    cells: Tensor
    head: int | None
    n_heads: int
    nbytes: int = 0

    @property
    def heads_differ(self) -> bool:
        return self.head is not None

    def codes(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[row, head or 1, query, key] uint8, as Grid.codes gives it for each text."""
        query, key = self.cells.to(queries.device).unbind(1)
        here = (queries == query[:, None])[:, :, None] & (keys == key[:, None])[:, None]  # [row, query, key]
        codes = (here * HIDDEN).to(torch.uint8)[:, None]
        if self.head is None:
            return codes
        chosen = torch.arange(self.n_heads, device=queries.device) if heads is None else heads
        return codes * (chosen == self.head)[:, None, None]


Painted = Grid | Band | Singles


def painted(regions: Sequence[Region], n_heads: int) -> tuple[Painted, ...]:
    """The regions in their order, later over earlier ones, as few layers: neighbours that are no bands become one Grid.

    Raises TooLarge with both numbers where they are too many or their table would be too large.
    """
    n_parts = sum(len(region.rectangles()) for region in regions)
    if n_parts > MOST_REGIONS:
        raise TooLarge(
            f"These edits of the mask are {n_parts:,} cells and rectangles, and {MOST_REGIONS:,} is the most. "
            "Edit whole keys, whole queries or larger regions instead of single cells."
        )
    bands = sum(region.distances is not None for region in regions)
    if bands > MOST_BANDS:
        raise TooLarge(f"These edits of the mask have {bands} bands of distances, and {MOST_BANDS} is the most.")
    layers: list[Painted] = []
    for is_band, some in groupby(regions, key=lambda region: region.distances is not None):
        if is_band:
            for region in some:
                first, last = region.distances or (None, None)
                layers.append(Band(first, last, ALLOWED if region.allowed else HIDDEN, region.head, n_heads))
        else:
            layers.append(_grid(list(some), n_heads))
    return tuple(layers)


def _grid(regions: list[Region], n_heads: int) -> Grid:
    rectangles = [(part, region) for region in regions for part in region.rectangles()]
    query_edges = _edges([queries for (queries, _), _ in rectangles])
    key_edges = _edges([keys for (_, keys), _ in rectangles])
    named = sorted({region.head for region in regions if region.head is not None})
    group = {head: i + 1 for i, head in enumerate(named)}  # group 0: the heads that are not named
    shape = (len(named) + 1, len(query_edges) + 1, len(key_edges) + 1)
    check_size(math.prod(shape))
    table = np.zeros(shape, np.uint8)
    for (queries, keys), region in rectangles:
        groups = slice(None) if region.head is None else group[region.head]
        code = ALLOWED if region.allowed else HIDDEN
        table[groups, _stretch(query_edges, queries), _stretch(key_edges, keys)] = code
    group_of = torch.tensor([group.get(head, 0) for head in range(n_heads)]) if named else None
    return Grid(torch.from_numpy(query_edges), torch.from_numpy(key_edges), torch.from_numpy(table), group_of)


def _edges(spans: list[range | None]) -> np.ndarray:
    """Where some span begins or ends, in rising order, int64."""
    return np.unique(
        np.array([edge for span in spans if span is not None for edge in (span.start, span.stop)], np.int64)
    )


def _stretch(edges: np.ndarray, span: range | None) -> slice:
    """The rows of a table that a span covers: row i holds the places from edge i - 1 up to edge i."""
    if span is None:
        return slice(None)
    first, last = np.searchsorted(edges, [span.start, span.stop])
    return slice(int(first) + 1, int(last) + 1)


def check_size(size: int) -> None:
    """Raises TooLarge, with both numbers, for tables of more bytes than the edits of one run may take."""
    if size > TABLE_BYTES:
        raise TooLarge(
            f"These edits of the mask need a table of {size:,} bytes, and {TABLE_BYTES:,} is the most. "
            "Edit whole keys, whole queries or larger regions instead of single cells, or fewer heads apart."
        )
