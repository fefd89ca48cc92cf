"""One token's way through a layer, of the Service in this process."""

from __future__ import annotations

from functools import partial

from ...errors import Refused
from ...learn.residual_paths import ResidualPath, residual_paths
from ...read.additions import Added, WalkFacts, WalkNumber, additions, walk_facts
from ...read.ending import Ending, ending
from ...read.experts import Routing, routing
from ...read.layer_walk import Guess, Terms, Walk, guesses, terms, walk
from ...read.strip import Strip, strip
from ..answer_cache import AnswerCache
from ..engine import Engine
from ..worker import Worker
from .compute import walk_bytes, without_run

WALK_BYTES = 64 << 20  # of walks, whose numbers somebody asks about one by one


class LocalWalks(Worker):
    """Walks, and each number of them as a sum."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._walks = AnswerCache(WALK_BYTES, walk_bytes, engine.weights)

    async def walk(self, key: str, stack: str, layer: int, query: int) -> WalkFacts:
        found = await self._walk(key, stack, layer, query)
        return await self._pass(partial(walk_facts, found))

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        found = await self._walk(key, number.stack, number.layer, number.query)
        try:
            return await self._work(partial(terms, found, number.step, number.index, k))
        except KeyError as error:
            raise Refused(f"This layer has {error.args[0]}.") from None
        except (IndexError, ValueError) as error:
            raise Refused(f"There is {error}." if isinstance(error, IndexError) else f"{error}.") from None

    async def additions(self, key: str, stack: str) -> tuple[Added, ...]:
        async def make() -> tuple[Added, ...]:
            run = await self._run(key)
            try:
                return await self._work(partial(additions, run, stack))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("additions", key, stack), make)

    async def experts(self, key: str, stack: str) -> Routing:
        async def make() -> Routing:
            return await self._again(key, lambda run: routing(run, stack))

        return await self._kept.get(("experts", key, stack), make)

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        async def make() -> tuple[Guess, ...]:
            return await self._again(key, lambda run: guesses(run, query))

        return await self._kept.get(("guesses", key, query), make)

    async def strip(self, key: str, stack: str, position: int | None = None) -> Strip:
        async def make() -> Strip:
            try:
                return await self._again(key, lambda run: strip(run, stack, position))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("strip", key, stack, position), make)

    async def ending(self, key: str, position: int | None = None, k: int = 10) -> Ending:
        async def make() -> Ending:
            return await self._again(key, lambda run: ending(run, position, k))

        return await self._kept.get(("ending", key, position, k), make)

    async def residual_paths(self) -> tuple[ResidualPath, ...]:
        return await self._kept.get("residual paths", lambda: self._work(residual_paths, slow=True))

    async def _walk(self, key: str, stack: str, layer: int, query: int) -> Walk:
        async def make() -> partial[Walk]:
            return await self._again(key, lambda run: without_run(walk(run, stack, layer, query)))

        of = await self._run(key)
        return (await self._walks.get((key, stack, layer, query), make))(of)
