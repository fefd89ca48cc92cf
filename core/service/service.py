"""LocalService: answers questions about the runs of an engine in this process. SyncCalls: the same for threads without an event loop.

What only reads the queries and keys of a run is computed in a pool of its own. What needs another pass waits in the queue of passes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..device import array
from ..errors import HeadlightError, TextError
from ..model.config import ModelConfig
from ..model.text import from_ids, tokenize
from ..patching.edited_runs import HeadEffects
from ..read.attribution import Contributions, LensLayer
from ..read.comparison import AnswerChange, Comparison, answer_change, compare
from ..read.next_token_loss import given, probabilities
from ..run.predictions import Classes, Predictions
from ..run.request import Progress, Request
from ..trace import Trace
from .engine import Engine
from .facts import Facts, TensorPlace, Values, facts_of
from .jobs import RunHandle
from .map_questions import LocalMaps
from .maps import HeadDone, LayerDone, RunDone
from .masks import LocalMasks
from .pictures import HEAD_TENSORS, RunsInProgress, first_values, head_values
from .positions import LocalPositions
from .sweeps import LocalSweeps
from .training import LocalTraining
from .walks import LocalWalks
from .worker import into_loop
from .writing import LocalWriting

T = TypeVar("T")

POLL_SECONDS = 0.5  # longest interval between two progress reports of a queued or running job


@dataclass(frozen=True)
class NextWord:
    """Next-token prediction after one position: the most likely tokens with their probabilities, the most likely first.

    given is the (probability, rank) of the token that the text continues with, among `vocabulary` tokens; None after the last one.
    Rank 1 is the top prediction.
    """

    position: int
    words: tuple[tuple[str, float], ...]
    given: tuple[float, int] | None
    vocabulary: int


def next_words_of(run: Trace, positions: Sequence[int], k: int) -> tuple[NextWord, ...]:
    """One for each position. Raises TextError for a model that does not write, IndexError for a position outside the text."""
    tokens = run.source if run.target is None else run.target
    real = [not padding for padding in tokens.padding]
    positions = list(positions)
    followed = [i for i in positions if 0 <= i < len(tokens) - 1 and real[i] and real[i + 1]]
    own = given(run, followed)  # first, because its error explains why a model that does not write has none
    found = run.predictions(positions, k)
    ranked = zip(followed, own.probabilities.tolist(), own.ranks.tolist(), strict=True)
    given_at = {position: (probability, rank) for position, probability, rank in ranked}
    # One token at a time: next to another one its label may differ.
    labels = {i: from_ids(run.loaded.tokenizer, (i,)).labels[0] for ids in found.ids for i in ids}
    return tuple(
        NextWord(
            position,
            tuple((labels[i], p) for i, p in zip(ids, probs, strict=True)),
            given_at.get(position),
            run.config.vocab_size,
        )
        for position, ids, probs in zip(positions, found.ids, found.probs, strict=True)
    )


def token_probabilities_of(run: Trace, words: Sequence[str], position: int | None) -> tuple[float | None, ...]:
    """The probability of each word as the next token, None for a word of several tokens. Raises as conditional_loss.probabilities."""
    ids = [_single_token(run, word) for word in words]
    found = iter(probabilities(run, [id for id in ids if id is not None], position).tolist())
    return tuple(None if id is None else next(found) for id in ids)


def _single_token(run: Trace, word: str) -> int | None:
    """The token of a word with a space before it; None if it has several."""
    try:
        ids = tokenize(run.loaded.tokenizer, f" {word.strip()}", add_special_tokens=False).ids
    except TextError:
        return None
    return ids[0] if len(ids) == 1 else None


class LocalService(LocalMaps, LocalMasks, LocalPositions, LocalSweeps, LocalTraining, LocalWalks, LocalWriting):
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

    # runs

    async def follow(self, key: str) -> AsyncGenerator[Progress]:
        """Progress of a run, at every change, until it has finished. Raises the error that ended it.

        A caller counts as a waiter of the run. When the last one closes the iterator, an unfinished run is cancelled.
        """
        changed = asyncio.Event()
        wake = into_loop(changed.set)

        def notify() -> None:
            if not changed.is_set():
                wake()

        handle = self.engine.submit(self.engine.request_of(key), notify)
        before = None
        try:
            while True:
                changed.clear()
                now = replace(handle.progress, is_shown=self._in_progress.run(key) is not None)
                if now != before:
                    yield now
                if now.stage == "done":
                    handle.result()
                    return
                before = now
                # Polled too: the place in the queue changes with other visitors' tasks, and not every layer is notified.
                # Not wait_for(): in Python 3.11 it loses a cancellation that arrives together with the change.
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if now.stage == "loading" else POLL_SECONDS):
                        await changed.wait()
        finally:
            handle.cancel()

    def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        """A run in progress, layer by layer, with the map and one row of a head as soon as its layer is done."""
        return self._in_progress.parts(key, record, head, query)

    async def facts_so_far(self, key: str) -> Facts | None:
        """Facts of a run in progress that is shown layer by layer (Progress.is_shown); None for any other."""
        run = self._in_progress.run(key)
        return None if run is None else run.facts.result()

    async def facts(self, key: str) -> Facts:
        """Everything about the run except its large arrays."""
        run, request = await self._run(key), self.engine.request_of(key)
        conversation = (request.texts[0], request.target_text or "") if request.chat else None
        return replace(facts_of(run, key), conversation=conversation)

    async def model(self, model_id: str) -> ModelConfig | None:
        """The config of a model if it is in memory now."""
        loaded = self.engine.loaded_model(model_id)
        return None if loaded is None else loaded.config

    async def chats(self, model_id: str) -> bool:
        """True if the model is in memory now and has a chat template, so that it reads a text as a conversation."""
        loaded = self.engine.loaded_model(model_id)
        return loaded is not None and loaded.chat_template is not None

    async def status(self) -> dict[str, Any]:
        """Current counts, memory use and device, for the operator. Contains nothing of any text."""
        return self.engine.status()

    # activations and predictions

    async def values(self, key: str, of: TensorPlace, most: int) -> Values:
        """The first `most` × `most` numbers of a tensor; of the residual stream, ‖x‖ of 4 · most tokens."""
        run, stack, layer, what = await self._run(key), of.stack, of.layer, of.what
        if what in HEAD_TENSORS:
            site = "cross_attn" if of.site == "cross" else "attn"
            records = [r for r in run.attention if (r.stack, r.layer, r.site) == (stack, layer, site)]
            if not records or not 0 <= of.head < records[0].n_heads:
                raise HeadlightError(f"This run has no head {of.head} in layer {layer} of its {stack}.")
            record = await self._with_values(records[0]) if what == "z" else records[0]
            return await self._work(partial(head_values, record, what, of.head, most))
        if what == "position":
            table = next((record.table() for record in run.positions if record.stack == stack), None)
            if table is None:
                raise HeadlightError(f"This run adds no table of positions in its {stack}.")
            return await self._work(partial(first_values, table, most))
        outside = {"embed": f"{stack}.embed.hook_embed", "final": f"{stack}.hook_final"}
        norms = run.residual_norms.get(outside.get(what, f"{stack}.blocks.{layer}.hook_{what}"))
        if norms is None:
            raise HeadlightError(f"This run has no {what} in layer {layer} of its {stack}.")
        return Values(array(norms[None, : 4 * most]), 1, len(norms))

    async def point(self, key: str, point: str, positions: Sequence[int] | None = None) -> np.ndarray:
        """The activation at a hook point, float32 and without the batch axis: see Trace.value()."""
        try:
            return array(await self._rerun(key, lambda run: run.activation(point, positions)))
        except KeyError as error:
            raise HeadlightError(f"This run has no such numbers: {error.args[0]}.") from None

    async def predictions(self, key: str, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k most likely next tokens at each position. None: the last real token."""
        name = ("predictions", key, None if positions is None else tuple(positions), k)
        return await self._rerun_once(name, key, lambda run: run.predictions(positions, k))

    async def classes(self, key: str) -> Classes:
        """The answer of a classifier. Raises Refused for a model without a classification head."""
        return await self._rerun_once(("classes", key), key, lambda run: run.classes())

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        """Next-token predictions after each position, and the probability of the token that follows it in the text.

        Raises Refused for a model that does not write.
        """
        return await self._rerun_once(
            ("next", key, tuple(positions), k), key, lambda run: next_words_of(run, positions, k)
        )

    async def token_probabilities(
        self, key: str, words: Sequence[str], position: int | None = None
    ) -> tuple[float | None, ...]:
        """The probability of each word as the next token after a position (None: the last real token).

        None for a word that is more than one token with a space before it. Raises Refused for a model that does not write.
        """
        name = ("chances", key, tuple(words), position)
        return await self._rerun_once(name, key, lambda run: token_probabilities_of(run, words, position))

    async def logit_lens(self, key: str, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        """Logit lens: predictions from the residual stream before and after every layer."""
        return await self._rerun(key, lambda run: run.logit_lens(k, positions))

    # attribution, edits and comparison of runs

    async def contributions(self, key: str, position: int | None = None, token: int | None = None) -> Contributions:
        """Direct logit attribution of every component."""
        return await self._rerun(key, lambda run: run.logit_attribution(position, token))

    async def ablate_each(self, key: str, position: int | None = None, token: int | None = None) -> HeadEffects:
        """Effect of zero-ablating each head on a prediction, or on the text vector of an encoder."""
        return await self._rerun(key, lambda run: run.ablate_heads(position, token))

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        """How the answer of another run differs: its tokens or vectors, the loss, and the entropy of attention."""

        async def make() -> AnswerChange:
            first = await self._run(key)
            return await self._rerun(other, lambda run: answer_change(first, run, position, k), background=True)

        return await self._kept.get(("answer", key, other, position, k), make)

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        """Differences between two runs."""
        first = await self._run(key)
        return await self._rerun(other, lambda run: compare(first, run, k), background=True)


Service: TypeAlias = (
    LocalService  # for annotations: everything with the methods of LocalService, such as a RemoteService
)


class SyncCalls:
    """Calls a service from threads that cannot await, such as a page's script, by an event loop in a thread of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="calls", daemon=True).start()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a call of the service, and return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def result(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Call the service and wait for the answer."""
        return self.begin(coroutine).result()

    def submit(self, request: Request) -> RunHandle[None]:
        """Start or join a run, and wait for it: other calls give its numbers. Raises Busy."""
        changes, now = self.result(self._join(request))

        async def follow() -> None:
            nonlocal now
            async for change in changes:
                now = change

        finished = self.begin(follow())

        def leave() -> None:
            finished.cancel()
            self.begin(_close(changes))

        return RunHandle(request, finished, lambda: now, leave)

    async def _join(self, request: Request) -> tuple[AsyncGenerator[Progress], Progress]:
        """The progress of a run and its first report, after which this thread counts as a waiter."""
        changes = self.service.follow(await self.service.submit(request))
        return changes, await anext(changes)


async def _close(changes: AsyncGenerator[Progress]) -> None:
    with suppress(RuntimeError):  # it is being closed already
        await changes.aclose()
