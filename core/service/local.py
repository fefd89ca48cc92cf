"""LocalService: the Service of an Engine in this process.

What only reads a run's queries and keys is worked out in a pool of its own, so that no thread of a server waits for it. What
needs another pass takes its turn among the passes; nobody's tile waits for that.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from torch import Tensor

from .. import aggregate, live, memory
from ..ablations import HeadEffects
from ..attention import AttentionRecord, Receipt
from ..attribution import Contributions, LensLayer
from ..checkpoints import Loaded
from ..comparison import AnswerChange, Comparison, answer_change, compare
from ..config import ModelConfig
from ..engine import Engine, Ticket
from ..errors import Busy, Refused
from ..generate import Sampling
from ..heads import Opening, Role, opening_of, openings, roles_of
from ..interventions import DropPadding, Intervention, NoScale
from ..leakage import check_model, leakage, relearnt
from ..leakage import facts as leak_facts
from ..live import Spec
from ..order import Equivariance, MovedOn, equivariance, moved_on, unturned
from ..padding import inertness
from ..recorder import Held
from ..request import Progress, Request
from ..scaling import WIDTHS, Spread, sharpness, spread
from ..sweeps import Asked
from ..trace import Predictions, Trace
from ..walk import Guess, Terms, Walk, guesses, terms, walk
from ..writing import CacheCost, LensRow, beginning, cache_cost, lens
from . import maps, masks, positions
from .answers import (
    Column,
    Facts,
    HeadDone,
    Heads,
    LayerDone,
    Looked,
    Measures,
    NextWord,
    Row,
    RunDone,
    Scores,
    Site,
    SiteId,
    Thumbnails,
    Tile,
    Values,
)
from .facts import facts_of, sites_of
from .heads import OF_A_HEAD, heads_of, measures_of, small, thumbnails_of, values_of
from .kept import Kept, arrival
from .live import Live
from .maps import MAP_KINDS, TILE, Map, MapTransform, array
from .masks import Leak, Masked, Outcome, Padded, Unscaled
from .positions import Clock, OrderChange, StackPositions
from .sweeps import SweepPart, Sweeps
from .trainer import News, Trainer
from .walks import AddedFacts, Walked, added, walk_bytes, walked
from .words import next_words_of
from .writing import BeamsGrown, Begun, Desk, Search, Written, own_target

T = TypeVar("T")

KEPT_BYTES = 64 << 20  # of answers that took long to work out
LOOKS = 3  # frames of a training in one answer
WALK_BYTES = 64 << 20  # of walks, whose numbers somebody asks about one by one
MOST_WAITING = 512  # answers that wait for a thread
SHORTER = "Try a shorter text, or a smaller part of the map."


class LocalService:
    """A Service; any number of threads and event loops may ask it."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        self.engine = engine
        self._live = Live()
        engine.watch = self._live.watch
        # Torch work: leave a core to the server. What is quick never waits for what takes seconds.
        workers = workers or max(1, cores() - 1)
        self._quick = ThreadPoolExecutor(workers, thread_name_prefix="quick")
        self._slow = ThreadPoolExecutor(workers, thread_name_prefix="slow")
        self._places = threading.BoundedSemaphore(MOST_WAITING)
        self._kept = Kept(KEPT_BYTES, nbytes)
        self._trainer = Trainer()
        self._walks = Kept(WALK_BYTES, walk_bytes)
        self._leaking = threading.Lock()
        # the model that leaks, and the one whose other weights it shares
        self._leaky: tuple[Loaded, Loaded] | None = None
        self._sweeps = Sweeps(engine.again, self._run)

    # runs

    async def submit(self, request: Request) -> str:
        self.engine.begin(request)
        return request.key

    async def edited(self, key: str, interventions: Sequence[Intervention]) -> str:
        request, run = self.engine.request_of(key), await self._run(key)
        written = None if run.target is None else run.target.text
        source = request.texts if written is not None or not request.write else (run.source.text, *request.texts[1:])
        return await self.submit(
            replace(
                request,
                texts=source,
                target_text=request.target_text if written is None else written,
                interventions=(*request.interventions, *interventions),
                write=0,
            )
        )

    async def follow(self, key: str) -> AsyncGenerator[Progress]:
        ticket = self.engine.submit(self.engine.request_of(key))
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            if not changed.is_set():
                with suppress(RuntimeError):  # that loop has been closed
                    loop.call_soon_threadsafe(changed.set)

        ticket.listen(tell)
        before = None
        try:
            while True:
                changed.clear()
                now = replace(ticket.progress, is_shown=self._live.run(key) is not None)
                if now != before:
                    yield now
                if now.stage == "done":
                    ticket.result()
                    return
                before = now
                await changed.wait()
        finally:
            ticket.cancel()

    async def model(self, model_id: str) -> ModelConfig | None:
        loaded = self.engine.ready(model_id)
        return None if loaded is None else loaded.config

    async def facts(self, key: str) -> Facts:
        return facts_of(await self._run(key), key)

    async def facts_so_far(self, key: str) -> Facts | None:
        run = self._live.run(key)
        return None if run is None else run.facts.result()

    def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        return self._live.parts(key, record, head, query)

    # maps

    async def tile(
        self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE
    ) -> Tile:
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.tile, shown, rows, columns, cells))

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        shown = await self._map(key, of)
        check_below("row", query, len(shown.queries))
        return await self._work(partial(maps.row, shown, query))

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        shown = await self._map(key, of)
        check_below("column", at, len(shown.keys))
        return await self._work(partial(maps.column, shown, at), slow=True)

    async def cells(self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int]) -> Tile:
        shown = await self._map(key, of)
        check_region(shown, rows, columns)
        return await self._work(partial(maps.cells, shown, rows, columns), slow=True)

    async def scores(self, key: str, record: int, head: int, query: int) -> Scores:
        found = await self._record(key, record)
        check_below("head", head, found.n_heads)
        check_below("query", query, found.n_query)
        return await self._work(partial(maps.scores, found, head, query))

    # all heads

    async def thumbnails(self, key: str) -> tuple[Thumbnails, ...]:
        async def make() -> tuple[Thumbnails, ...]:
            run = await self._run(key)
            if made := self._live.take(key):
                return tuple([await arrival(future) for future in made])
            return await self._work(lambda: tuple(thumbnails_of(record) for record in run.attention), slow=True)

        return await self._kept.get(("thumbnails", key), make)

    async def heads(self, key: str) -> dict[SiteId, Heads]:
        run = await self._run(key)
        sites = run_sites(run)
        return await self._work(lambda: {site.id: heads_of(run, site) for site in sites}, slow=True)

    async def measures(self, key: str, site: SiteId) -> Measures:
        run, at = await self._site(key, site)
        make = partial(measures_of, run, at)
        return await self._kept.get(("measures", key, site), lambda: self._work(make, slow=True))

    async def norms(self, key: str, site: SiteId) -> np.ndarray:
        run, at = await self._site(key, site)
        return array_of([await self._norms(key, run, record) for record in at.records])

    async def proof(self, key: str, record: int) -> Receipt:
        async def make() -> Receipt:
            found = await self._record(key, record)
            return await self._work((await self._held(found)).receipt, slow=True)

        return await self._kept.get(("proof", key, record), make)

    async def values(self, key: str, stack: str, layer: int, site: str, what: str, head: int, most: int) -> Values:
        run = await self._run(key)
        if what in OF_A_HEAD:
            named = "cross_attn" if site == "cross" else "attn"
            records = [r for r in run.attention if (r.stack, r.layer, r.site) == (stack, layer, named)]
            if not records or not 0 <= head < records[0].n_heads:
                raise Refused(f"This run has no head {head} in layer {layer} of its {stack}.")
            record = await self._held(records[0]) if what == "z" else records[0]
            return await self._work(partial(values_of, record, what, head, most))
        if what == "position":
            table = next((record.table() for record in run.positions if record.stack == stack), None)
            if table is None:
                raise Refused(f"This run adds no table of positions in its {stack}.")
            return await self._work(partial(small, table, most))
        outside = {"embed": f"{stack}.embed.hook_embed", "final": f"{stack}.hook_final"}
        norms = run.resid.get(outside.get(what, f"{stack}.blocks.{layer}.hook_{what}"))
        if norms is None:
            raise Refused(f"This run has no {what} in layer {layer} of its {stack}.")
        return Values(array(norms[None, : 4 * most]), 1, len(norms))

    async def predictions(self, key: str, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        return await self._again(key, lambda run: run.predictions(positions, k))

    def train(self, spec: Spec) -> AsyncGenerator[News]:
        return self._trainer.watch(spec)

    async def trained(self, spec: Spec, step: int) -> bytes:
        frames = {frame.step: frame for frame in self._trainer.frames(spec)}
        if step not in frames:
            raise Refused(f"This training keeps no step {step}. It keeps {', '.join(map(str, frames))}.")
        return await self._work(partial(live.archive, spec, frames[step]), slow=True)

    async def looks(self, spec: Spec, example: str, after: int = -1) -> tuple[Looked, ...]:
        of, frames = live.example(spec, example), self._trainer.frames(spec)
        coming = [frame for frame in frames if frame.step > after][:LOOKS]
        return tuple([await self._look(spec, frame, of) for frame in coming])

    async def _look(self, spec: Spec, frame: live.Frame, of: live.Example) -> Looked:
        def make() -> Looked:
            seen = live.look(spec, frame, of)
            pattern, finds, ahead = (array(x) for x in (seen.pattern, seen.finds, seen.ahead))
            return Looked(seen.step, pattern, seen.p, seen.best, seen.own, finds, ahead)

        return await self._kept.get(("look", spec, frame.step, of), lambda: self._work(make, slow=True))

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        async def make() -> tuple[NextWord, ...]:
            return await self._again(key, lambda run: next_words_of(run, positions, k))

        return await self._kept.get(("next", key, tuple(positions), k), make)

    async def roles(self, key: str) -> tuple[tuple[Role, ...], ...]:
        run = await self._run(key)
        return await self._kept.get(("roles", key), lambda: self._work(partial(roles_of, run), slow=True))

    async def openings(self, key: str) -> tuple[Opening, ...]:
        run = await self._run(key)
        return await self._kept.get(("openings", key), lambda: self._work(partial(openings, run)))

    async def opening(self, key: str, record: int, head: int) -> Opening:
        check_below("head", head, (await self._record(key, record)).n_heads)
        run = await self._run(key)
        return await self._work(partial(opening_of, run, record, head))

    async def point(self, key: str, point: str, positions: Sequence[int] | None = None) -> np.ndarray:
        try:
            return array(await self._again(key, lambda run: run.value(point, positions)))
        except KeyError as error:
            raise Refused(f"This run has no such numbers: {error.args[0]}.") from None

    async def logit_lens(self, key: str, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        return await self._again(key, lambda run: run.logit_lens(k, positions))

    async def contributions(self, key: str, position: int | None = None, token: int | None = None) -> Contributions:
        return await self._again(key, lambda run: run.contributions(position, token))

    async def ablate_each(self, key: str, position: int | None = None, token: int | None = None) -> HeadEffects:
        return await self._again(key, lambda run: run.ablate_each(position, token))

    def sweep(self, key: str, asked: Asked) -> AsyncGenerator[SweepPart]:
        return self._sweeps.parts(key, asked)

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        async def make() -> AnswerChange:
            first = await self._run(key)
            return await self._again(other, lambda run: answer_change(first, run, position, k))

        return await self._kept.get(("answer", key, other, position, k), make)

    async def walk(self, key: str, stack: str, layer: int, query: int) -> Walked:
        found = await self._walk(key, stack, layer, query)
        return await arrival(self.engine.again(partial(walked, found)))

    async def terms(
        self, key: str, stack: str, layer: int, query: int, step: str, index: Sequence[int], k: int = 6
    ) -> Terms:
        found = await self._walk(key, stack, layer, query)
        try:
            return await self._work(partial(terms, found, step, tuple(index), k))
        except KeyError as error:
            raise Refused(f"This layer has {error.args[0]}.") from None
        except (IndexError, ValueError) as error:
            raise Refused(f"There is {error}." if isinstance(error, IndexError) else f"{error}.") from None

    async def additions(self, key: str, stack: str) -> tuple[AddedFacts, ...]:
        async def make() -> tuple[AddedFacts, ...]:
            try:
                return await self._again(key, lambda run: added(run, stack))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("additions", key, stack), make)

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        async def make() -> tuple[Guess, ...]:
            return await self._again(key, lambda run: guesses(run, query))

        return await self._kept.get(("guesses", key, query), make)

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        first = await self._run(key)
        return await self._again(other, lambda run: compare(first, run, k))

    # positions

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        async def make() -> tuple[StackPositions, ...]:
            run = await self._run(key)
            return await self._work(partial(positions.positions_of, run), slow=True)

        return await self._kept.get(("positions", key), make)

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        run = await self._run(key)
        return await self._work(partial(positions.rows_of, run, stack, first, rows))

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderChange:
        async def make() -> OrderChange:
            run, at = await self._site(key, site)
            changed, _ = await self._site(other, site)
            return await self._work(partial(positions.order_change, run, changed, at, reach), slow=True)

        return await self._kept.get(("order", key, other, site, reach), make)

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        make = partial(self._again, key, lambda run: equivariance(run, places))
        return await self._kept.get(("equivariance", key, tuple(places)), make)

    async def moved_on(self, key: str, by: int) -> MovedOn:
        return await self._kept.get(("moved on", key, by), lambda: self._again(key, lambda run: moved_on(run, by)))

    async def clock(self, key: str, record: int, head: int, query: int, at: int) -> Clock:
        found = await self._record(key, record)
        for what, value, n in (
            ("head", head, found.n_heads),
            ("query", query, found.n_query),
            ("key", at, found.n_key),
        ):
            check_below(what, value, n)

        async def make() -> tuple[Tensor, Tensor]:
            before = await self._again(key, lambda run: unturned(run, found))
            return before.q, before.k

        q, k = await self._kept.get(("unturned", key, record), make)
        return await self._work(partial(positions.clock_of, await self._run(key), found, q, k, head, query, at))

    # masks

    async def masked(self, key: str, site: SiteId, layers: Sequence[int] | None = None) -> Masked:
        run, at = await self._site(key, site)
        chosen = range(len(at.records)) if layers is None else layers
        for layer in chosen:
            check_below("layer", layer, len(at.records))
        return await self._work(partial(masks.masked_of, run, at, chosen))

    async def outcome(self, key: str, ids: Sequence[int] = ()) -> Outcome:
        return await self._again(key, lambda run: masks.outcome_of(run, ids))

    async def padded(
        self, key: str, texts: Sequence[str], side: Literal["left", "right"], text: int, layer: int | None = None
    ) -> Padded:
        check_below("text", text, len(texts))
        run = await self._run(key)
        if layer is not None:
            check_below("layer", layer, run.config.stacks[0][1])
        model = self.engine.request_of(key).model_id
        asked = Request(model, tuple(texts), "" if run.target is not None else None, padding_side=side)
        one = replace(asked, texts=(texts[text],))
        keys = [await self.submit(each) for each in (asked, replace(asked, interventions=(DropPadding(),)), one)]
        batch, free, alone = [await self._run(each) for each in keys]

        def prove() -> Padded:
            seen, unmasked = batch.text(text), free.text(text)
            proofs = inertness(seen, alone), inertness(unmasked, alone)
            return masks.padded_of(seen, unmasked, proofs, layer)

        return await arrival(self.engine.again(prove))

    async def leakage(self, key: str) -> Leak:
        def make(run: Trace) -> Leak:
            check_model(run.loaded)
            with self._leaking:
                if self._leaky is None or self._leaky[0] is not run.loaded:
                    self._leaky = run.loaded, relearnt(run.loaded)
                other = self._leaky[1]
            return masks.leak_of(leakage(run, other), leak_facts())

        return await self._kept.get(("leakage", key), lambda: self._again(key, make))

    async def unscaled(self, key: str) -> Unscaled:
        run, other = await self._run(key), await self._run(await self.edited(key, (NoScale(),)))
        return await self._work(lambda: Unscaled(sharpness(run.attention), sharpness(other.attention)), slow=True)

    async def spreads(self) -> tuple[Spread, ...]:
        return await self._kept.get(("spreads",), lambda: self._work(lambda: tuple(map(spread, WIDTHS)), slow=True))

    # writing

    async def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] = ()
    ) -> AsyncGenerator[Begun | Written]:
        request, run = self.engine.request_of(key), await self._run(key)
        desk = await arrival(self.engine.again(lambda: Desk(run, request, tuple(path), max(1, n))))
        now: Begun | Written = await arrival(self.engine.again(lambda: desk.open(also)))
        yield now
        for _ in range(n):
            if now.over:
                return
            now = await arrival(self.engine.again(partial(desk.write, how)))
            yield now

    async def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        request, run = self.engine.request_of(key), await self._run(key)
        search = await arrival(self.engine.again(lambda: Search(run, request, n_beams, n)))
        while (grown := await arrival(self.engine.again(search.grow))) is not None:
            yield grown

    async def lens_at(self, key: str, path: Sequence[int], position: int, token: int) -> tuple[LensRow, ...]:
        request = self.engine.request_of(key)

        def make(run: Trace) -> tuple[LensRow, ...]:
            prompt = beginning(run, opens_target=own_target(request))
            return tuple(lens(run.loaded, prompt, path, position, token))

        at = ("lens", key, tuple(path), position, token)
        return await self._kept.get(at, lambda: self._again(key, make))

    async def cache_cost(self, key: str, path: Sequence[int], n: int = 240) -> CacheCost:
        request = self.engine.request_of(key)

        def make(run: Trace) -> CacheCost:
            return cache_cost(run.loaded, beginning(run, opens_target=own_target(request)), path, n)

        return await self._kept.get(("cache", key, tuple(path), n), lambda: self._again(key, make))

    async def status(self) -> dict[str, Any]:
        return self.engine.status()

    # how it is worked out

    async def _run(self, key: str) -> Trace:
        """The trace of a key. Whoever waits for it here counts as one who waits for the run."""
        ticket: Ticket = self.engine.submit(self.engine.request_of(key))
        try:
            return await arrival(ticket.job.future)
        finally:
            ticket.cancel()

    async def _again(self, key: str, make: Callable[[Trace], T]) -> T:
        """Something that runs the model once more, in its turn. Raises Refused for positions that the run does not have."""
        run = await self._run(key)
        try:
            return await arrival(self.engine.again(partial(make, run)))
        except IndexError as error:
            raise Refused(f"This run has no {error}.") from None

    async def _walk(self, key: str, stack: str, layer: int, query: int) -> Walk:
        async def make() -> Walk:
            return await self._again(key, lambda run: walk(run, stack, layer, query))

        return await self._walks.get((key, stack, layer, query), make)

    async def _record(self, key: str, record: int) -> AttentionRecord:
        run = await self._run(key)
        check_below("record", record, len(run.records))
        return run.attention[record]

    async def _site(self, key: str, site: SiteId) -> tuple[Trace, Site]:
        run = await self._run(key)
        sites = {found.id: found for found in run_sites(run)}
        if site not in sites:
            raise Refused(f"This run has no attention called {site!r}. It has {', '.join(sites)}.")
        return run, sites[site]

    async def _map(self, key: str, of: MapTransform) -> Map:
        run = await self._run(key)
        check_transform(run, of)
        if of.kind == "value":
            return Map(run, of, norms=(await self._norms(key, run, of.record))[of.head])
        if of.kind == "rollout":
            return Map(run, of, rollout=await self._rollout(key, run, of.record))
        return Map(run, of)

    async def _norms(self, key: str, run: Trace, record: int) -> Tensor:
        """[head, key], which for a long run takes another pass."""

        async def make() -> Tensor:
            return await self._work((await self._held(run.attention[record])).value_norms, slow=True)

        return await self._kept.get(("norms", key, record), make)

    async def _rollout(self, key: str, run: Trace, record: int) -> Tensor:
        chosen = run.attention[record]
        below = [other for other in run.attention if other.stack == chosen.stack and other.site == chosen.site]
        make = partial(aggregate.rollout, below, chosen.layer)
        return await self._kept.get(("rollout", key, record), lambda: self._work(make, slow=True))

    async def _held(self, record: AttentionRecord) -> AttentionRecord:
        """The same record with its values, which of a long run come from another pass, in its turn."""
        if isinstance(record.values, Held):
            return record
        return replace(record, values=Held(await arrival(self.engine.again(record.values))))

    async def _work(self, make: Callable[[], T], slow: bool = False) -> T:
        """Something that only reads what a run holds, in a thread of one of the two pools."""
        if not self._places.acquire(blocking=False):
            raise Busy(f"{MOST_WAITING} parts of pictures are waiting already. Try again in a few seconds.")
        future: Future[T] = (self._slow if slow else self._quick).submit(self._guarded, make)
        future.add_done_callback(lambda _: self._places.release())
        try:
            return await arrival(future)
        finally:
            future.cancel()  # of no effect on one that has begun

    def _guarded(self, make: Callable[[], T]) -> T:
        with memory.guarded(self.engine.device, "This picture", SHORTER):
            return make()


def run_sites(run: Trace) -> tuple[Site, ...]:
    lengths = {"source": len(run.source), "target": 0 if run.target is None else len(run.target)}
    return sites_of(run.config, lengths, has_target=run.target is not None)  # type: ignore[arg-type]


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


def check_below(what: str, value: int, n: int) -> None:
    if not 0 <= value < n:
        raise Refused(f"There is no {what} {value} in this run: they are counted from 0 to {n - 1}.")


def array_of(rows: Sequence[Tensor]) -> np.ndarray:
    return np.stack([array(row) for row in rows])


def nbytes(value: object) -> int:
    """About what an answer takes."""
    if isinstance(value, Tensor | np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(nbytes, value))
    return 2048 + sum(part.nbytes for part in getattr(value, "__dict__", {}).values() if isinstance(part, np.ndarray))


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
