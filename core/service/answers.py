"""Answers of a Service: frozen records of numbers, words and numpy arrays, which can travel between machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..checkpoints import ModelSpec
from ..model.config import ModelConfig
from ..model.text import Tokens
from ..read.head_roles import OpeningLink, Role
from ..run.recorder import NonFinite, Step

SiteId = Literal["encoder", "decoder", "cross"]
Side = Literal["source", "target"]


@dataclass(frozen=True)
class RecordFacts:
    """One attention of a run."""

    name: str  # its module path
    stack: str
    layer: int
    site: Literal["attn", "cross_attn"]
    n_heads: int
    n_kv_heads: int
    n_query: int
    n_key: int


@dataclass(frozen=True)
class Site:
    """A kind of attention that a model has in several layers. `query` and `key` say whose tokens look, and at whose."""

    id: SiteId
    records: tuple[int, ...]  # which of Facts.records, by layer
    query: Side
    key: Side
    n_heads: int
    n_kv_heads: int
    n_query: int
    n_key: int

    @property
    def weights(self) -> int:
        """How many attention weights all its layers have."""
        return len(self.records) * self.n_heads * self.n_query * self.n_key


@dataclass(frozen=True, eq=False)
class Looked:
    """An example as one frame of a training sees it; live.Look in plain data."""

    step: int
    pattern: np.ndarray  # float32 [layer, head, query, key]
    p: tuple[float, ...]  # of the right symbol at each place of the answer, what is before it given
    best: tuple[str, ...]
    own: str  # what it writes on its own
    finds: np.ndarray  # float32 [layer, head]
    ahead: np.ndarray  # float32 [layer, head]


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything about a run but its large numbers. While the run goes on there are no steps, norms, seconds or bytes."""

    key: str
    spec: ModelSpec
    config: ModelConfig
    texts: int  # that ran together; what follows is of the first
    source: Tokens
    target: Tokens | None
    records: tuple[RecordFacts, ...]  # in the order of the pass
    sites: tuple[Site, ...]
    device: str
    dtype: str
    torch_version: str
    interventions: tuple[str, ...]  # as Python writes them
    steps: tuple[Step, ...] = ()
    residual_norms: dict[str, np.ndarray] | None = None  # hook point -> ‖x‖ float32 [pos]
    non_finite: NonFinite | None = None  # where the first number came up that is none; None where all are finite
    seconds: float = 0.0
    held_bytes: int = 0
    predicted_bytes: int = 0

    @property
    def writes(self) -> bool:
        """Whether the model can continue a text."""
        return self.config.n_decoder_layers > 0 and self.config.head != "none"

    @property
    def weights(self) -> int:
        """How many attention weights the run has in all."""
        return sum(site.weights for site in self.sites)

    def tokens(self, side: Side) -> Tokens:
        """Of one side; the source's where the model has no target."""
        return self.source if side == "source" or self.target is None else self.target

    def site_of(self, record: int) -> Site:
        """The site that a record belongs to. Raises IndexError where there is no such record."""
        if not 0 <= record < len(self.records):
            raise IndexError(f"record {record} of {len(self.records)}")
        return next(site for site in self.sites if record in site.records)

    def tokens_of(self, record: int) -> tuple[Tokens, Tokens]:
        """The tokens of a record's queries and of its keys."""
        site = self.site_of(record)
        return self.tokens(site.query), self.tokens(site.key)


@dataclass(frozen=True, eq=False)
class Tile:
    """A region of a map, or what it looks like from further away."""

    values: np.ndarray  # float32 [row, column]
    reasons: (
        np.ndarray
    )  # uint8 [row, column]: why a cell has no number, as in rules.REASONS, or HIDDEN; 0 where it has one
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


@dataclass(frozen=True, eq=False)
class Heads:
    """Every weight of one site. Masks that are alike are there once."""

    weights: np.ndarray  # float32 [layer, head, query, key]
    entropy: np.ndarray  # float32 [layer, head, query], bits
    masks: tuple[np.ndarray, ...]  # uint8 [query, key]: reasons, as in Tile
    mask_of: tuple[tuple[int, ...], ...]  # of each layer: which mask, or one for every head; -1 hides nothing


@dataclass(frozen=True, eq=False)
class Whole:
    """All that the picture of a small run is made of."""

    heads: Mapping[SiteId, Heads]
    openings: tuple[OpeningLink, ...]
    roles: tuple[tuple[Role, ...], ...]


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


@dataclass(frozen=True, eq=False)
class Values:
    """The first numbers of one tensor of a run, and its size. NaN where a mask hides one."""

    values: np.ndarray  # float32 [row, column]
    all_rows: int
    all_columns: int

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest finite number that is there; 0, 0 where there is none."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


@dataclass(frozen=True)
class NextWord:
    """What a model is about to write after one token: the likeliest words, most likely first, each with its probability.

    given is the probability and the rank (1: the best guess) of the word that the text goes on with, of `vocabulary` words;
    None after the last.
    """

    position: int
    words: tuple[tuple[str, float], ...]
    given: tuple[float, int] | None
    vocabulary: int


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
