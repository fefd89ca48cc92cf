"""Questions about one token's way through a layer, and about what the layers add to the residual stream."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

from ..errors import HeadlightError
from ..labs.worked_examples import ResidualPath, residual_gradients
from ..read.key_steps import ResidualProfile, residual_profile
from ..read.layer_walk import (
    LayerWalk,
    LensGuess,
    Routing,
    SublayerNorms,
    Terms,
    Walk,
    WalkNumber,
    additions,
    guesses,
    routing,
    terms,
    walk,
    walk_facts,
)
from ..read.next_token_loss import Ending, ending
from .engine import Engine
from .worker import AnswerCache, Worker

WALK_BYTES = 64 << 20  # of walks, whose numbers are asked for one by one


class LocalWalks(Worker):
    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._walks = AnswerCache(WALK_BYTES, walk_bytes, engine.weight_versions)

    async def walk(self, key: str, stack: str, layer: int, query: int) -> LayerWalk:
        """The values of one token at every step of a layer, and what is needed to recompute them after a change."""
        found = await self._walk(key, stack, layer, query)
        return await self._pass(partial(walk_facts, found))

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        """One number of a walk as a sum: its k largest terms, and the sum of the others."""
        found = await self._walk(key, number.stack, number.layer, number.query)
        try:
            return await self._work(partial(terms, found, number.step, number.index, k))
        except KeyError as error:
            raise HeadlightError(f"This layer has {error.args[0]}.") from None
        except (IndexError, ValueError) as error:
            raise HeadlightError(f"There is {error}." if isinstance(error, IndexError) else f"{error}.") from None

    async def additions(self, key: str, stack: str) -> tuple[SublayerNorms, ...]:
        """Norm of the vector that each sublayer adds to each token's stream, the first sublayer first."""

        async def make() -> tuple[SublayerNorms, ...]:
            run = await self._run(key)
            try:
                return await self._work(partial(additions, run, stack))
            except KeyError:
                raise HeadlightError(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("additions", key, stack), make)

    async def experts(self, key: str, stack: str) -> Routing:
        """Experts of each token in each layer. Raises Refused for a stack without experts."""
        return await self._rerun_once(("experts", key, stack), key, lambda run: routing(run, stack))

    async def guesses(self, key: str, query: int | None = None) -> tuple[LensGuess, ...]:
        """Logit lens of one token after every addition to its stream. None: the last real token."""
        return await self._rerun_once(("guesses", key, query), key, lambda run: guesses(run, query))

    async def strip(self, key: str, stack: str, position: int | None = None) -> ResidualProfile:
        """Residual stream of one token across a stack, layer by layer. None: the last real token."""
        try:
            return await self._rerun_once(
                ("strip", key, stack, position), key, lambda run: residual_profile(run, stack, position)
            )
        except KeyError:
            raise HeadlightError(f"This run has no stack called {stack!r}.") from None

    async def ending(self, key: str, position: int | None = None, k: int = 10) -> Ending:
        """End of the pass at one position: final norm, unembedding and softmax. Raises Refused for a model without a head."""
        return await self._rerun_once(("ending", key, position, k), key, lambda run: ending(run, position, k))

    async def residual_paths(self) -> tuple[ResidualPath, ...]:
        """Gradients of fresh layers with and without residual connections and norms."""
        return await self._kept.get("residual paths", lambda: self._work(residual_gradients, slow=True))

    async def _walk(self, key: str, stack: str, layer: int, query: int) -> Walk:
        async def make() -> partial[Walk]:
            return await self._rerun(key, lambda run: without_run(walk(run, stack, layer, query)))

        run = await self._run(key)
        return (await self._walks.get((key, stack, layer, query), make))(run)


def without_run(walk: Walk) -> partial[Walk]:
    """The values of a walk, to be combined with its run later: a cached walk must not keep a run that the engine drops."""
    return partial(Walk, **{field.name: getattr(walk, field.name) for field in fields(walk) if field.name != "run"})


def walk_bytes(kept: partial[Walk]) -> int:
    """Approximate size: the whole storages that the tensors are parts of."""
    own = kept.keywords
    tensors = [x for name in ("values", "before_norm", "turned_keys") for x in own[name].values()]
    tensors += [x for pair in own["inputs"].values() for x in pair]
    return 16_384 + sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())
