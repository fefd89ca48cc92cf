"""Maps in plain data: which one is asked for, its regions, rows and columns, and every head of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...read.findings import Finding
from ...read.head_roles import OpeningLink, Role
from ...read.sinks import Sink
from ..answers import SiteId

MapKind = Literal["head", "mean", "max", "rollout", "value"]
MAP_KINDS: tuple[MapKind, ...] = get_args(MapKind)
HIDDEN = 255  # the reason of a key that the visitor took out, beside rules.REASONS
TILE = 512  # cells along a side of a tile; what is larger is pooled


@dataclass(frozen=True)
class MapTransform:
    """Which picture of a run. `members` are (record, head) of a mean or maximum, none: all heads of the record.

    `hidden` counts tokens. With `words`, rows and columns are words instead of tokens.
    """

    record: int
    head: int
    kind: MapKind = "head"
    members: tuple[tuple[int, int], ...] = ()
    hidden: tuple[int, ...] = ()
    words: bool = False

    @property
    def is_plain(self) -> bool:
        """One head as it is."""
        return self.kind == "head" and not self.hidden and not self.words


@dataclass(frozen=True, eq=False)
class Tile:
    """A region of a map, or what it looks like from further away."""

    values: np.ndarray  # float32 [row, column]
    # uint8 [row, column]: why a cell has no number, as in rules.REASONS, or HIDDEN; 0 where it has one
    reasons: np.ndarray
    exact: bool  # False: each cell is the largest value of its patch
    how: str  # the same in words; empty where it is exact
    visible: np.ndarray | None = None  # float32 [row]: the share of each row that is not hidden; None where nothing is
    sink: int | None = None  # of a whole map: the token that gets the most on average


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a map. entropy is in bits, None where the values are no shares of one whole: of norms, and of a maximum."""

    values: np.ndarray  # float32 [column]
    reasons: np.ndarray  # uint8 [column]
    entropy: float | None
    visible: float | None  # the share of the row that is not hidden; None where nothing is


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
    terms: dict[
        str, np.ndarray
    ]  # float32 [key] each: what scaled adds up, where content and distance are apart (DeBERTa)


@dataclass(frozen=True, eq=False)
class Heads:
    """Every weight of one site. Masks that are alike are there once."""

    weights: np.ndarray  # float32 [layer, head, query, key]
    entropy: np.ndarray  # float32 [layer, head, query], bits
    masks: tuple[np.ndarray, ...]  # uint8 [query, key]: reasons, as in Tile
    mask_of: tuple[tuple[int, ...], ...]  # of each layer: which mask, or one for every head; -1 hides nothing


@dataclass(frozen=True, eq=False)
class WholeRun:
    """All that the picture of a small run is made of."""

    heads: Mapping[SiteId, Heads]
    openings: tuple[OpeningLink, ...]
    roles: tuple[tuple[Role, ...], ...]
    sinks: Mapping[SiteId, Sink | None]
    look: Finding | None = None  # that it opens on


@dataclass(frozen=True, eq=False)
class HeadAdditions:
    """The additions of every head of a kind of attention to the logits of the likeliest words after one token, in logits.

    words are the likeliest first, each with its probability.
    """

    words: tuple[tuple[str, float], ...]
    values: np.ndarray  # float32 [word, layer, head]


@dataclass(frozen=True, eq=False)
class HeadWords:
    """The effect of one head on the word after one token, in logits.

    additions are those of its looks to one of the likeliest words, whose sum the head adds to it. raised and lowered are the words, of the
    `among` likeliest, that its output moves most, the most moved first.
    """

    additions: np.ndarray  # float32 [key]
    raised: tuple[tuple[str, float], ...]
    lowered: tuple[tuple[str, float], ...]
    among: int


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Small pictures of the heads of one record, each pixel the largest weight of its patch."""

    values: np.ndarray  # float32 [head, row, column]
    how: str


@dataclass(frozen=True)
class Measures:
    """What one number can say about each head of a site: metric -> [layer][head], None where it means nothing there."""

    rows: int  # evenly spaced, that were looked at
    of: int
    values: dict[str, tuple[tuple[float | None, ...], ...]]


@dataclass(frozen=True, eq=False)
class Likeness:
    """The rows of one query by every head of a site, and what each shares with other weights over the same keys."""

    rows: np.ndarray  # float32 [layer, head, key]
    shared: np.ndarray  # float32 [layer, head]: measures.overlap


# The parts of a running run, as they come.


@dataclass(frozen=True, eq=False)
class LayerDone:
    """The pass has left one attention."""

    record: int
    thumbnails: Thumbnails


@dataclass(frozen=True, eq=False)
class HeadDone:
    """The head that somebody looks at: all of its map, and the row of one query."""

    record: int
    head: int
    query: int | None
    reach: tuple[int, int]  # how many queries and keys the map has, which of a long run the tile pools
    tile: Tile
    row: Row | None


@dataclass(frozen=True)
class RunDone:
    """The pass has come to its end."""

    seconds: float
