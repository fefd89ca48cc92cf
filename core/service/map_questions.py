"""Questions about the weights of a run: maps, rows, thumbnails, measures of heads, findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from torch import Tensor

from ..device import array
from ..errors import HeadlightError
from ..read import measures
from ..read.edge_attribution import edge_attribution_in_layer
from ..read.findings import Finding, findings, opening_finding
from ..read.head_roles import OpeningEdge, Role, opening_edge_of, opening_edges, run_roles
from ..read.key_steps import KeyStep, key_steps
from ..read.measures import Sink, sink
from ..run.attention import Receipt
from ..trace import Trace
from . import maps, pictures
from .facts import SiteId, run_sites
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
from .pictures import CANDIDATES, RunsInProgress, additions_of, moves_of, thumbnails_of, words_of
from .worker import Worker, check_below, wait_in_loop


class LocalMaps(Worker):
    _in_progress: RunsInProgress  # has the thumbnails that were made during the run

    async def tile(
        self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE
    ) -> Tile:
        """A region of a map, ends excluded; pooled if it has more than cells × cells values."""
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.tile, shown, rows, columns, cells))

    async def cells(self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int]) -> Tile:
        """Every value of a region, ends excluded, without pooling."""
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.cells, shown, rows, columns), slow=True)

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        """One row of a map, and why some of its cells have no value."""
        shown = await self._map(key, of)
        check_below("row", query, len(shown.queries))
        return await self._work(partial(maps.row, shown, query))

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        """One column of a map. Raises Refused if too many weights would have to be computed."""
        shown = await self._map(key, of)
        check_below("column", at, len(shown.keys))
        return await self._work(partial(maps.column, shown, at), slow=True)

    async def scores(self, key: str, record: int, head: int, query: int) -> Scores:
        """Terms of the softmax of one row of a head."""
        found = await self._record(key, record)
        check_below("head", head, found.n_heads)
        check_below("query", query, found.n_query)
        return await self._work(partial(maps.scores, found, head, query))

    async def thumbnails(self, key: str) -> tuple[Thumbnails, ...]:
        """Thumbnails of every record of the run."""

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
        return await self._work(lambda: {site.id: pictures.heads_of(run, site) for site in sites}, slow=True)

    async def whole(self, key: str) -> FullRun:
        """heads(), opening_edges(), opening_finding() and roles() of a small run in one answer: maps that several read are computed once.

        Roles are judged by every row here, where roles() may read evenly spaced ones.
        """
        whole = await self._rerun(key, lambda run: pictures.whole_of(run, run_sites(run)))
        for site, found in whole.sinks.items():
            self._kept.put(("sink", key, site), found)
        self._kept.put(("opening look", key), whole.look)
        return whole

    async def roles(self, key: str) -> tuple[tuple[Role, ...], ...]:
        """Role of each head of every record, by where its attention goes: see core.read.head_roles.roles."""
        run = await self._run(key)
        return await self._work_once(("roles", key), partial(run_roles, run))

    async def openings(self, key: str) -> tuple[OpeningEdge, ...]:
        """Where a picture of the run opens, by kind of attention in the order of the pass: see core.read.head_roles.opening_edges.

        For the kind of attention that opening_finding() is about, that edge.
        """

        async def make() -> tuple[OpeningEdge, ...]:
            look = await self.opening_look(key)
            return await self._work(partial(opening_edges, await self._run(key), look=look))

        return await self._kept.get(("openings", key), make)

    async def opening(self, key: str, record: int, head: int) -> OpeningEdge:
        """Where to start reading one head."""
        check_below("head", head, (await self._record(key, record)).n_heads)
        run = await self._run(key)
        return await self._work(partial(opening_edge_of, run, record, head))

    async def opening_look(self, key: str) -> Finding:
        """The attention edge that a picture of the run opens on: see core.read.findings."""
        return await self._rerun_once(("opening look", key), key, opening_finding)

    async def findings(self, key: str) -> tuple[Finding, ...]:
        """opening_finding(), and the next best edges of other kinds."""
        return await self._rerun_once(("findings", key), key, findings)

    async def worth(self, key: str) -> tuple[KeyStep, ...]:
        """Steps of the run that are worth stepping through: see core.read.key_steps."""

        async def make() -> tuple[KeyStep, ...]:
            found = await self.findings(key)
            # In the background: a walk that a visitor has asked for goes first.
            return await self._rerun(key, lambda run: key_steps(run, found), background=True)

        return await self._kept.get(("worth", key), make)

    async def measures(self, key: str, site: SiteId) -> Measures:
        """Measures of each head of a site: see core.read.measures."""
        run, of = await self._site(key, site)
        return await self._work_once(("measures", key, site), partial(pictures.measures_of, run, of))

    async def norms(self, key: str, site: SiteId) -> np.ndarray:
        """‖value · W_O‖ of each key in each head, float32 [layer, head, key]. Kobayashi et al. 2020."""
        run, of = await self._site(key, site)
        return np.stack([array(await self._norms(key, run, record)) for record in of.records])

    async def similarity(self, key: str, site: SiteId, query: int, weights: Sequence[float]) -> Similarity:
        """The row of a query in every head of a site, and its overlap with other weights [key], such as the votes of a class."""
        run, of = await self._site(key, site)
        check_below("query", query, of.n_query)
        if len(weights) != of.n_key:
            raise HeadlightError(
                f"There must be a weight for each of {of.n_key:,} keys, and there are {len(weights):,}."
            )
        return await self._work(partial(pictures.similarity_of, run, of, query, weights), slow=True)

    async def sink(self, key: str, site: SiteId) -> Sink | None:
        """Attention sink of a site, and the weight that each head gives it: see core.read.measures.sink."""
        run, of = await self._site(key, site)
        return await self._work_once(("sink", key, site), partial(sink, [run.attention[i] for i in of.records]))

    async def looks_at(self, key: str, site: SiteId, query: int, at: int) -> np.ndarray:
        """The weight from one query to one key, `at`, in each head of a site, float32 [layer, head]."""
        run, of = await self._site(key, site)
        check_below("query", query, of.n_query)
        check_below("key", at, of.n_key)
        return await self._work(partial(pictures.looks_at, run, of, query, at), slow=True)

    async def correlations(self, key: str, site: SiteId, layer: int, head: int) -> np.ndarray:
        """Correlation of one head's map with that of every head of its site, float32 [layer, head], NaN for constant maps.

        Pearson's correlation over the cells that this head may attend to, without the column of the attention sink if there is
        one (Sink.is_sink): core.read.measures.correlation. Long texts are compared by evenly spaced rows.
        """
        run, of = await self._site(key, site)
        check_below("layer", layer, len(of.records))
        check_below("head", head, of.n_heads)
        found = await self.sink(key, site)
        without = found.key if found is not None and found.is_sink else None
        return await self._work(partial(pictures.correlations, run, of, layer, head, without), slow=True)

    async def head_additions(self, key: str, site: SiteId, position: int) -> HeadAdditions:
        """Direct logit attribution of every head of a site for the five most likely tokens after one position.

        Raises Refused if logits are not sums over heads.
        """
        attention = await self._attention_name(key, site)
        name = ("additions of heads", key, site, position)
        return await self._rerun_once(name, key, lambda run: additions_of(run, attention, position))

    async def head_words(
        self, key: str, site: SiteId, layer: int, head: int, position: int, candidate: int = 0
    ) -> HeadWords:
        """Direct logit attribution of one head's edges to one of the five most likely tokens, and the tokens that it raises and lowers."""
        _, of = await self._site(key, site)
        check_below("candidate", candidate, CANDIDATES)
        check_below("layer", layer, len(of.records))
        check_below("head", head, of.n_heads)
        attention = await self._attention_name(key, site)
        name = ("moves", key, site, position)
        moved = await self._rerun_once(name, key, lambda run: moves_of(run, attention, position))

        def of_head(run: Trace) -> HeadWords:
            edges = edge_attribution_in_layer(run, layer, [position], attention, moved.tokens[candidate])
            return words_of(run, moved, layer, head, edges[head, 0])

        return await self._rerun(key, of_head)

    async def _attention_name(self, key: str, site: SiteId) -> Literal["attn", "cross_attn"]:
        """The attention of a site whose heads contribute to logits. Raises Refused for the encoder's."""
        _, of = await self._site(key, site)
        if of.id == "encoder":
            raise HeadlightError(
                "The logits of this model read no head of its encoder. Choose the decoder, or cross-attention."
            )
        return "cross_attn" if of.id == "cross" else "attn"

    async def proof(self, key: str, record: int) -> Receipt:
        """One record recomputed and compared."""

        async def make() -> Receipt:
            found = await self._record(key, record)
            return await self._work((await self._with_values(found)).receipt, slow=True)

        return await self._kept.get(("proof", key, record), make)

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
        records = [other for other in run.attention if other.stack == chosen.stack and other.site == chosen.site]
        assert chosen.layer is not None  # a run's record
        return await self._work_once(("rollout", key, record), partial(measures.rollout, records, chosen.layer))


def check_transform(run: Trace, of: MapTransform) -> None:
    """Raises Refused, naming what is available, for a transform that this run does not have."""
    records = run.records
    check_below("record", of.record, len(records))
    record = records[of.record]
    check_below("head", of.head, record.n_heads)
    if of.kind not in MAP_KINDS:
        raise HeadlightError(f"There is no kind of map called {of.kind!r}. It must be one of {', '.join(MAP_KINDS)}.")
    for at, head in of.members:
        check_below("record", at, len(records))
        check_below("head", head, records[at].n_heads)
        if (records[at].stack, records[at].site) != (record.stack, record.site):
            raise HeadlightError(
                f"Records {at} and {of.record} are of different kinds of attention and make no map together."
            )
    for key in of.hidden:
        check_below("hidden key", key, record.n_key)
    if len(set(of.hidden)) == record.n_key:
        raise HeadlightError("Every key would be hidden. Leave one that can be seen.")
    if of.kind == "rollout" and record.site != "attn":
        raise HeadlightError("Rollout follows self-attention; choose the encoder or the decoder.")


def check_region(shown: Map, rows: tuple[int, int], columns: tuple[int, int]) -> None:
    """Raises Refused for a region that is empty, or outside the map."""
    for what, (start, stop), n in (("rows", rows, len(shown.queries)), ("columns", columns, len(shown.keys))):
        if not 0 <= start < stop <= n:
            raise HeadlightError(
                f"There are no {what} {start} to {stop} (its end excluded) on this map, which has {n:,}."
            )
