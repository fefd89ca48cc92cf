"""Maps, rows, thumbnails and measures of heads, of the Service in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from torch import Tensor

from ..errors import Refused
from ..read import aggregate
from ..read.findings import Finding, findings, opened, opening_look
from ..read.head_roles import OpeningLink, Role, opening_of, openings, roles_of
from ..read.looks import looks_in
from ..read.sinks import Sink, sink
from ..read.worth import Worth, worth
from ..run.attention import Receipt
from ..run.trace import Trace
from . import maps
from .event_loop import wait_in_loop
from .facts import SiteId
from .maps import (
    MAP_KINDS,
    TILE,
    Column,
    FullRun,
    HeadAdditions,
    Heads,
    HeadWords,
    Map,
    MapTransform,
    Measures,
    Row,
    Scores,
    Similarity,
    Thumbnails,
    Tile,
)
from .pictures import (
    CANDIDATES,
    RunsInProgress,
    additions_of,
    correlations,
    heads_of,
    looks_at,
    measures_of,
    moves_of,
    similarity_of,
    thumbnails_of,
    whole_of,
    words_of,
)
from .worker import Worker, array_of, check_below, run_sites


class LocalMaps(Worker):
    """Pictures of a run's weights."""

    _in_progress: RunsInProgress  # thumbnails that were made while the run went on

    async def tile(
        self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE
    ) -> Tile:
        """A region of a map, ends excluded; pooled where it has more than cells × cells values."""
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.tile, shown, rows, columns, cells))

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        """One row of a map, and why cells of it have no number."""
        shown = await self._map(key, of)
        check_below("row", query, len(shown.queries))
        return await self._work(partial(maps.row, shown, query))

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        """Who looks at one column of a map. Raises Refused where too many weights would have to be worked out."""
        shown = await self._map(key, of)
        check_below("column", at, len(shown.keys))
        return await self._work(partial(maps.column, shown, at), slow=True)

    async def cells(self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int]) -> Tile:
        """Every value of a region, ends excluded, however large."""
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.cells, shown, rows, columns), slow=True)

    async def scores(self, key: str, record: int, head: int, query: int) -> Scores:
        """What the softmax of one row of a head is made of."""
        found = await self._record(key, record)
        check_below("head", head, found.n_heads)
        check_below("query", query, found.n_query)
        return await self._work(partial(maps.scores, found, head, query))

    async def thumbnails(self, key: str) -> tuple[Thumbnails, ...]:
        """Of every record of the run."""

        async def make() -> tuple[Thumbnails, ...]:
            run = await self._run(key)
            if made := self._in_progress.take(key):
                return tuple([await wait_in_loop(future) for future in made])
            return await self._work(lambda: tuple(thumbnails_of(record) for record in run.attention), slow=True)

        return await self._kept.get(("thumbnails", key), make)

    async def heads(self, key: str) -> dict[SiteId, Heads]:
        """Every weight of the run."""
        run = await self._run(key)
        sites = run_sites(run)
        return await self._work(lambda: {site.id: heads_of(run, site) for site in sites}, slow=True)

    async def whole(self, key: str) -> FullRun:
        """heads(), openings(), opening_look() and roles() of a small run in one answer: maps that several read are computed once.

        Roles are judged by every row here, also where roles() would draw some of them.
        """
        whole = await self._again(key, lambda run: whole_of(run, run_sites(run)))
        for site, rest in whole.sinks.items():
            self._kept.put(("sink", key, site), rest)
        self._kept.put(("opening look", key), whole.look)
        return whole

    async def measures(self, key: str, site: SiteId) -> Measures:
        """What one number can say about each head of a site: see core.measures."""
        run, at = await self._site(key, site)
        make = partial(measures_of, run, at)
        return await self._kept.get(("measures", key, site), lambda: self._work(make, slow=True))

    async def norms(self, key: str, site: SiteId) -> np.ndarray:
        """‖value · W_O‖ of each key as each head would write it, float32 [layer, head, key]. Kobayashi et al. 2020."""
        run, at = await self._site(key, site)
        return array_of([await self._norms(key, run, record) for record in at.records])

    async def similarity(self, key: str, site: SiteId, query: int, weights: Sequence[float]) -> Similarity:
        """The row of a query by every head of a site, beside weights [key] of somebody else's: of a class that votes, say."""
        run, at = await self._site(key, site)
        check_below("query", query, at.n_query)
        if len(weights) != at.n_key:
            raise Refused(f"There must be a weight for each of {at.n_key:,} keys, and there are {len(weights):,}.")
        return await self._work(partial(similarity_of, run, at, query, weights), slow=True)

    async def sink(self, key: str, site: SiteId) -> Sink | None:
        """The token that the heads of a site rest on, and how much each gives it: see core.read.sinks.sink."""
        run, at = await self._site(key, site)
        make = partial(sink, [run.attention[i] for i in at.records])
        return await self._kept.get(("sink", key, site), lambda: self._work(make, slow=True))

    async def looks_at(self, key: str, site: SiteId, query: int, at: int) -> np.ndarray:
        """The weight that each head of a site gives from one query to one key, `at`; float32 [layer, head]."""
        run, of = await self._site(key, site)
        check_below("query", query, of.n_query)
        check_below("key", at, of.n_key)
        return await self._work(partial(looks_at, run, of, query, at), slow=True)

    async def correlations(self, key: str, site: SiteId, layer: int, head: int) -> np.ndarray:
        """How like the map of one head that of every head of its site is, float32 [layer, head], nan for flat maps.

        Pearson's correlation over the cells that this head may see, without the column of the token that heads rest on, where
        there is one (Sink.is_sink): core.read.measures.correlation. Of a long text evenly spaced rows are compared.
        """
        run, of = await self._site(key, site)
        check_below("layer", layer, len(of.records))
        check_below("head", head, of.n_heads)
        found = await self.sink(key, site)
        apart = found.key if found is not None and found.is_sink else None
        return await self._work(partial(correlations, run, of, layer, head, apart), slow=True)

    async def head_additions(self, key: str, site: SiteId, position: int) -> HeadAdditions:
        """The additions of every head of a site to the five likeliest words after one token. Raises Refused where a logit is no such sum."""
        attention = await self._writing(key, site)
        make = partial(self._again, key, lambda run: additions_of(run, attention, position))
        return await self._kept.get(("additions of heads", key, site, position), make)

    async def head_words(
        self, key: str, site: SiteId, layer: int, head: int, position: int, candidate: int = 0
    ) -> HeadWords:
        """The additions of one head's looks to one of the five likeliest words after one token, and the words that it raises and lowers."""
        _, at = await self._site(key, site)
        check_below("candidate", candidate, CANDIDATES)
        check_below("layer", layer, len(at.records))
        check_below("head", head, at.n_heads)
        attention = await self._writing(key, site)
        make = partial(self._again, key, lambda run: moves_of(run, attention, position))
        moved = await self._kept.get(("moves", key, site, position), make)

        def of_head(run: Trace) -> HeadWords:
            looked = looks_in(run, layer, [position], attention, moved.tokens[candidate])
            return words_of(run, moved, layer, head, looked[head, 0])

        return await self._again(key, of_head)

    async def _writing(self, key: str, site: SiteId) -> Literal["attn", "cross_attn"]:
        """The attention of a site whose heads a logit reads. Raises Refused for the encoder's."""
        _, at = await self._site(key, site)
        if at.id == "encoder":
            raise Refused(
                "The logits of this model read no head of its encoder. Choose the decoder, or cross-attention."
            )
        return "cross_attn" if at.id == "cross" else "attn"

    async def proof(self, key: str, record: int) -> Receipt:
        """One record worked out again and compared."""

        async def make() -> Receipt:
            found = await self._record(key, record)
            return await self._work((await self._held(found)).receipt, slow=True)

        return await self._kept.get(("proof", key, record), make)

    async def roles(self, key: str) -> tuple[tuple[Role, ...], ...]:
        """A name for each head of every record, after where its attention goes: see core.read.head_roles.roles."""
        run = await self._run(key)
        return await self._kept.get(("roles", key), lambda: self._work(partial(roles_of, run), slow=True))

    async def openings(self, key: str) -> tuple[OpeningLink, ...]:
        """Where a picture of the run opens, by kind of attention in the order of the pass: see core.read.head_roles.openings.

        Of the kind of attention that opening_look() is about, it is that look.
        """

        async def make() -> tuple[OpeningLink, ...]:
            links = await self._work(partial(openings, await self._run(key)))
            return opened(links, await self.opening_look(key))

        return await self._kept.get(("openings", key), make)

    async def opening_look(self, key: str) -> Finding:
        """The look that a picture of the run opens on: see core.read.findings."""
        return await self._kept.get(("opening look", key), lambda: self._again(key, opening_look))

    async def findings(self, key: str) -> tuple[Finding, ...]:
        """The same, and the next best looks of other kinds."""
        return await self._kept.get(("findings", key), lambda: self._again(key, findings))

    async def worth(self, key: str) -> tuple[Worth, ...]:
        """The steps that are worth stepping through: see core.read.worth."""

        async def make() -> tuple[Worth, ...]:
            found = await self.findings(key)
            return await self._again(
                key, lambda run: worth(run, found), background=True
            )  # a walk that is asked for comes first

        return await self._kept.get(("worth", key), make)

    async def opening(self, key: str, record: int, head: int) -> OpeningLink:
        """Where to begin reading one head."""
        check_below("head", head, (await self._record(key, record)).n_heads)
        run = await self._run(key)
        return await self._work(partial(opening_of, run, record, head))

    async def _map(self, key: str, of: MapTransform) -> Map:
        run = await self._run(key)
        check_transform(run, of)
        if of.kind == "value":
            return Map(run, of, norms=(await self._norms(key, run, of.record))[of.head])
        if of.kind == "rollout":
            return Map(run, of, rollout=await self._rollout(key, run, of.record))
        return Map(run, of)

    async def _rollout(self, key: str, run: Trace, record: int) -> Tensor:
        chosen = run.attention[record]
        below = [other for other in run.attention if other.stack == chosen.stack and other.site == chosen.site]
        assert chosen.layer is not None  # a run's record
        make = partial(aggregate.rollout, below, chosen.layer)
        return await self._kept.get(("rollout", key, record), lambda: self._work(make, slow=True))


def check_transform(run: Trace, of: MapTransform) -> None:
    """Raises Refused, with what there is, for a transform that this run does not have."""
    records = run.records
    check_below("record", of.record, len(records))
    record = records[of.record]
    check_below("head", of.head, record.n_heads)
    if of.kind not in MAP_KINDS:
        raise Refused(f"There is no kind of map called {of.kind!r}. It must be one of {', '.join(MAP_KINDS)}.")
    for at, head in of.members:
        check_below("record", at, len(records))
        check_below("head", head, records[at].n_heads)
        if (records[at].stack, records[at].site) != (record.stack, record.site):
            raise Refused(f"Records {at} and {of.record} are of different kinds of attention and make no map together.")
    for key in of.hidden:
        check_below("hidden key", key, record.n_key)
    if len(set(of.hidden)) == record.n_key:
        raise Refused("Every key would be hidden. Leave one that can be seen.")
    if of.kind == "rollout" and record.site != "attn":
        raise Refused("Rollout follows self-attention; choose the encoder or the decoder.")


def check_region(shown: Map, rows: tuple[int, int], columns: tuple[int, int]) -> None:
    for what, (start, stop), n in (("rows", rows, len(shown.queries)), ("columns", columns, len(shown.keys))):
        if not 0 <= start < stop <= n:
            raise Refused(f"There are no {what} {start} to {stop} (its end excluded) on this map, which has {n:,}.")
