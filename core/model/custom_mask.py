"""Masks beyond the model's own: the mask argument of a fused-attention call, and regions edited by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import TooLarge


class FusedCall(NamedTuple):
    """Arguments of F.scaled_dot_product_attention, in its order, so that FusedCall(*args, **kwargs) parses any call."""

    query: Tensor  # [..., head, query, d_head]
    key: Tensor  # [..., kv_head, key, d_head]
    value: Tensor  # [..., kv_head, key, d_head]
    attn_mask: Tensor | None = None  # bool, True where visible, or numbers added to the scores
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None  # None: 1 / √d_head
    enable_gqa: bool = False


NEVER = float("-inf")
FAR = 4096.0  # least magnitude of numbers that hide; the smallest in use is 10,000


@dataclass(frozen=True, eq=False)
class CustomMask:
    """The mask argument of one call, with its original axes.

    values [..., head or 1, query or 1, key or 1] are bool, True for visible cells, or numbers that are added to the scores. Their
    leading axes broadcast to `leading`, the batch axes of the call. Numbers up to `hidden_from` hide cells (hiding_numbers).
    """

    values: Tensor
    leading: tuple[int, ...]
    hidden_from: float

    @property
    def is_soft(self) -> bool:
        """True if finite numbers hide cells, so that a fully hidden row still has weights."""
        return self.hidden_from > NEVER

    @property
    def heads_differ(self) -> bool:
        return self.values.shape[-3] > 1

    @cached_property
    def hides(self) -> bool:
        """True if a cell is hidden."""
        return not bool(self._seen(self.values).all())

    @cached_property
    def adds(self) -> bool:
        """True if a number other than 0 is added to a visible cell."""
        return self.values.dtype != torch.bool and bool((self._seen(self.values) & (self.values != 0)).any())

    def allowed(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query or 1, key or 1] bool for these positions: True for visible cells."""
        return self._seen(self.taken(queries, keys))

    def added(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the numbers added to visible cells, and 0 for hidden ones."""
        taken = self.taken(queries, keys)
        return taken.masked_fill(~self._seen(taken), 0.0)

    def hiding(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape, float32: the numbers added to hidden cells, and 0 for visible ones."""
        taken = self.taken(queries, keys)
        numbers = taken.masked_fill(self._seen(taken), 0.0)
        if numbers.dtype == torch.float64:  # its lowest number is finite and must remain finite
            numbers = numbers.clamp(min=torch.finfo(torch.float32).min).where(numbers.isfinite(), numbers)
        return numbers.float()

    def taken(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the original values."""
        values = tile(self.values, queries, keys)
        if values.shape[:-3].numel() == 1:
            return values.reshape(1, *values.shape[-3:])
        return values.expand(*self.leading, *values.shape[-3:]).flatten(0, len(self.leading) - 1)

    def of(self, text: int) -> CustomMask:
        """The same for one text of the batch."""
        return replace(self, values=select_text(self.values, self.leading, text)[None], leading=(1,))

    def _seen(self, values: Tensor) -> Tensor:
        # NaN does not hide. It reaches the softmax, and its row becomes NaN.
        return values if values.dtype == torch.bool else ~(values <= self.hidden_from)


def parse_custom_mask(values: Tensor, leading: tuple[int, ...]) -> CustomMask:
    """The mask argument of one call, after spread()."""
    return CustomMask(values, leading, NEVER if values.dtype == torch.bool else masked_values(values))


def with_all_axes(mask: Tensor) -> Tensor:
    """A call's mask [..., query or 1, key or 1] with all axes, and size 1 for axes that come from expand()."""
    mask = mask if mask.ndim > 2 else mask.reshape((1,) * (3 - mask.ndim) + tuple(mask.shape))
    for axis, (size, stride) in enumerate(zip(mask.shape, mask.stride(), strict=True)):
        mask = mask.narrow(axis, 0, 1) if stride == 0 and size > 1 else mask
    return mask


def masked_values(values: Tensor) -> float:
    """The largest number that hides a cell; −inf if only −inf does.

    A numeric mask has −1e4, −1e9 or the lowest number of a dtype in hidden cells, often plus a bias, added twice (for padding in the
    future), or rounded (−9,984 in bfloat16). So there is no fixed limit. The rule: numbers hide from minus the first power of two, at
    least 4,096, such that no number of the mask is between it and its half. A bias has no such gap: ALiBi, which grows step by step,
    reaches −4,096 after thousands of tokens and is not a mask.
    """
    lowest = torch.where(values.isfinite(), values, 0.0).amin().item() if values.numel() else 0.0
    limit = FAR
    while lowest <= -limit:
        if not ((values > -limit) & (values <= -limit / 2)).any():
            return -limit
        limit *= 2
    return NEVER


def select_text(x: Tensor, leading: tuple[int, ...], text: int) -> Tensor:
    """[..., a, b, c] -> [a, b, c]: x of one text of the batch. Leading axes of x broadcast to those of the call."""
    indices: list[int] = []
    for n in reversed(leading):
        text, index = divmod(text, n)
        indices.insert(0, index)
    for index in indices[len(indices) - (x.ndim - 3) :]:
        x = x[index if x.shape[0] > 1 else 0]
    return x


def tile(x: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """These rows and columns of x [..., query or 1, key or 1], which broadcasts."""
    x = x if x.shape[-2] == 1 else x[..., queries, :]
    return x if x.shape[-1] == 1 else x[..., keys]


Spans = tuple[range, ...]  # several positions as runs in rising order: (range(2, 5), range(9, 10))
Cells = tuple[tuple[int, range], ...]  # (query, run of keys) in rising order

# The code of a cell in a compiled edit.
UNTOUCHED, ALLOWED, HIDDEN = range(3)

TABLE_BYTES = 1 << 24  # maximum size of the compiled edits of one run: 16 MiB
MAX_REGIONS = 20_000  # rectangles and cells of one run
MAX_BANDS = 16  # in one attention; bands are computed for every block


@dataclass(frozen=True)
class Region:
    """The cells that one edit allows or hides, in one head or (None) in all.

    They are queries × keys (None: all), or single cells, or all cells whose distance, key − query, is from the first to the last of
    `distances` (None: no limit).
    """

    allowed: bool
    head: int | None = None
    queries: Spans | None = None
    keys: Spans | None = None
    cells: Cells = ()
    distances: tuple[int | None, int | None] | None = None

    def rectangles(self) -> list[tuple[range | None, range | None]]:
        """(queries, keys) of its rectangles; a band has none."""
        if self.distances is not None:
            return []
        if self.cells:
            return [(range(query, query + 1), keys) for query, keys in self.cells]
        return [(queries, keys) for queries in self.queries or (None,) for keys in self.keys or (None,)]

    @property
    def allows_future(self) -> bool:
        """True if it makes a later key visible to a query."""
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
        """-1 if no query is named."""
        return max([query for query, _ in self.cells] + [span.stop - 1 for span in self.queries or ()], default=-1)

    @property
    def last_key(self) -> int:
        """-1 if no key is named."""
        return max([keys.stop - 1 for _, keys in self.cells] + [span.stop - 1 for span in self.keys or ()], default=-1)


@dataclass(frozen=True, eq=False)
class Grid:
    """Overlapping rectangles. Queries between two edges have the same codes, and so do keys, so a small table is sufficient.

    table [group, rows, columns] uint8 has a row for every interval between query_edges [rows - 1], and a column for every interval
    between key_edges. group_of [head] is the group of each head; None if all heads are equal.
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
        """[head or 1, query, key] uint8: UNTOUCHED, ALLOWED or HIDDEN, for all heads or the given ones."""
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
    """All cells whose distance, key − query, is from `first` to `last`, in one of n_heads or (None) in all."""

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
        """[head or 1, query, key] uint8, as in Grid.codes."""
        distance = keys.int() - queries.int()[:, None]
        inside = torch.ones_like(distance, dtype=torch.bool)
        if self.first is not None:
            inside &= distance >= self.first
        if self.last is not None:
            inside &= distance <= self.last
        codes = (inside.to(torch.uint8) * self.code)[None]
        return _only_head(codes, self.head, self.n_heads, heads)


@dataclass(frozen=True, eq=False)
class CellSet:
    """One hidden cell for every text of a batch: cells [row, 2] are (query, key), in one of n_heads or (None) in all."""

    cells: Tensor
    head: int | None
    n_heads: int
    nbytes: int = 0

    @property
    def heads_differ(self) -> bool:
        return self.head is not None

    def codes(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[row, head or 1, query, key] uint8, as in Grid.codes for each text."""
        query, key = self.cells.to(queries.device).unbind(1)
        here = (queries == query[:, None])[:, :, None] & (keys == key[:, None])[:, None]  # [row, query, key]
        codes = (here * HIDDEN).to(torch.uint8)[:, None]
        return _only_head(codes, self.head, self.n_heads, heads)


def _only_head(codes: Tensor, head: int | None, n_heads: int, heads: Tensor | None) -> Tensor:
    """Codes [..., 1, query, key] of one head, for all heads or the given ones: UNTOUCHED for the others. None: equal for all heads."""
    if head is None:
        return codes
    selected = torch.arange(n_heads, device=codes.device) if heads is None else heads
    return codes * (selected == head)[:, None, None]


Painted = Grid | Band | CellSet


def apply_regions(regions: Sequence[Region], n_heads: int) -> tuple[Painted, ...]:
    """The regions compiled to layers, in order: later ones override earlier ones. Consecutive regions without bands become one Grid.

    Raises TooLarge, with both numbers, if there are too many or their table would be too large.
    """
    n_parts = sum(len(region.rectangles()) for region in regions)
    if n_parts > MAX_REGIONS:
        raise TooLarge(
            f"These edits of the mask are {n_parts:,} cells and rectangles, and {MAX_REGIONS:,} is the most. "
            "Edit whole keys, whole queries or larger regions instead of single cells."
        )
    bands = sum(region.distances is not None for region in regions)
    if bands > MAX_BANDS:
        raise TooLarge(f"These edits of the mask have {bands} bands of distances, and {MAX_BANDS} is the most.")
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
    group = {head: i + 1 for i, head in enumerate(named)}  # group 0: all other heads
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
    """The first position of each span and the one after its last, in rising order, int64."""
    return np.unique(
        np.array([edge for span in spans if span is not None for edge in (span.start, span.stop)], np.int64)
    )


def _stretch(edges: np.ndarray, span: range | None) -> slice:
    """The rows of a table for a span: row i covers the positions from edge i - 1 up to edge i."""
    if span is None:
        return slice(None)
    first, last = np.searchsorted(edges, [span.start, span.stop])
    return slice(int(first) + 1, int(last) + 1)


def check_size(size: int) -> None:
    """Raises TooLarge, with both numbers, if the tables of one run are too large."""
    if size > TABLE_BYTES:
        raise TooLarge(
            f"These edits of the mask need a table of {size:,} bytes, and {TABLE_BYTES:,} is the most. "
            "Edit whole keys, whole queries or larger regions instead of single cells, or fewer heads apart."
        )
