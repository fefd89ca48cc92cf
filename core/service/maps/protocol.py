"""Questions of a screen about maps: the weights of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ...read.findings import Finding
from ...read.head_roles import OpeningLink, Role
from ...read.sinks import Sink
from ...read.worth import Worth
from ...run.attention import Receipt
from ..answers import SiteId
from .answers import (
    TILE,
    Column,
    HeadAdditions,
    Heads,
    HeadWords,
    Likeness,
    MapTransform,
    Measures,
    Row,
    Scores,
    Thumbnails,
    Tile,
    WholeRun,
)


class Maps(Protocol):
    """Pictures of a run's weights. What all answers have in common: core.service.protocol.Service."""

    async def tile(
        self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE
    ) -> Tile:
        """A region of a map, ends excluded; pooled where it has more than cells × cells values."""
        ...

    async def cells(self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int]) -> Tile:
        """Every value of a region, ends excluded, however large."""
        ...

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        """One row of a map, and why cells of it have no number."""
        ...

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        """Who looks at one column of a map. Raises Refused where too many weights would have to be worked out."""
        ...

    async def scores(self, key: str, record: int, head: int, query: int) -> Scores:
        """What the softmax of one row of a head is made of."""
        ...

    async def thumbnails(self, key: str) -> tuple[Thumbnails, ...]:
        """Of every record of the run."""
        ...

    async def heads(self, key: str) -> dict[SiteId, Heads]:
        """Every weight of the run."""
        ...

    async def whole(self, key: str) -> WholeRun:
        """heads(), openings(), opening_look() and roles() of a small run in one answer: maps that several read are computed once.

        Roles are judged by every row here, also where roles() would draw some of them.
        """
        ...

    async def roles(self, key: str) -> tuple[tuple[Role, ...], ...]:
        """A name for each head of every record, after where its attention goes: see core.read.head_roles.roles."""
        ...

    async def openings(self, key: str) -> tuple[OpeningLink, ...]:
        """Where a picture of the run opens, by kind of attention in the order of the pass: see core.read.head_roles.openings.

        Of the kind of attention that opening_look() is about, it is that look.
        """
        ...

    async def opening_look(self, key: str) -> Finding:
        """The look that a picture of the run opens on: see core.read.findings."""
        ...

    async def findings(self, key: str) -> tuple[Finding, ...]:
        """The same, and the next best looks of other kinds."""
        ...

    async def worth(self, key: str) -> tuple[Worth, ...]:
        """The steps that are worth stepping through: see core.read.worth."""
        ...

    async def opening(self, key: str, record: int, head: int) -> OpeningLink:
        """Where to begin reading one head."""
        ...

    async def measures(self, key: str, site: SiteId) -> Measures:
        """What one number can say about each head of a site: see core.measures."""
        ...

    async def norms(self, key: str, site: SiteId) -> np.ndarray:
        """‖value · W_O‖ of each key as each head would write it, float32 [layer, head, key]. Kobayashi et al. 2020."""
        ...

    async def likeness(self, key: str, site: SiteId, query: int, weights: Sequence[float]) -> Likeness:
        """The row of a query by every head of a site, beside weights [key] of somebody else's: of a class that votes, say."""
        ...

    async def sink(self, key: str, site: SiteId) -> Sink | None:
        """The token that the heads of a site rest on, and how much each gives it: see core.read.sinks.sink."""
        ...

    async def looks_at(self, key: str, site: SiteId, query: int, at: int) -> np.ndarray:
        """The weight that each head of a site gives from one query to one key, `at`; float32 [layer, head]."""
        ...

    async def correlations(self, key: str, site: SiteId, layer: int, head: int) -> np.ndarray:
        """How like the map of one head that of every head of its site is, float32 [layer, head], nan for flat maps.

        Pearson's correlation over the cells that this head may see, without the column of the token that heads rest on, where
        there is one (Sink.is_sink): core.read.measures.correlation. Of a long text evenly spaced rows are compared.
        """
        ...

    async def head_additions(self, key: str, site: SiteId, position: int) -> HeadAdditions:
        """The additions of every head of a site to the five likeliest words after one token. Raises Refused where a logit is no such sum."""
        ...

    async def head_words(
        self, key: str, site: SiteId, layer: int, head: int, position: int, candidate: int = 0
    ) -> HeadWords:
        """The additions of one head's looks to one of the five likeliest words after one token, and the words that it raises and lowers."""
        ...

    async def proof(self, key: str, record: int) -> Receipt:
        """One record worked out again and compared."""
        ...
