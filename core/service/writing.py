"""A text that is being written, in plain data: tokens as they come, each with what could have come instead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..checkpoints import Loaded
from ..device import dtype_name
from ..plan import KVCache, kv_cache
from ..run.request import Request
from ..run.trace import Trace
from ..write.beams import BeamStep, grow
from ..write.continuation import append_tokens
from ..write.generate import Draft, Sampling, admit_writing
from ..write.writing import (
    CacheCost,
    LensRow,
    Opening,
    Reading,
    Taken,
    Writer,
    beginning,
    cache_cost,
    check_path,
    check_room,
    glued,
    labels,
    lens,
)
from ..write.wrote import LensColumn, Wrote, lens_columns, wrote
from .engine import Engine
from .event_loop import AnswerCache
from .sweeps import LABEL_BYTES
from .worker import Worker

MOST_WRITTEN = 512  # tokens after a prompt, so that a link can name them
Over = Literal["", "end", "positions", "most"]  # why no further token can be written


@dataclass(frozen=True)
class Continuation:
    """Of a question for tokens after a text that the caller has already: `first` is the first of them, where it is not to be chosen."""

    first: int | None = None


@dataclass(frozen=True, eq=False)
class PreparedText:
    """A prompt and what is written after it, as they are opened. labels are those of all tokens that are named here first, glued those
    of them, and of the prompt, that bring no space with them."""

    opening: Opening
    prompt: tuple[int, ...]  # the tokens that were read before anything was written
    prompt_labels: tuple[str, ...]
    labels: dict[int, str]
    glued: tuple[int, ...]
    ends: tuple[int, ...]  # tokens that end a text
    over: Over
    per_token: KVCache  # bytes of one token's keys and values, and what they would be with other numbers of key heads


@dataclass(frozen=True, eq=False)
class WrittenToken:
    """One more token. No reading after one that ends the text."""

    taken: Taken
    reading: Reading | None
    labels: dict[int, str]
    glued: tuple[int, ...]
    over: Over


@dataclass(frozen=True, eq=False)
class BeamsGrown:
    """One more step of a beam search."""

    step: BeamStep
    labels: dict[int, str]
    glued: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WordContributions:
    """The heads and looks that wrote the words of a text. Nothing where the model's logits are no sum over looks."""

    words: tuple[Wrote, ...]


@dataclass(frozen=True, eq=False)
class LensWords:
    """The words of each layer at many places of a text."""

    columns: tuple[LensColumn, ...]
    labels: dict[int, str]


def opened_bytes(begun: PreparedText) -> int:
    """About what an opened text takes."""
    arrays = [a for r in begun.opening.readings for a in (r.ids, r.logits, r.rest, r.rows)]
    return 2048 + begun.opening.losses.nbytes + sum(a.nbytes for a in arrays) + LABEL_BYTES * len(begun.labels)


def own_target(request: Request) -> bool:
    """Whether the target of a request's run is what the model wrote by itself, and none was given."""
    return not request.target_text and not request.write


class Labels:
    """Labels of tokens, each sent once."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.told: set[int] = set()

    def new(self, ids: Iterable[int]) -> dict[int, str]:
        """The labels of those that were not told yet."""
        found = labels(self.loaded, [token for token in dict.fromkeys(map(int, ids)) if token not in self.told])
        self.told |= found.keys()
        return found


class IncrementalText:
    """A run's text being written, step by step: every method is one turn among the passes."""

    def __init__(self, run: Trace, request: Request, path: tuple[int, ...], room: int) -> None:
        check_room(len(path), MOST_WRITTEN)
        self.run, self.loaded = run, run.loaded
        self.prompt = beginning(run, opens_target=own_target(request))
        self.writer = Writer(self.loaded, self.prompt, path, room)
        self.labels = Labels(self.loaded)

    def open(self, also: Iterable[int] = ()) -> PreparedText:
        """The prompt and the path, and the labels of other tokens in the question."""
        opening = self.writer.open()
        read = self.prompt.last_read[0]
        of_run = self.run.source if self.run.target is None else self.run.target
        ids = [i for reading in opening.readings for i in reading.ids.tolist()]
        ids += [reading.taken.id for reading in opening.readings if reading.taken]  # which may rank beyond those listed
        size = self.loaded.config.vocab_size
        labels = self.labels.new([*ids, *self.writer.path, *(i for i in also if 0 <= i < size)])
        per_token = kv_cache(self.loaded.config, n=1, dtype=dtype_name(self.loaded.dtype))
        return PreparedText(
            opening,
            read.ids,
            of_run.labels[: len(read)],
            labels,
            tuple(glued(self.loaded, [*labels, *read.ids])),
            tuple(self.loaded.end_ids),
            self.over,
            per_token,
        )

    def resume(self, begun: PreparedText) -> None:
        """Read the prompt and the path, which were opened before."""
        self.writer.read()
        self.labels.told |= begun.labels.keys()

    def turn_to(self, path: tuple[int, ...], room: int) -> bool:
        """Stand after another path, for another reader. False where it must be read as a new one."""
        check_room(len(path), MOST_WRITTEN)
        self.run.forward.weights.check()
        if not self.writer.turn_to(path, room):
            return False
        self.writer.read()
        self.labels = Labels(self.loaded)
        return True

    @property
    def nbytes(self) -> int:
        """Of the keys and values that are held."""
        cache = self.writer.draft.cache
        return 0 if cache is None else cache.nbytes

    def write(self, how: Sampling, token: int | None = None) -> WrittenToken:
        """One more token: drawn, or given."""
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
        return "most" if len(self.writer.path) >= MOST_WRITTEN else ""


class IncrementalBeams:
    """A beam search after a run's prompt: every step is one turn among the passes."""

    def __init__(self, run: Trace, request: Request, n_beams: int, n: int) -> None:
        loaded = run.loaded
        prompt = beginning(run, opens_target=own_target(request))
        check_path(loaded, prompt, ())
        admit_writing(loaded, prompt, n_beams, n, True)
        draft = Draft(loaded, prompt, True)  # n is how far one looks, not where a text must end
        self.labels = Labels(loaded)
        self.steps = grow(loaded, draft, frozenset(loaded.end_ids), n_beams, 1.0, n)

    def grow(self) -> BeamsGrown | None:
        """The next step; None where the search is over."""
        step = next(self.steps, None)
        if step is None:
            return None
        finished = [i for beams in step.finished for beam in beams for i in beam.ids]
        new = self.labels.new([*finished, *(c.id for found in step.candidates for c in found)])
        return BeamsGrown(step, new, tuple(glued(self.labels.loaded, new)))


BEGUN_BYTES = 32 << 20  # of texts that were opened and not written on: all who follow somebody's path ask for the same

MOST_HELD, HELD_BYTES = 4, 32 << 20  # texts whose keys and values stay for the next line, and the bytes of one


class LocalWriting(Worker):
    """Writing, beams, the lens and the cache."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._lines: dict[str, IncrementalText] = {}
        self._begun = AnswerCache(BEGUN_BYTES, opened_bytes, engine.weight_versions)

    async def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] | Continuation = ()
    ) -> AsyncGenerator[PreparedText | WrittenToken]:
        """What follows the run's text: the text with the tokens of `path` behind it, then up to n more as they are written.

        Each token is one turn among the passes, and none is written that nobody waits for. Labels of the tokens `also` come
        with the first answer. Continuation in their place says that the caller has the text already: then only the tokens come.
        """
        if isinstance(also, Continuation):
            async for token in self._written_on(key, tuple(path), n, how, also.first):
                yield token
            return
        if n == 0:
            yield await self._begun.get((key, tuple(path), tuple(also)), lambda: self._opened(key, path, also))
            return
        request, run = self.engine.request_of(key), await self._run(key)
        known: PreparedText | None = self._begun.known((key, tuple(path), tuple(also)))

        def begin() -> tuple[IncrementalText, PreparedText]:
            turns = IncrementalText(run, request, tuple(path), n)
            if known is None:
                return turns, turns.open(also)
            turns.resume(known)
            return turns, known

        if known is not None:
            yield known  # is drawn while the model reads
            if known.over:
                return
        turns, begun = await self._pass(begin)
        if known is None:
            yield begun
        now: PreparedText | WrittenToken = begun
        for _ in range(n):
            if now.over:
                return
            now = await self._pass(partial(turns.write, how))
            yield now
        self._hold(key, turns)

    async def _written_on(
        self, key: str, path: tuple[int, ...], n: int, how: Sampling, first: int | None
    ) -> AsyncGenerator[WrittenToken]:
        """Tokens after a path that the caller has: where the text is held, only that is read in which the paths differ."""
        request, run = self.engine.request_of(key), await self._run(key)
        held = self._lines.pop(key, None)

        def begin() -> IncrementalText:
            if held is not None and held.loaded is run.loaded and held.turn_to(path, n):
                return held
            turns = IncrementalText(run, request, path, n)
            turns.writer.read()
            return turns

        turns = await self._pass(begin)
        rests = True  # no turn of it is underway, so that it can be held
        try:
            for _ in range(n):
                if turns.over:
                    return
                rests = False
                token = await self._pass(partial(turns.write, how, first))
                rests, first = True, None
                yield token
        finally:
            if rests:
                self._hold(key, turns)

    def _hold(self, key: str, turns: IncrementalText) -> None:
        """For those who continue from one of its tokens."""
        self._lines.pop(key, None)
        if turns.nbytes <= HELD_BYTES:
            self._lines[key] = turns
        while len(self._lines) > MOST_HELD:
            del self._lines[next(iter(self._lines))]

    async def _opened(self, key: str, path: Sequence[int], also: Sequence[int]) -> PreparedText:
        request, run = self.engine.request_of(key), await self._run(key)
        return await self._pass(lambda: IncrementalText(run, request, tuple(path), 1).open(also))

    async def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        """The n_beams likeliest texts of up to n tokens behind the run's text, step by step, in turns as with write()."""
        coming: asyncio.Queue[BeamsGrown | None] = asyncio.Queue()

        async def make() -> tuple[BeamsGrown, ...]:
            request, run = self.engine.request_of(key), await self._run(key)
            search = await self._pass(lambda: IncrementalBeams(run, request, n_beams, n))
            found: list[BeamsGrown] = []
            while (grown := await self._pass(search.grow)) is not None:
                found.append(grown)
                coming.put_nowait(grown)
            return tuple(found)

        searching = asyncio.ensure_future(self._kept.get(("beams", key, n_beams, n), make))
        searching.add_done_callback(lambda _: coming.put_nowait(None))
        told = 0
        try:
            while (grown := await coming.get()) is not None:
                told += 1
                yield grown
            for grown in (await searching)[told:]:  # it was known, or another caller had begun it
                yield grown
        finally:
            searching.cancel()

    async def lens_at(self, key: str, path: Sequence[int], position: int, token: int) -> tuple[LensRow, ...]:
        """What each layer would say behind one position of the text with `path` behind it, and how it ranks one token."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> tuple[LensRow, ...]:
            prompt = beginning(run, opens_target=own_target(request))
            return tuple(lens(run.loaded, prompt, path, position, token))

        at = ("lens", key, tuple(path), position, token)
        return await self._kept.get(at, lambda: self._again(key, make))

    async def wrote(self, key: str, path: Sequence[int]) -> WordContributions:
        """The heads and single looks that wrote each token of `path`, and each of the last ones of the run's text."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> WordContributions:
            check_room(len(path), MOST_WRITTEN)
            return WordContributions(wrote(run.loaded, beginning(run, opens_target=own_target(request)), path))

        return await self._kept.get(("wrote", key, tuple(path)), lambda: self._again(key, make))

    async def lens_columns(self, key: str, path: Sequence[int], positions: Sequence[int]) -> LensWords:
        """The words of each layer after many positions of the text with `path` after it, in one pass."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> LensWords:
            check_room(len(path), MOST_WRITTEN)
            prompt = beginning(run, opens_target=own_target(request))
            columns = lens_columns(run.loaded, prompt, path, positions)
            named = dict.fromkeys(i for column in columns for i in (*column.ids, column.token))
            return LensWords(columns, labels(run.loaded, named))

        at = ("lens columns", key, tuple(path), tuple(positions))
        return await self._kept.get(at, lambda: self._again(key, make))

    async def written_text(self, key: str, path: Sequence[int]) -> str:
        """The run's text, of an encoder-decoder its target, with the tokens of `path` behind it: as one would type it."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> str:
            prompt = beginning(run, opens_target=own_target(request))
            told = check_path(run.loaded, prompt, path)
            own = (run.source if run.target is None else run.target).text
            before = "" if run.target is not None and own_target(request) else own or ""
            return append_tokens(run.loaded, before, prompt.last_read[0].ids, list(told))

        return await self._again(key, make)

    async def cache_cost(self, key: str, path: Sequence[int], n: int = 240) -> CacheCost:
        """How long the token behind n others takes with and without a cache, measured now, and whether both say the same."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> CacheCost:
            return cache_cost(run.loaded, beginning(run, opens_target=own_target(request)), path, n)

        return await self._kept.get(("cache", key, tuple(path), n), lambda: self._again(key, make))
