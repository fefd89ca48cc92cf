"""One token's way through a layer, of the Service in this process."""

from __future__ import annotations

from functools import partial

from ...errors import Refused
from ...read.layer_walk import Guess, Terms, Walk, guesses, terms, walk
from ..answer_cache import AnswerCache
from ..engine import Engine
from ..worker import Worker
from .answers import AddedFacts, EndingFacts, ExpertFacts, ResidualPathFacts, StripFacts, WalkFacts, WalkNumber
from .compute import (
    added,
    ending_facts,
    expert_facts,
    residual_path_facts,
    strip_facts,
    walk_bytes,
    walk_facts,
    without_run,
)

WALK_BYTES = 64 << 20  # of walks, whose numbers somebody asks about one by one


class LocalWalks(Worker):
    """Walks, and each number of them as a sum."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._walks = AnswerCache(WALK_BYTES, walk_bytes, engine.weights)

    async def walk(self, key: str, stack: str, layer: int, query: int) -> WalkFacts:
        """What one token is at each step of one layer."""
        found = await self._walk(key, stack, layer, query)
        return await self._pass(partial(walk_facts, found))

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        """One number of a walk as the sum that it is."""
        found = await self._walk(key, number.stack, number.layer, number.query)
        try:
            return await self._work(partial(terms, found, number.step, number.index, k))
        except KeyError as error:
            raise Refused(f"This layer has {error.args[0]}.") from None
        except (IndexError, ValueError) as error:
            raise Refused(f"There is {error}." if isinstance(error, IndexError) else f"{error}.") from None

    async def additions(self, key: str, stack: str) -> tuple[AddedFacts, ...]:
        """How long a vector every sublayer of a stack adds to every token."""

        async def make() -> tuple[AddedFacts, ...]:
            run = await self._run(key)
            try:
                return await self._work(partial(added, run, stack))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("additions", key, stack), make)

    async def experts(self, key: str, stack: str) -> ExpertFacts:
        """The experts that every token took in every layer. Raises Refused for a stack without experts."""

        async def make() -> ExpertFacts:
            return await self._again(key, lambda run: expert_facts(run, stack))

        return await self._kept.get(("experts", key, stack), make)

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        """What the head would make of a token's stream behind every addition; None asks for the last real token."""

        async def make() -> tuple[Guess, ...]:
            return await self._again(key, lambda run: guesses(run, query))

        return await self._kept.get(("guesses", key, query), make)

    async def strip(self, key: str, stack: str, position: int | None = None) -> StripFacts:
        """One stack at one position, layer by layer; None asks for the last real token."""

        async def make() -> StripFacts:
            try:
                return await self._again(key, lambda run: strip_facts(run, stack, position))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("strip", key, stack, position), make)

    async def ending(self, key: str, position: int | None = None, k: int = 10) -> EndingFacts:
        """From the last layer to the next word. Raises Refused for a model without a head."""

        async def make() -> EndingFacts:
            return await self._again(key, lambda run: ending_facts(run, position, k))

        return await self._kept.get(("ending", key, position, k), make)

    async def residual_paths(self) -> tuple[ResidualPathFacts, ...]:
        """The gradient in fresh layers with the residual connection and without, worked out once."""
        return await self._kept.get("residual paths", lambda: self._work(residual_path_facts, slow=True))

    async def _walk(self, key: str, stack: str, layer: int, query: int) -> Walk:
        async def make() -> partial[Walk]:
            return await self._again(key, lambda run: without_run(walk(run, stack, layer, query)))

        of = await self._run(key)
        return (await self._walks.get((key, stack, layer, query), make))(of)
