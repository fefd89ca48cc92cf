"""Questions about what a model writes: text token by token, beam search, the logit lens and the KV cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from ..checkpoints import Loaded
from ..device import dtype_name
from ..plan import KVCache, kv_cache
from ..run.request import Prompt, Request
from ..trace import Trace
from ..write.beams import BeamStep, extend_beams
from ..write.generate import DecodingState, Sampling, append_tokens, check_generation_fits
from ..write.writer import (
    CacheCost,
    ChosenToken,
    LensColumn,
    LensRow,
    Opening,
    TokenDistribution,
    WordAttribution,
    Writer,
    attribute_tokens,
    beginning,
    cache_cost,
    check_path,
    check_room,
    glued,
    labels,
    lens,
    lens_columns,
)
from .engine import Engine
from .sweeps import LABEL_BYTES
from .worker import AnswerCache, Worker

T = TypeVar("T")

MAX_WRITTEN = 512  # tokens after a prompt, so that a link can name them
PREPARED_BYTES = (
    32 << 20
)  # of prompts that were read and not continued: everyone who opens a shared text requests the same
MAX_HELD, MAX_HELD_BYTES = 4, 32 << 20  # texts whose KV cache is kept for the next request, and the size limit of one
Over = Literal["", "end", "positions", "most"]  # why no further token can be written


@dataclass(frozen=True)
class Continuation:
    """Requests tokens after a text that the caller already has. `first` is the first of them, unless it is to be sampled."""

    first: int | None = None


@dataclass(frozen=True, eq=False)
class PreparedText:
    """A prompt and the tokens written after it, as first sent.

    labels are those of all tokens that appear here for the first time. joins_previous lists the ones, of these and of the prompt,
    that have no space before them.
    """

    opening: Opening
    prompt: tuple[int, ...]  # the tokens that were read before anything was written
    prompt_labels: tuple[str, ...]
    labels: dict[int, str]
    joins_previous: tuple[int, ...]
    ends: tuple[int, ...]  # tokens that end a text
    over: Over
    per_token: KVCache  # KV cache bytes per token, and what they would be with other numbers of KV heads


@dataclass(frozen=True, eq=False)
class WrittenToken:
    """One more token. There is no reading after a token that ends the text."""

    taken: ChosenToken
    reading: TokenDistribution | None
    labels: dict[int, str]
    joins_previous: tuple[int, ...]
    over: Over


@dataclass(frozen=True, eq=False)
class BeamsGrown:
    """One more step of a beam search."""

    step: BeamStep
    labels: dict[int, str]
    joins_previous: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WordContributions:
    """Heads and attention edges that contributed to each written token. Empty if logits are not sums over edges."""

    words: tuple[WordAttribution, ...]


@dataclass(frozen=True, eq=False)
class LensWords:
    """Logit lens at many positions of a text."""

    columns: tuple[LensColumn, ...]
    labels: dict[int, str]


class Labels:
    """Labels of tokens, each sent once."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.sent: set[int] = set()

    def new(self, ids: Iterable[int]) -> dict[int, str]:
        """The labels of the tokens that have not been sent yet."""
        found = labels(self.loaded, [token for token in dict.fromkeys(map(int, ids)) if token not in self.sent])
        self.sent |= found.keys()
        return found


class IncrementalText:
    """A text that is written token by token after a run's prompt. Every method runs the model: call it in the queue of passes."""

    def __init__(self, run: Trace, request: Request, path: tuple[int, ...], room: int) -> None:
        check_room(len(path), MAX_WRITTEN)
        self.run, self.loaded = run, run.loaded
        self.prompt = prompt_of(run, request)
        self.writer = Writer(self.loaded, self.prompt, path, room)
        self.labels = Labels(self.loaded)

    def open(self, also: Iterable[int] = ()) -> PreparedText:
        """The prompt and the path, with the labels of additional tokens."""
        opening = self.writer.open()
        read = self.prompt.last_read[0]
        tokens = self.run.source if self.run.target is None else self.run.target
        ids = [i for reading in opening.readings for i in reading.ids.tolist()]
        ids += [reading.taken.id for reading in opening.readings if reading.taken]  # may rank below those listed
        size = self.loaded.config.vocab_size
        labels = self.labels.new([*ids, *self.writer.path, *(i for i in also if 0 <= i < size)])
        return PreparedText(
            opening,
            prompt=read.ids,
            prompt_labels=tokens.labels[: len(read)],
            labels=labels,
            joins_previous=tuple(glued(self.loaded, [*labels, *read.ids])),
            ends=tuple(self.loaded.end_ids),
            over=self.over,
            per_token=kv_cache(self.loaded.config, n=1, dtype=dtype_name(self.loaded.dtype)),
        )

    def resume(self, prepared: PreparedText) -> None:
        """Read the prompt and the path, which open() has returned before."""
        self.writer.read()
        self.labels.sent |= prepared.labels.keys()

    def seek(self, path: tuple[int, ...], room: int) -> bool:
        """Continue after another path, for another reader. False if the text must be read from its start."""
        check_room(len(path), MAX_WRITTEN)
        self.run.forward.weights.check()
        if not self.writer.turn_to(path, room):
            return False
        self.writer.read()
        self.labels = Labels(self.loaded)
        return True

    @property
    def nbytes(self) -> int:
        """Bytes of the KV cache."""
        cache = self.writer.draft.cache
        return 0 if cache is None else cache.nbytes

    def write(self, how: Sampling, token: int | None = None) -> WrittenToken:
        """One more token, sampled or given."""
        taken, reading = self.writer.write(how, token)
        ids = [taken.id] if reading is None else [taken.id, *reading.ids.tolist()]
        new = self.labels.new(ids)
        return WrittenToken(taken, reading, new, tuple(glued(self.loaded, new)), self.over)

    @property
    def over(self) -> Over:
        if self.writer.ends:
            return "end"
        if self.writer.is_over:
            return "positions"
        return "most" if len(self.writer.path) >= MAX_WRITTEN else ""


class IncrementalBeams:
    """A beam search after a run's prompt. Call every step in the queue of passes."""

    def __init__(self, run: Trace, request: Request, n_beams: int, n: int) -> None:
        loaded = run.loaded
        prompt = prompt_of(run, request)
        check_path(loaded, prompt, ())
        check_generation_fits(loaded, prompt, n_beams, n, True)
        draft = DecodingState(loaded, prompt, True)  # n limits the search, not the length of a text
        self.labels = Labels(loaded)
        self.steps = extend_beams(loaded, draft, frozenset(loaded.end_ids), n_beams, 1.0, n)

    def grow(self) -> BeamsGrown | None:
        """The next step; None if the search is over."""
        step = next(self.steps, None)
        if step is None:
            return None
        finished = [i for beams in step.finished for beam in beams for i in beam.ids]
        new = self.labels.new([*finished, *(c.id for found in step.candidates for c in found)])
        return BeamsGrown(step, new, tuple(glued(self.labels.loaded, new)))


class LocalWriting(Worker):
    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._held: dict[str, IncrementalText] = {}  # by the key of the run
        self._prepared = AnswerCache(PREPARED_BYTES, prepared_bytes, engine.weight_versions)

    async def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] | Continuation = ()
    ) -> AsyncGenerator[PreparedText | WrittenToken]:
        """The run's text with the tokens of `path` after it, then up to n more tokens as they are written.

        Each token is a pass of its own in the queue, and none is written once nobody waits. The labels of the tokens `also` come
        with the first answer. With a Continuation instead, the caller already has the text, and only the new tokens are sent.
        """
        if isinstance(also, Continuation):
            async for token in self._continue(key, tuple(path), n, how, also.first):
                yield token
            return
        name = (key, tuple(path), tuple(also))
        if n == 0:
            yield await self._prepared.get(name, lambda: self._prepare(key, path, also))
            return
        request, run = self.engine.request_of(key), await self._run(key)
        known: PreparedText | None = self._prepared.known(name)

        def begin() -> tuple[IncrementalText, PreparedText]:
            text = IncrementalText(run, request, tuple(path), n)
            if known is None:
                return text, text.open(also)
            text.resume(known)
            return text, known

        if known is not None:
            yield known  # is drawn while the model reads the text
            if known.over:
                return
        text, prepared = await self._pass(begin)
        if known is None:
            yield prepared
        last: PreparedText | WrittenToken = prepared
        for _ in range(n):
            if last.over:
                return
            last = await self._pass(partial(text.write, how))
            yield last
        self._hold(key, text)

    async def _continue(
        self, key: str, path: tuple[int, ...], n: int, how: Sampling, first: int | None
    ) -> AsyncGenerator[WrittenToken]:
        """Tokens after a path that the caller has. If the KV cache is still held, only the differing tokens are read."""
        request, run = self.engine.request_of(key), await self._run(key)
        held = self._held.pop(key, None)

        def begin() -> IncrementalText:
            if held is not None and held.loaded is run.loaded and held.seek(path, n):
                return held
            text = IncrementalText(run, request, path, n)
            text.writer.read()
            return text

        text = await self._pass(begin)
        is_idle = True  # no pass of it is running, so it can be held
        try:
            for _ in range(n):
                if text.over:
                    return
                is_idle = False
                token = await self._pass(partial(text.write, how, first))
                is_idle, first = True, None
                yield token
        finally:
            if is_idle:
                self._hold(key, text)

    def _hold(self, key: str, text: IncrementalText) -> None:
        """Keep the KV cache for requests that continue from one of its tokens."""
        self._held.pop(key, None)
        if text.nbytes <= MAX_HELD_BYTES:
            self._held[key] = text
        while len(self._held) > MAX_HELD:
            del self._held[next(iter(self._held))]

    async def _prepare(self, key: str, path: Sequence[int], also: Sequence[int]) -> PreparedText:
        request, run = self.engine.request_of(key), await self._run(key)
        return await self._pass(lambda: IncrementalText(run, request, tuple(path), 1).open(also))

    async def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        """Beam search: the n_beams most likely continuations of up to n tokens, step by step, each in the queue of passes."""
        steps: asyncio.Queue[BeamsGrown | None] = asyncio.Queue()

        async def make() -> tuple[BeamsGrown, ...]:
            request, run = self.engine.request_of(key), await self._run(key)
            search = await self._pass(lambda: IncrementalBeams(run, request, n_beams, n))
            found: list[BeamsGrown] = []
            while (grown := await self._pass(search.grow)) is not None:
                found.append(grown)
                steps.put_nowait(grown)
            return tuple(found)

        searching = asyncio.ensure_future(self._kept.get(("beams", key, n_beams, n), make))
        searching.add_done_callback(lambda _: steps.put_nowait(None))
        n_sent = 0
        try:
            while (grown := await steps.get()) is not None:
                n_sent += 1
                yield grown
            for grown in (await searching)[n_sent:]:  # cached, or started by another caller
                yield grown
        finally:
            searching.cancel()

    async def lens_at(self, key: str, path: Sequence[int], position: int, token: int) -> tuple[LensRow, ...]:
        """Logit lens at one position of the text with `path` after it, and the rank of one token in every layer."""
        return await self._with_prompt(
            ("lens", key, tuple(path), position, token),
            key,
            lambda run, prompt: tuple(lens(run.loaded, prompt, path, position, token)),
        )

    async def lens_columns(self, key: str, path: Sequence[int], positions: Sequence[int]) -> LensWords:
        """Logit lens at many positions of the text with `path` after it, from one pass."""

        def make(run: Trace, prompt: Prompt) -> LensWords:
            check_room(len(path), MAX_WRITTEN)
            columns = lens_columns(run.loaded, prompt, path, positions)
            named = dict.fromkeys(i for column in columns for i in (*column.ids, column.token))
            return LensWords(columns, labels(run.loaded, named))

        return await self._with_prompt(("lens columns", key, tuple(path), tuple(positions)), key, make)

    async def wrote(self, key: str, path: Sequence[int]) -> WordContributions:
        """Heads and attention edges that contributed to each token of `path`, and to each of the last ones of the run's text."""

        def make(run: Trace, prompt: Prompt) -> WordContributions:
            check_room(len(path), MAX_WRITTEN)
            return WordContributions(attribute_tokens(run.loaded, prompt, path))

        return await self._with_prompt(("wrote", key, tuple(path)), key, make)

    async def cache_cost(self, key: str, path: Sequence[int], n: int = 240) -> CacheCost:
        """Time of the token after n others with and without a KV cache, measured now, and whether both give the same token."""
        return await self._with_prompt(
            ("cache", key, tuple(path), n), key, lambda run, prompt: cache_cost(run.loaded, prompt, path, n)
        )

    async def written_text(self, key: str, path: Sequence[int]) -> str:
        """The run's text (the target of an encoder-decoder) with the tokens of `path` after it, as one would type it."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> str:
            prompt = prompt_of(run, request)
            ids = check_path(run.loaded, prompt, path)
            own = (run.source if run.target is None else run.target).text
            before = "" if run.target is not None and has_own_target(request) else own or ""
            return append_tokens(run.loaded, before, prompt.last_read[0].ids, list(ids))

        return await self._rerun(key, make)

    async def _with_prompt(self, name: Hashable, key: str, make: Callable[[Trace, Prompt], T]) -> T:
        """make(run, prompt) in the queue of passes, cached under `name`."""
        request = self.engine.request_of(key)
        return await self._rerun_once(name, key, lambda run: make(run, prompt_of(run, request)))


def prompt_of(run: Trace, request: Request) -> Prompt:
    """What the model reads before it writes."""
    return beginning(run, opens_target=has_own_target(request))


def has_own_target(request: Request) -> bool:
    """True if the target of the run was generated by the model, not given."""
    return not request.target_text and not request.write


def prepared_bytes(prepared: PreparedText) -> int:
    """Approximate size."""
    arrays = [a for r in prepared.opening.readings for a in (r.ids, r.logits, r.rest, r.rows)]
    return 2048 + prepared.opening.losses.nbytes + sum(a.nbytes for a in arrays) + LABEL_BYTES * len(prepared.labels)
