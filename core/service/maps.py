"""Maps: the picture of one head or of several, computed one region, row or column at a time.

The order of operations is: combine heads, remove hidden keys and renormalise rows, merge tokens to words. The browser does the same
for small runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..device import array, check_fits_or_retry
from ..errors import HeadlightError
from ..model.rules import DisentangledBias
from ..model.text import Tokens
from ..read import measures
from ..read.findings import Finding
from ..read.head_roles import OpeningEdge, Role
from ..read.measures import Sink, evenly_spaced, interval_midpoints
from ..run.attention import AttentionRecord, largest
from ..trace import Trace
from .facts import SiteId

MapKind = Literal["head", "mean", "max", "rollout", "value"]
MAP_KINDS: tuple[MapKind, ...] = get_args(MapKind)
HIDDEN = 255  # reason code of a key that the visitor removed, in addition to rules.REASONS
TILE = 512  # cells along a side of a tile; larger regions are pooled


@dataclass(frozen=True)
class MapTransform:
    """A picture of a run. `members` are the (record, head) of a mean or maximum; empty means all heads of the record.

    `hidden` are token positions. With `words`, rows and columns are words instead of tokens.
    """

    record: int
    head: int
    kind: MapKind = "head"
    members: tuple[tuple[int, int], ...] = ()
    hidden: tuple[int, ...] = ()
    words: bool = False

    @property
    def is_plain(self) -> bool:
        """True for one unmodified head."""
        return self.kind == "head" and not self.hidden and not self.words


@dataclass(frozen=True, eq=False)
class Tile:
    """A region of a map, pooled if it is large."""

    values: np.ndarray  # float32 [row, column]
    # uint8 [row, column]: why a cell has no value, as in rules.REASONS, or HIDDEN; 0 if it has one
    reasons: np.ndarray
    exact: bool  # False: each cell is the largest value of its patch
    how: str  # the method in words; empty if exact
    visible: np.ndarray | None = None  # float32 [row]: share of each row that is not hidden; None if no key is hidden
    sink: int | None = None  # of a whole map: the token with the largest mean weight


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a map. entropy is in bits; None for norms and maxima, which are no distribution."""

    values: np.ndarray  # float32 [column]
    reasons: np.ndarray  # uint8 [column]
    entropy: float | None
    visible: float | None  # share of the row that is not hidden; None if no key is hidden


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a map."""

    values: np.ndarray  # float32 [row]
    reasons: np.ndarray  # uint8 [row]


@dataclass(frozen=True, eq=False)
class Scores:
    """The terms of the softmax of one row."""

    raw: np.ndarray  # float32 [key]: q·k
    scaled: np.ndarray  # float32 [key]: (q·k · scale + bias) / temperature
    biased: bool
    # float32 [key] each: the terms of `scaled`, if content and distance are separate (DeBERTa)
    terms: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Heads:
    """Every weight of one site. Layers and heads with equal masks share one."""

    weights: np.ndarray  # float32 [layer, head, query, key]
    entropy: np.ndarray  # float32 [layer, head, query], bits
    masks: tuple[np.ndarray, ...]  # uint8 [query, key]: reasons, as in Tile
    mask_index: tuple[
        tuple[int, ...], ...
    ]  # of each layer: index of its mask, or one for every head; -1: nothing is masked


@dataclass(frozen=True, eq=False)
class FullRun:
    """Everything that the picture of a small run is drawn from."""

    heads: Mapping[SiteId, Heads]
    openings: tuple[OpeningEdge, ...]
    roles: tuple[tuple[Role, ...], ...]
    sinks: Mapping[SiteId, Sink | None]
    look: Finding | None = None  # the attention edge that it opens on


@dataclass(frozen=True, eq=False)
class HeadAdditions:
    """Direct logit attribution of every head of a site, for the most likely tokens after one position.

    words are (label, probability), the most likely first.
    """

    words: tuple[tuple[str, float], ...]
    values: np.ndarray  # float32 [word, layer, head]


@dataclass(frozen=True, eq=False)
class HeadWords:
    """Direct logit attribution of one head after one position.

    additions are those of its attention edges to one of the most likely tokens; the head's addition is their sum. raised and lowered
    are the tokens, among the `among` most likely, whose logits its output changes most, the largest change first.
    """

    additions: np.ndarray  # float32 [key]
    raised: tuple[tuple[str, float], ...]
    lowered: tuple[tuple[str, float], ...]
    among: int


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Thumbnails of the heads of one record. Each pixel is the largest weight of its patch."""

    values: np.ndarray  # float32 [head, row, column]
    how: str


@dataclass(frozen=True)
class Measures:
    """Measures of each head of a site: metric -> [layer][head], None if a metric does not apply."""

    rows: int  # evenly spaced rows that were read
    of: int
    values: dict[str, tuple[tuple[float | None, ...], ...]]


@dataclass(frozen=True, eq=False)
class Similarity:
    """The row of one query in every head of a site, and its overlap with other weights over the same keys."""

    rows: np.ndarray  # float32 [layer, head, key]
    shared: np.ndarray  # float32 [layer, head]: measures.overlap


# parts of a run in progress


@dataclass(frozen=True, eq=False)
class LayerDone:
    """The pass has left one attention."""

    record: int
    thumbnails: Thumbnails


@dataclass(frozen=True, eq=False)
class HeadDone:
    """The head that the viewer has open: its map, and the row of one query."""

    record: int
    head: int
    query: int | None
    reach: tuple[int, int]  # numbers of queries and keys of the map, which the tile pools if they are large
    tile: Tile
    row: Row | None


@dataclass(frozen=True)
class RunDone:
    """The pass has finished."""

    seconds: float


POOL_ROWS = 1024  # a pooled tile reads every query row up to this number, and evenly spaced ones above
POOL_BLOCK = 64  # rows of a pooled tile computed together
SINK_ROWS = 64  # rows whose mean gives the sink of a map
COLUMN_CELLS = 256_000_000  # weights computed for one column: twelve heads of 4,096 tokens, in some seconds


@dataclass(frozen=True, eq=False)
class Map:
    """A transform of one run, and the inputs that cannot be computed by rows: `norms` [key] for values, `rollout` [query, key]."""

    run: Trace
    transform: MapTransform
    norms: Tensor | None = None
    rollout: Tensor | None = None

    @cached_property
    def record(self) -> AttentionRecord:
        return self.run.attention[self.transform.record]

    @cached_property
    def heads(self) -> list[measures.Member]:
        """The heads of a mean or maximum; for the other kinds, those whose masks apply."""
        of = self.transform
        if of.kind in ("head", "value"):
            return [(self.record, of.head)]
        if of.members and of.kind != "rollout":
            records = self.run.attention
            return [(records[i], head) for i, head in of.members]
        return [(self.record, head) for head in range(self.record.n_heads)]

    @cached_property
    def queries(self) -> list[range]:
        return self._axis(0)

    @cached_property
    def keys(self) -> list[range]:
        return self._axis(1)

    def _axis(self, which: int) -> list[range]:
        tokens = self.run.tokens_of(self.record)[which]
        return word_groups(tokens) if self.transform.words else [range(i, i + 1) for i in range(len(tokens))]

    def combined(self, queries: Sequence[int]) -> Tensor:
        """The combined heads, [query, key] of tokens."""
        of = self.transform
        if self.rollout is not None:
            return self.rollout[list(queries)]
        if of.kind == "mean":
            return measures.mean(self.heads, queries)
        if of.kind == "max":
            return measures.maximum(self.heads, queries)
        weights = self.record.pattern(of.head, queries)[0]
        return weights if self.norms is None else weights * self.norms

    def values(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Values of the picture, [row, column], and the share of each row that is not hidden, [row]."""
        groups = [self.queries[i] for i in rows]
        weights = self.combined([token for group in groups for token in group])
        visible = torch.ones(len(weights), device=weights.device)
        if self.transform.hidden:
            total = weights.sum(-1)
            weights = weights.clone()
            weights[:, list(self.transform.hidden)] = 0
            rest = weights.sum(-1)
            visible = torch.where(total > 0, rest / total, 0)
            if self.transform.kind != "value":
                weights = torch.where(rest[:, None] > 0, weights / rest[:, None], 0)
        if not self.transform.words:
            return weights, visible
        of = torch.tensor([i for i, group in enumerate(self.keys) for _ in group], device=weights.device)
        columns = torch.zeros(len(weights), len(self.keys), device=weights.device).index_add_(1, of, weights)
        sizes = [len(group) for group in groups]
        return (
            torch.stack([part.mean(0) for part in columns.split(sizes)]),
            torch.stack([part.mean() for part in visible.split(sizes)]),
        )

    def reasons(self, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        """uint8 [row, column]: why a cell has no value; 0 if any part of it has one.

        If the parts of a word have different reasons, the first of REASONS; HIDDEN only if all of them are hidden.
        """
        groups, key_groups = [self.queries[i] for i in rows], [self.keys[i] for i in columns]
        tokens, keys = [t for group in groups for t in group], [t for group in key_groups for t in group]
        codes: np.ndarray | None = None
        seen: set[tuple[int, int]] = set()
        for record, head in self.heads:
            mask = record.rule.mask
            same = (id(record.batch_rule.mask), head if mask.heads_differ else 0)
            if same in seen:
                continue
            seen.add(same)
            own = reasons(record, tokens, keys, head)
            codes = own if codes is None else np.where(own == 0, 0, codes)
        assert codes is not None
        codes = codes.copy()
        codes[:, np.isin(keys, self.transform.hidden)] = HIDDEN
        if not self.transform.words:
            return codes
        # 0 (a part has a value) is the smallest code, HIDDEN the largest
        starts = [np.cumsum([0, *map(len, some)])[:-1] for some in (groups, key_groups)]
        return np.minimum.reduceat(np.minimum.reduceat(codes, starts[1], axis=1), starts[0], axis=0)

    def sink(self) -> int:
        """The token with the largest mean weight over evenly spaced rows, hidden or not."""
        rows = evenly_spaced(self.record.n_query, SINK_ROWS)
        is_value = self.transform.kind == "value"
        weights = self.record.pattern(self.transform.head, rows)[0] if is_value else self.combined(rows)
        return int(measures.mean_received(weights).argmax())


def reasons(record: AttentionRecord, queries: Sequence[int], keys: Sequence[int], head: int) -> np.ndarray:
    """[query, key] uint8: why each cell is masked, as an index into rules.REASONS."""
    q, k = (torch.as_tensor(at, device=record.device) for at in (queries, keys))
    return record.rule.mask.reasons(q, k, head).cpu().numpy()


def tile(shown: Map, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE) -> Tile:
    """A region of a map, ends excluded. Regions of more than cells × cells are pooled to that size."""
    is_whole = (rows, columns) == ((0, len(shown.queries)), (0, len(shown.keys)))
    sink = shown.sink() if is_whole else None
    n_rows, n_columns = min(cells, rows[1] - rows[0]), min(cells, columns[1] - columns[0])
    plain = shown.transform.is_plain
    if (n_rows, n_columns) == (rows[1] - rows[0], columns[1] - columns[0]):
        visible = None
        if plain:  # of a single head, only these columns are computed
            values = shown.record.pattern(shown.transform.head, slice(*rows), slice(*columns))[0]
        else:
            found = [shown.values(block) for block in blocks(range(*rows))]
            values = torch.cat([part[:, slice(*columns)] for part, _ in found])
            visible = array(torch.cat([visible for _, visible in found])) if shown.transform.hidden else None
        return Tile(array(values), shown.reasons(range(*rows), range(*columns)), True, "", visible, sink)

    def some(queries: Sequence[int]) -> Tensor:
        if plain:
            return shown.record.pattern(shown.transform.head, queries, slice(*columns))[0]
        return shown.values(queries)[0][:, slice(*columns)]

    values, how = pooled(some, rows, columns, n_rows, n_columns)
    between = shown.reasons(interval_midpoints(*rows, n_rows), interval_midpoints(*columns, n_columns))
    found = array(values)
    # A patch counts as masked if its middle is masked and it has no value.
    codes = np.where(found > 0, 0, between).astype("u1")
    how = how.replace("weight", "norm") if shown.transform.kind == "value" else how
    return Tile(found, codes, False, how, sink=sink)


def row(shown: Map, query: int) -> Row:
    """One row of a map."""
    codes = shown.reasons([query], range(len(shown.keys)))[0]
    values, visible = shown.values([query])
    is_distribution = shown.transform.kind not in ("value", "max")
    entropy = float(measures.entropy(values)[0]) if is_distribution else None
    return Row(array(values[0]), codes, entropy, float(visible[0]) if shown.transform.hidden else None)


def column(shown: Map, key: int) -> Column:
    """The weights on one key. Every row has to be computed for it: raises Refused if that takes too long."""
    cells = len(shown.heads) * shown.record.n_query * shown.record.n_key
    if shown.rollout is None and cells > COLUMN_CELLS:
        raise HeadlightError(
            f"To show who looks at this token would take {cells:,} weights, and {COLUMN_CELLS:,} is the most. "
            "Choose one head, or fewer of them."
        )
    rows = range(len(shown.queries))
    values = torch.cat([shown.values(block)[0][:, key] for block in blocks(rows)])
    return Column(array(values), shown.reasons(rows, [key])[:, 0])


def cells(shown: Map, rows: tuple[int, int], columns: tuple[int, int], block_cells: int = 1 << 21) -> Tile:
    """Every value of a region, computed a few whole rows at a time. Raises TooLarge."""
    (q0, q1), (k0, k1) = rows, columns
    what = f"A table of {q1 - q0:,} × {k1 - k0:,} cells"
    check_fits_or_retry((q1 - q0) * (k1 - k0) * 5, torch.device("cpu"), what, "Choose a smaller part of the map.")
    values = np.empty((q1 - q0, k1 - k0), dtype=np.float32)
    step = max(1, block_cells // (shown.record.n_key * max(len(group) for group in shown.queries)))
    for start in range(q0, q1, step):
        some = range(start, min(q1, start + step))
        values[start - q0 : start - q0 + len(some)] = array(shown.values(some)[0][:, k0:k1])
    return Tile(values, shown.reasons(range(q0, q1), range(k0, k1)), True, "")


def scores(record: AttentionRecord, head: int, query: int) -> Scores:
    """The terms of the softmax of one row."""
    raw, scaled = record.raw(head, query)[0, 0], record.scores(head, query)[0, 0]
    terms = record.terms(head, query) if isinstance(record.rule.bias, DisentangledBias) else {}
    arrays = {name: array(term[0, 0]) for name, term in terms.items()}
    return Scores(array(raw), array(scaled), record.rule.bias is not None, arrays)


def pooled(
    some: Callable[[Sequence[int]], Tensor],
    rows: tuple[int, int],
    columns: tuple[int, int],
    n_rows: int,
    n_columns: int,
) -> tuple[Tensor, str]:
    """Largest weights of patches, [n_rows, n_columns], and the method in words. `some(queries)` returns [query, column]."""
    every = rows[1] - rows[0] <= POOL_ROWS
    queries = list(range(*rows)) if every else interval_midpoints(*rows, n_rows)
    parts = []
    for start in range(0, len(queries), POOL_BLOCK):
        parts.append(largest(some(queries[start : start + POOL_BLOCK]), n_columns))
    values = torch.cat(parts)  # [query, n_columns]
    if len(values) > n_rows:
        values = largest(values.T, n_rows).T
    how = "the largest weight of each patch"
    if not every:
        how += f", looking at {n_rows} of {rows[1] - rows[0]:,} query rows"
    return values, how


def word_groups(tokens: Tokens) -> list[range]:
    """The tokens of each word, in order. A special token, or one of no word, is a group of its own."""
    found: list[range] = []
    for i, word in enumerate(tokens.word_ids):
        joins = i > 0 and word is not None and not tokens.special[i] and not tokens.special[i - 1]
        joins = joins and (word, tokens.sequence_ids[i]) == (tokens.word_ids[i - 1], tokens.sequence_ids[i - 1])
        if joins:
            found[-1] = range(found[-1].start, i + 1)
        else:
            found.append(range(i, i + 1))
    return found


def blocks(rows: range) -> list[range]:
    return [rows[i : i + POOL_BLOCK] for i in range(0, len(rows), POOL_BLOCK)]
