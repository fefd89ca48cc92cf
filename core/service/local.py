"""LocalService: the Service of an Engine in this process.

What only reads a run's queries and keys is computed in a pool of its own, so that no thread of a server waits for it. What
needs another pass takes its turn among the passes; nobody's tile waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import Refused
from ..model.config import ModelConfig
from ..read.attribution import Contributions, LensLayer
from ..read.comparison import AnswerChange, Comparison, answer_change, compare
from ..read.swaps import Swap
from ..run.classes import Classes
from ..run.predictions import Predictions
from ..run.request import Progress
from ..sweep.ablations import HeadEffects
from ..sweep.pairs import Pair
from ..sweep.part import Component
from ..sweep.sweeps import SweepRequest
from .answers import (
    AskedParts,
    AskedPaths,
    Facts,
    HeadNotes,
    NextWord,
    PairRows,
    PartEstimates,
    PartRows,
    PartTests,
    PathEdges,
    SweepPart,
    TensorPlace,
    Values,
)
from .arrival import into_loop
from .engine import Engine
from .facts import facts_of
from .in_progress import RunsInProgress
from .maps.answers import HeadDone, LayerDone, RunDone
from .maps.compute import array
from .maps.heads import OF_A_HEAD, small, values_of
from .maps.local import LocalMaps
from .masks.local import LocalMasks
from .next_words import next_words_of, word_chances_of
from .positions.local import LocalPositions
from .sweeps import Sweeps
from .training.local import LocalTraining
from .walks.local import LocalWalks
from .writing.local import LocalWriting

PLACE = 0.5  # seconds between two looks at how far a run is, of which nobody tells it


class LocalService(LocalMaps, LocalMasks, LocalPositions, LocalTraining, LocalWalks, LocalWriting):
    """A Service; any number of threads and event loops may ask it."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._in_progress = RunsInProgress(engine.usage)
        engine.watch = self._in_progress.watch
        self._sweeps = Sweeps(partial(engine.again, aside=True), self._run, engine.weights)

    # runs

    async def follow(self, key: str) -> AsyncGenerator[Progress]:
        changed = asyncio.Event()
        wake = into_loop(changed.set)

        def tell() -> None:
            if not changed.is_set():
                wake()

        waiting = self.engine.submit(self.engine.request_of(key), tell)
        before = None
        try:
            while True:
                changed.clear()
                now = replace(waiting.progress, is_shown=self._in_progress.run(key) is not None)
                if now != before:
                    yield now
                if now.stage == "done":
                    waiting.result()
                    return
                before = now
                # Its place in the line changes with the others' turns, and not every layer is told.
                # Not wait_for(): of Python 3.11 it forgets that it was cancelled where the change comes at the same moment.
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if now.stage == "loading" else PLACE):
                        await changed.wait()
        finally:
            waiting.cancel()

    async def model(self, model_id: str) -> ModelConfig | None:
        loaded = self.engine.ready(model_id)
        return None if loaded is None else loaded.config

    async def chats(self, model_id: str) -> bool:
        loaded = self.engine.ready(model_id)
        return loaded is not None and loaded.chat_template is not None

    async def facts(self, key: str) -> Facts:
        run, request = await self._run(key), self.engine.request_of(key)
        conversation = (request.texts[0], request.target_text or "") if request.chat else None
        return replace(facts_of(run, key), conversation=conversation)

    async def facts_so_far(self, key: str) -> Facts | None:
        run = self._in_progress.run(key)
        return None if run is None else run.facts.result()

    def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        return self._in_progress.parts(key, record, head, query)

    # numbers of a run

    async def values(self, key: str, of: TensorPlace, most: int) -> Values:
        run, stack, layer, what, head = await self._run(key), of.stack, of.layer, of.what, of.head
        if what in OF_A_HEAD:
            named = "cross_attn" if of.site == "cross" else "attn"
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
        norms = run.residual_norms.get(outside.get(what, f"{stack}.blocks.{layer}.hook_{what}"))
        if norms is None:
            raise Refused(f"This run has no {what} in layer {layer} of its {stack}.")
        return Values(array(norms[None, : 4 * most]), 1, len(norms))

    async def predictions(self, key: str, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        async def make() -> Predictions:
            return await self._again(key, lambda run: run.predictions(positions, k))

        return await self._kept.get(("predictions", key, None if positions is None else tuple(positions), k), make)

    async def classes(self, key: str) -> Classes:
        return await self._kept.get(("classes", key), lambda: self._again(key, lambda run: run.classes()))

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        async def make() -> tuple[NextWord, ...]:
            return await self._again(key, lambda run: next_words_of(run, positions, k))

        return await self._kept.get(("next", key, tuple(positions), k), make)

    async def word_chances(
        self, key: str, words: Sequence[str], position: int | None = None
    ) -> tuple[float | None, ...]:
        async def make() -> tuple[float | None, ...]:
            return await self._again(key, lambda run: word_chances_of(run, words, position))

        return await self._kept.get(("chances", key, tuple(words), position), make)

    async def point(self, key: str, point: str, positions: Sequence[int] | None = None) -> np.ndarray:
        try:
            return array(await self._again(key, lambda run: run.activation(point, positions)))
        except KeyError as error:
            raise Refused(f"This run has no such numbers: {error.args[0]}.") from None

    async def logit_lens(self, key: str, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        return await self._again(key, lambda run: run.logit_lens(k, positions))

    async def contributions(self, key: str, position: int | None = None, token: int | None = None) -> Contributions:
        return await self._again(key, lambda run: run.logit_attribution(position, token))

    async def ablate_each(self, key: str, position: int | None = None, token: int | None = None) -> HeadEffects:
        return await self._again(key, lambda run: run.ablate_heads(position, token))

    def sweep(self, key: str, asked: SweepRequest) -> AsyncGenerator[SweepPart]:
        return self._sweeps.parts(key, asked)

    async def part_estimates(self, key: str, asked: AskedParts) -> PartEstimates:
        return await self._sweeps.estimates(key, asked)

    def part_rows(self, key: str, asked: AskedParts, only: Component | None = None) -> AsyncGenerator[PartRows]:
        return self._sweeps.part_rows(key, asked, only)

    async def part_tests(self, key: str, asked: AskedParts, part: Component) -> PartTests:
        return await self._sweeps.tests(key, asked, part)

    def path_edges(self, key: str, asked: AskedParts, paths: AskedPaths) -> AsyncGenerator[PathEdges]:
        return self._sweeps.path_edges(key, asked, paths)

    async def head_notes(self, key: str, asked: AskedParts) -> HeadNotes:
        return await self._sweeps.notes(key, asked)

    def pair_rows(self, key: str, pairs: tuple[Pair, ...]) -> AsyncGenerator[PairRows]:
        return self._sweeps.pair_rows(key, pairs)

    async def swaps(self, key: str, n: int = 3) -> tuple[Swap, ...]:
        return await self._sweeps.swaps(key, n)

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        async def make() -> AnswerChange:
            first = await self._run(key)
            return await self._again(other, lambda run: answer_change(first, run, position, k), aside=True)

        return await self._kept.get(("answer", key, other, position, k), make)

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        first = await self._run(key)
        return await self._again(other, lambda run: compare(first, run, k), aside=True)

    async def status(self) -> dict[str, Any]:
        return self.engine.status()
