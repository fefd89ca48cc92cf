"""What a model writes, token by token, of the Service in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ...run.trace import Trace
from ...write.continuation import append_tokens
from ...write.generate import Sampling
from ...write.writing import CacheCost, LensRow, beginning, cache_cost, check_path, check_room, labels, lens
from ...write.wrote import lens_columns, wrote
from ..answer_cache import AnswerCache
from ..engine import Engine
from ..worker import Worker
from .answers import MOST_WRITTEN, BeamsGrown, LensWords, OpenedText, WrittenOn, WrittenToken, WroteWords
from .compute import BeamsInTurns, TextInTurns, opened_bytes, own_target

BEGUN_BYTES = 32 << 20  # of texts that were opened and not written on: all who follow somebody's path ask for the same

MOST_HELD, HELD_BYTES = 4, 32 << 20  # texts whose keys and values stay for the next line, and the bytes of one


class LocalWriting(Worker):
    """Writing, beams, the lens and the cache."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._lines: dict[str, TextInTurns] = {}
        self._begun = AnswerCache(BEGUN_BYTES, opened_bytes, engine.weights)

    async def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] | WrittenOn = ()
    ) -> AsyncGenerator[OpenedText | WrittenToken]:
        """What follows the run's text: the text with the tokens of `path` behind it, then up to n more as they are written.

        Each token is one turn among the passes, and none is written that nobody waits for. Labels of the tokens `also` come
        with the first answer. WrittenOn in their place says that the caller has the text already: then only the tokens come.
        """
        if isinstance(also, WrittenOn):
            async for token in self._written_on(key, tuple(path), n, how, also.first):
                yield token
            return
        if n == 0:
            yield await self._begun.get((key, tuple(path), tuple(also)), lambda: self._opened(key, path, also))
            return
        request, run = self.engine.request_of(key), await self._run(key)
        known: OpenedText | None = self._begun.known((key, tuple(path), tuple(also)))

        def begin() -> tuple[TextInTurns, OpenedText]:
            turns = TextInTurns(run, request, tuple(path), n)
            if known is None:
                return turns, turns.open(also)
            turns.go_on(known)
            return turns, known

        if known is not None:
            yield known  # is drawn while the model reads
            if known.over:
                return
        turns, begun = await self._pass(begin)
        if known is None:
            yield begun
        now: OpenedText | WrittenToken = begun
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

        def begin() -> TextInTurns:
            if held is not None and held.loaded is run.loaded and held.turn_to(path, n):
                return held
            turns = TextInTurns(run, request, path, n)
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

    def _hold(self, key: str, turns: TextInTurns) -> None:
        """For those who continue from one of its tokens."""
        self._lines.pop(key, None)
        if turns.nbytes <= HELD_BYTES:
            self._lines[key] = turns
        while len(self._lines) > MOST_HELD:
            del self._lines[next(iter(self._lines))]

    async def _opened(self, key: str, path: Sequence[int], also: Sequence[int]) -> OpenedText:
        request, run = self.engine.request_of(key), await self._run(key)
        return await self._pass(lambda: TextInTurns(run, request, tuple(path), 1).open(also))

    async def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        """The n_beams likeliest texts of up to n tokens behind the run's text, step by step, in turns as with write()."""
        coming: asyncio.Queue[BeamsGrown | None] = asyncio.Queue()

        async def make() -> tuple[BeamsGrown, ...]:
            request, run = self.engine.request_of(key), await self._run(key)
            search = await self._pass(lambda: BeamsInTurns(run, request, n_beams, n))
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

    async def wrote(self, key: str, path: Sequence[int]) -> WroteWords:
        """The heads and single looks that wrote each token of `path`, and each of the last ones of the run's text."""
        request = self.engine.request_of(key)

        def make(run: Trace) -> WroteWords:
            check_room(len(path), MOST_WRITTEN)
            return WroteWords(wrote(run.loaded, beginning(run, opens_target=own_target(request)), path))

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
