"""What a model writes, token by token, of the Service in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ..generate import Sampling
from ..trace import Trace
from ..writing import CacheCost, LensRow, beginning, cache_cost, lens
from .kept import arrival
from .worker import Worker
from .writing import BeamsGrown, Begun, Desk, Search, Written, own_target


class LocalWriting(Worker):
    """Writing, beams, the lens and the cache."""

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
