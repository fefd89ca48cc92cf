"""Answers of a Service: frozen records of numbers, words and numpy arrays, which can travel between machines.

Those of one topic are in answers.py of its folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ..checkpoints import ModelSpec
from ..model.config import ModelConfig
from ..model.text import Tokens
from ..run.recorder import NonFinite, Step
from ..sweep.evidence import Verdict
from ..sweep.pairs import Pair
from ..sweep.part import Component
from ..sweep.paths import PathEdge
from ..sweep.sides import To
from ..sweep.sweeps import Sweep

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
    notices: tuple[str, ...] = ()  # what a reader of these numbers should know: padding that was read like words
    non_finite: NonFinite | None = None  # where the first number came up that is none; None where all are finite
    seconds: float = 0.0
    held_bytes: int = 0
    predicted_bytes: int = 0
    # Of a finished run of a text as a chat: the user's words, and the answer so far. The source is the whole conversation.
    conversation: tuple[str, str] | None = None

    @property
    def writes(self) -> bool:
        """Whether the model can continue a text."""
        return self.config.writes and self.config.head != "none"

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


@dataclass(frozen=True)
class TensorPlace:
    """The place of a tensor in a run. `layer`, `site` and `head` count where `what` is of a layer, of an attention, of a head."""

    stack: str
    layer: int
    site: str  # attn or cross
    what: str  # one of maps.heads.OF_A_HEAD, position, embed, final, or a point of the residual stream
    head: int


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


@dataclass(frozen=True, eq=False)
class SweepPart:
    """Rows of a sweep, from `first` on, of `of` in all."""

    first: int
    of: int
    sweep: Sweep

    @property
    def n(self) -> int:
        return self.sweep.after.n_rows

    def rest(self, first: int) -> SweepPart:
        """Its rows from row `first` of the whole sweep on."""
        sweep, at = self.sweep, first - self.first
        lengths = None if sweep.lengths is None else sweep.lengths[at:]
        cut = replace(sweep, places=sweep.places[at:], after=sweep.after[at:], lengths=lengths)
        return SweepPart(first, self.of, cut)


@dataclass(frozen=True)
class AskedParts:
    """A lead, and what every part of a run is set to. answer and alternative None are chosen as by logit_diff_between()."""

    other: str | None = None  # the key of the other run; None where there is none
    to: To = "other"
    position: int | None = None
    answer: int | None = None
    alternative: int | None = None


@dataclass(frozen=True, eq=False)
class PartEstimates:
    """The lead of a run, what moves it by estimate, and the words whose probabilities are told of every part."""

    position: int
    answer: int
    alternative: int
    watched: tuple[int, ...]  # the answer, the alternative, and the likeliest others of the run
    labels: dict[int, str]
    before: np.ndarray  # float32 [watched]: log p in the run itself
    there: np.ndarray | None  # float32 [watched]: in the other run
    heads: np.ndarray  # float32 [layer, head], in nats of the lead, as all estimates
    mlps: np.ndarray  # float32 [layer]
    resid: np.ndarray | None  # float32 [layer, token] of `tokens`; None where nothing is taken from another run
    tokens: tuple[int, ...]  # whose stream is a part
    of: int  # how many parts there are to run
    acts: np.ndarray  # int64 [layer, head]: the token at which each head would move the lead most, by estimate


@dataclass(frozen=True, eq=False)
class PartRows:
    """The next word with each of some parts changed by itself, from `first` on of `of` rows in all."""

    first: int
    of: int
    parts: tuple[Component, ...]
    log_p: np.ndarray  # float32 [row, watched]
    top: np.ndarray  # int64 [row]: the likeliest token
    top_p: np.ndarray  # float32 [row]
    labels: dict[int, str]  # of the likeliest tokens

    @property
    def n(self) -> int:
        return len(self.parts)

    def rest(self, first: int) -> PartRows:
        """Its rows from row `first` of all on."""
        at = first - self.first
        return PartRows(first, self.of, self.parts[at:], self.log_p[at:], self.top[at:], self.top_p[at:], self.labels)


@dataclass(frozen=True)
class PartTests:
    """One head or MLP under each test: what it does to the lead, in nats, and what becomes of the answer."""

    part: Component
    lead: float  # in the run itself
    names: tuple[To, ...]  # "other" first, where there is another run
    changes: tuple[float, ...]  # of the lead
    p: tuple[float, ...]  # of the answer, in each test
    verdict: Verdict


@dataclass(frozen=True)
class AskedPaths:
    """The heads that paths lie between, as (layer, head) of the last stack. `into` is the one receiver, None where all of them are."""

    heads: tuple[tuple[int, int], ...]
    into: tuple[int, int] | None = None


@dataclass(frozen=True)
class PathEdges:
    """Paths between heads, from `first` on of `of` in all: see core.patch_paths()."""

    first: int
    of: int
    edges: tuple[PathEdge, ...]

    @property
    def n(self) -> int:
        return len(self.edges)

    def rest(self, first: int) -> PathEdges:
        """Its edges from edge `first` of all on."""
        return PathEdges(first, self.of, self.edges[first - self.first :])


@dataclass(frozen=True, eq=False)
class HeadNotes:
    """Every head of the last stack: the token that it reads where it acts, and the words that it pushes up and down after the asked one."""

    key: (
        np.ndarray
    )  # int64 [layer, head]: the token that it reads most, but for the first one unless that is all it may read
    weight: np.ndarray  # float32 [layer, head]: how much of its attention that has
    first: np.ndarray  # float32 [layer, head]: how much the first token has
    pushes: (
        np.ndarray | None
    )  # float32 [layer, head, 2]: in nats, the answer and the alternative; None where logits are not linear


@dataclass(frozen=True, eq=False)
class PairChanges:
    """One pair of sentences: by how much each head and MLP, taken from the other text, changes the lead of the answer."""

    pair: Pair
    words: tuple[str, str]  # the answer and its alternative
    leads: tuple[float, float]  # of the answer over its alternative, in the text and in the other, in nats
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of a set, from `first` on, of `of` in all."""

    first: int
    of: int
    pairs: tuple[PairChanges, ...]

    @property
    def n(self) -> int:
        return len(self.pairs)

    def rest(self, first: int) -> PairRows:
        """Its pairs from pair `first` of all on."""
        return PairRows(first, self.of, self.pairs[first - self.first :])
