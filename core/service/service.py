"""Next words of a run: the likeliest after each token, beside the text's own, and the probability of words that are asked about."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import Refused, TextError
from ..model.config import ModelConfig
from ..model.text import from_ids, tokenize
from ..read.attribution import Contributions, LensLayer
from ..read.comparison import AnswerChange, Comparison, answer_change, compare
from ..read.conditional_loss import given, probabilities
from ..read.swaps import Swap
from ..run.classes import Classes
from ..run.request import Progress, Request
from ..run.trace import Predictions, Trace
from ..sweep.ablations import HeadEffects
from ..sweep.pairs import Pair
from ..sweep.part import Part
from ..sweep.sweeps import Asked
from .engine import Engine
from .event_loop import into_loop
from .facts import Facts, NextWord, TensorPlace, Values, array, facts_of
from .jobs import RunHandle
from .map_questions import LocalMaps
from .maps import HeadDone, LayerDone, RunDone
from .masks import LocalMasks
from .pictures import OF_A_HEAD, RunsInProgress, small, values_of
from .positions import LocalPositions
from .sweep_rows import (
    HeadNotes,
    PairRows,
    PartEstimates,
    PartRows,
    PartTests,
    PatchRequest,
    PathEdges,
    PathRequest,
    SweepPart,
)
from .sweeps import Sweeps
from .training import LocalTraining
from .walks import LocalWalks
from .writing import LocalWriting


def next_words_of(run: Trace, positions: Sequence[int], k: int) -> tuple[NextWord, ...]:
    """One for each position. Raises TextError for a model that does not write the next word, IndexError for a position."""
    tokens = run.source if run.target is None else run.target
    real = [not padding for padding in tokens.padding]
    asked = list(positions)
    followed = [i for i in asked if 0 <= i < len(tokens) - 1 and real[i] and real[i + 1]]
    own = given(run, followed)  # first: it says why a model that does not write has none
    found = run.predictions(asked, k)
    chances = zip(followed, own.probabilities.tolist(), own.ranks.tolist(), strict=True)
    known = {position: (probability, rank) for position, probability, rank in chances}
    # One at a time: next to another one a token may read differently.
    labels = {i: from_ids(run.loaded.tokenizer, (i,)).labels[0] for ids in found.ids for i in ids}
    return tuple(
        NextWord(
            position,
            tuple((labels[i], p) for i, p in zip(ids, probs, strict=True)),
            known.get(position),
            run.config.vocab_size,
        )
        for position, ids, probs in zip(asked, found.ids, found.probs, strict=True)
    )


def token_probabilities_of(run: Trace, words: Sequence[str], position: int | None) -> tuple[float | None, ...]:
    """The probability of each word as the next one, None for a word of several tokens. Raises as conditional_loss.probabilities."""
    ids = [_single(run, word) for word in words]
    chances = iter(probabilities(run, [id for id in ids if id is not None], position).tolist())
    return tuple(None if id is None else next(chances) for id in ids)


def _single(run: Trace, word: str) -> int | None:
    """The token of a word that follows another, with its space; None where it is no single token."""
    try:
        ids = tokenize(run.loaded.tokenizer, f" {word.strip()}", add_special_tokens=False).ids
    except TextError:
        return None
    return ids[0] if len(ids) == 1 else None


PLACE = 0.5  # seconds between two looks at how far a run is, of which nobody tells it


class LocalService(LocalMaps, LocalMasks, LocalPositions, LocalTraining, LocalWalks, LocalWriting):
    """Answers about runs and trainings of an engine in this process, in plain data. Thread-safe, for any number of event loops.

    A run is identified by its key, Request.key. Answers are about the first text of a run; a run that was dropped is run again.
    Every method raises Refused or one of its subclasses, such as TooLarge and Busy, and Unknown for a key whose request is not
    remembered: a caller that has the request resubmits it once. Arrays in answers are shared: do not write to them. `site` is a
    Site.id, `record` an index into Facts.records, and `of` a description of the map. Callers must close streams they stop reading.

    The signatures here are the only description of the Service: cluster/wire.py reads them, and cluster.remote.RemoteService
    answers the same calls from other machines.
    """

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._in_progress = RunsInProgress(engine.usage)
        engine.on_progress = self._in_progress.watch
        self._sweeps = Sweeps(partial(engine.schedule, background=True), self._run, engine.weight_versions)

    # runs

    async def follow(self, key: str) -> AsyncGenerator[Progress]:
        """How far a run is, whenever that changes, until it has ended; raises what it was refused for.

        Whoever follows waits for it. When the last of them closes the iterator, a run that has not ended is cancelled.
        """
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
        """The config of a model that is in memory now."""
        loaded = self.engine.loaded_model(model_id)
        return None if loaded is None else loaded.config

    async def chats(self, model_id: str) -> bool:
        """Whether a model that is in memory now has a chat template, so that it reads a text as a conversation."""
        loaded = self.engine.loaded_model(model_id)
        return loaded is not None and loaded.chat_template is not None

    async def facts(self, key: str) -> Facts:
        """What the run says about itself."""
        run, request = await self._run(key), self.engine.request_of(key)
        conversation = (request.texts[0], request.target_text or "") if request.chat else None
        return replace(facts_of(run, key), conversation=conversation)

    async def facts_so_far(self, key: str) -> Facts | None:
        """The same of a run that goes on and is shown in parts, where Progress.is_shown says so."""
        run = self._in_progress.run(key)
        return None if run is None else run.facts.result()

    def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        """A run under way, layer by layer, with the map of one head as soon as its layer is done, and one row of it."""
        return self._in_progress.parts(key, record, head, query)

    # numbers of a run

    async def values(self, key: str, of: TensorPlace, most: int) -> Values:
        """The first `most` × `most` numbers of a tensor; of the residual stream ‖x‖ of 4 · most tokens."""
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
        norms = run.resid.get(outside.get(what, f"{stack}.blocks.{layer}.hook_{what}"))
        if norms is None:
            raise Refused(f"This run has no {what} in layer {layer} of its {stack}.")
        return Values(array(norms[None, : 4 * most]), 1, len(norms))

    async def predictions(self, key: str, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k likeliest next tokens at each position; None asks for the last real token."""

        async def make() -> Predictions:
            return await self._again(key, lambda run: run.predictions(positions, k))

        return await self._kept.get(("predictions", key, None if positions is None else tuple(positions), k), make)

    async def classes(self, key: str) -> Classes:
        """The answer of a classifier. Raises Refused for a model without a classification head."""
        return await self._kept.get(("classes", key), lambda: self._again(key, lambda run: run.classes()))

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        """What the model is about to write behind each position, in labels as a person reads them, and how likely the text's
        own next word was. Raises Refused for a model that does not write."""

        async def make() -> tuple[NextWord, ...]:
            return await self._again(key, lambda run: next_words_of(run, positions, k))

        return await self._kept.get(("next", key, tuple(positions), k), make)

    async def token_probabilities(
        self, key: str, words: Sequence[str], position: int | None = None
    ) -> tuple[float | None, ...]:
        """The probability of each of these words as the next one after a position (None: the last real token); None for a word
        that is not a single token with the space before it. Raises Refused for a model that does not write."""

        async def make() -> tuple[float | None, ...]:
            return await self._again(key, lambda run: token_probabilities_of(run, words, position))

        return await self._kept.get(("chances", key, tuple(words), position), make)

    async def point(self, key: str, point: str, positions: Sequence[int] | None = None) -> np.ndarray:
        """The numbers that passed a hook point, its axes without the batch, as Trace.value gives them; float32."""
        try:
            return array(await self._again(key, lambda run: run.value(point, positions)))
        except KeyError as error:
            raise Refused(f"This run has no such numbers: {error.args[0]}.") from None

    async def logit_lens(self, key: str, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        """What the head would predict from the residual stream before and behind every layer."""
        return await self._again(key, lambda run: run.logit_lens(k, positions))

    async def contributions(self, key: str, position: int | None = None, token: int | None = None) -> Contributions:
        """What each part of the model added to a logit."""
        return await self._again(key, lambda run: run.contributions(position, token))

    async def ablate_each(self, key: str, position: int | None = None, token: int | None = None) -> HeadEffects:
        """What silencing each head alone does to a prediction, or to the vector of an encoder's text."""
        return await self._again(key, lambda run: run.ablate_each(position, token))

    def sweep(self, key: str, asked: Asked) -> AsyncGenerator[SweepPart]:
        """What each of many edits does by itself to one answer: every head silenced, every look cut, every head taken from
        another run. Its rows come as they are worked out, in turn with everybody's passes; finished sweeps are kept."""
        return self._sweeps.parts(key, asked)

    async def part_estimates(self, key: str, asked: PatchRequest) -> PartEstimates:
        """By how much each part of a run would move a lead, to first order, and what there is to run: the order of part_rows()
        follows from it, and no more. Raises TextError for texts of unequal lengths, and TooLarge before anything runs."""
        return await self._sweeps.estimates(key, asked)

    def part_rows(self, key: str, asked: PatchRequest, only: Part | None = None) -> AsyncGenerator[PartRows]:
        """The next word with each head, MLP and stream at a word changed by itself: a run for each, the strongest estimates first,
        as sweep() gives its rows. `only` is one part alone, which waits for none of the others."""
        return self._sweeps.part_rows(key, asked, only)

    async def part_tests(self, key: str, asked: PatchRequest, part: Part) -> PartTests:
        """One head or MLP silent, at its mean and, where there is another run, taken from it, and whether these tests agree."""
        return await self._sweeps.tests(key, asked, part)

    def path_edges(self, key: str, asked: PatchRequest, paths: PathRequest) -> AsyncGenerator[PathEdges]:
        """How far the change of one head moves the lead through one input of a later head, all else held: a run for each path, as
        sweep() gives its rows. Raises TextError for unequal lengths, and TooLarge before anything runs."""
        return self._sweeps.path_edges(key, asked, paths)

    async def head_notes(self, key: str, asked: PatchRequest) -> HeadNotes:
        """Every head by the token that it reads where it acts, and by which of the two answers its output pushes up or down."""
        return await self._sweeps.notes(key, asked)

    def pair_rows(self, key: str, pairs: tuple[Pair, ...]) -> AsyncGenerator[PairRows]:
        """Every head and MLP taken from the other text of each pair, one pair after the other, by the model of this run as it is. Raises
        TextError with the line of the first pair that cannot run, before any runs, and TooLarge before the pair that is too large."""
        return self._sweeps.pair_rows(key, pairs)

    async def swaps(self, key: str, n: int = 3) -> tuple[Swap, ...]:
        """Words of the text whose replacement by one other changes the answer, the n that change it most, each checked by a run.
        Raises TextError for a model that is no decoder that writes."""
        return await self._sweeps.swaps(key, n)

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        """How the answer of the other run differs: its words or vectors, the loss, and how spread out attention is."""

        async def make() -> AnswerChange:
            first = await self._run(key)
            return await self._again(other, lambda run: answer_change(first, run, position, k), background=True)

        return await self._kept.get(("answer", key, other, position, k), make)

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        """What is different in the other run."""
        first = await self._run(key)
        return await self._again(other, lambda run: compare(first, run, k), background=True)

    async def status(self) -> dict[str, Any]:
        """What is held now, for the operator: counts, bytes and the device. Nothing about anybody's text."""
        return self.engine.status()


Service: TypeAlias = (
    LocalService  # for annotations: everything with the methods of LocalService, such as a RemoteService
)


T = TypeVar("T")


class SyncCalls:
    """An event loop in a thread of its own, in which other threads have a service answer."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="calls", daemon=True).start()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """The future of a call of the service."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def result(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The answer of a call of the service, awaited."""
        return self.begin(coroutine).result()

    def submit(self, request: Request) -> RunHandle[None]:
        """Begin a run, or join one, and wait for it: its numbers come with other calls. Raises Busy."""
        changes, now = self.result(self._joined(request))

        async def follow() -> None:
            nonlocal now
            async for change in changes:
                now = change

        ended = self.begin(follow())

        def leave() -> None:
            ended.cancel()
            self.begin(_closed(changes))

        return RunHandle(request, ended, lambda: now, leave)

    async def _joined(self, request: Request) -> tuple[AsyncGenerator[Progress], Progress]:
        """How far a run is from now on, and the first of it: with that this thread counts as one that waits."""
        changes = self.service.follow(await self.service.submit(request))
        return changes, await anext(changes)


async def _closed(changes: AsyncGenerator[Progress]) -> None:
    with suppress(RuntimeError):  # it is just being closed
        await changes.aclose()
