"""How a run knows the order of its tokens, of the Service in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...errors import Refused
from ...read.long_context import Rule
from ...read.word_order import Equivariance, MovedOn, Unturned, equivariance, moved_on, unturned
from ...read.word_swap import pairs_to_swap
from ..answers import Side, SiteId
from ..worker import Worker, check_below
from . import compute as positions
from .answers import Clock, EndLoss, OrderChange, PulledApart, StackPositions, Stretches, SwappedMaps, WordSwap


class LocalPositions(Worker):
    """Positions and what another order does."""

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        """How each stack of the run knows the order of its tokens."""

        async def make() -> tuple[StackPositions, ...]:
            run = await self._run(key)
            return await self._work(partial(positions.positions_of, run), slow=True)

        return await self._kept.get(("positions", key), make)

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        """Rows of a stack's own table of positions, as it was loaded: float32 [pos, d_model]."""
        run = await self._run(key)
        return await self._work(partial(positions.rows_of, run, stack, first, rows))

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderChange:
        """How far each head of a site moved in another run of the same tokens, and what each gives to every distance."""

        async def make() -> OrderChange:
            run, at = await self._site(key, site)
            changed, _ = await self._site(other, site)
            return await self._work(partial(positions.order_change, run, changed, at, reach), slow=True)

        return await self._kept.get(("order", key, other, site, reach), make)

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        """The proof that order comes in through positions alone: the words of an encoder's text moved to other places."""
        make = partial(self._again, key, lambda run: equivariance(run, places))
        return await self._kept.get(("equivariance", key, tuple(places)), make)

    async def moved_on(self, key: str, by: int) -> MovedOn:
        """What it does to the run's scores and weights to move the whole text on by so many places."""
        return await self._kept.get(("moved on", key, by), lambda: self._again(key, lambda run: moved_on(run, by)))

    async def clock(self, key: str, record: int, head: int, query: int, at: int) -> Clock:
        """One query and one key before rotary positions turned them, and all that makes their score of a distance."""
        found = await self._record(key, record)
        for what, value, n in (
            ("head", head, found.n_heads),
            ("query", query, found.n_query),
            ("key", at, found.n_key),
        ):
            check_below(what, value, n)

        async def make() -> Unturned:
            return await self._again(key, lambda run: unturned(run, found))

        before = await self._kept.get(("unturned", key, record), make)
        return await self._work(partial(positions.clock_of, await self._run(key), found, before, head, query, at))

    async def pairs_to_swap(self, key: str, side: Side) -> tuple[tuple[int, int], ...]:
        """Pairs of words of one text of the run that are worth swapping, by their places; the first of them first."""
        run = await self._run(key)
        tokens = run.source if side == "source" else run.target
        return () if tokens is None else await self._work(partial(pairs_to_swap, run, tokens))

    async def word_swap(self, key: str, other: str, site: SiteId, words: tuple[int, int]) -> WordSwap:
        """Which heads follow the word and which the place, where two words have changed places in another run
        (edits.SwapWords)."""

        async def make() -> WordSwap:
            run, at = await self._site(key, site)
            swapped, _ = await self._site(other, site)
            return await self._work(partial(positions.swap_of, run, swapped, at, words), slow=True)

        return await self._kept.get(("swap", key, other, site, words), make)

    async def swapped_maps(
        self, key: str, other: str, record: int, head: int, query: int, words: tuple[int, int]
    ) -> SwappedMaps:
        """One head of both runs, of all places or of those that matter for one row."""
        found, changed = await self._record(key, record), await self._record(other, record)
        check_below("head", head, found.n_heads)
        for place in (query, *words):
            check_below("query", place, found.n_query)
        if found.site != "attn":
            raise Refused("Words are swapped within one text: cross-attention looks from one into another.")
        return await self._work(partial(positions.swapped_maps, found, changed, head, query, words))

    async def stretches(self, key: str, factor: float) -> Stretches:
        """The frequencies of the run's model under each rule for texts `factor` times as long as it was trained for."""
        return positions.stretches_of(await self._run(key), factor)

    async def end_loss(self, key: str, text: str, rule: Rule, factor: float, dropped: bool = False) -> EndLoss:
        """The loss of the run's model at the end of another text, by a rule for longer texts, or without positions."""
        make = partial(self._again, key, lambda run: positions.end_loss_of(run, text, rule, factor, dropped))
        model = (await self._run(key)).spec.id  # whatever was typed: the text is another one
        return await self._kept.get(("end loss", key, model, text, rule, factor, dropped), make)

    async def pulled_apart(self, key: str, rule: Rule, factor: float, gaps: Sequence[int]) -> PulledApart:
        """The probability of the run's next token where so many places are left empty in its text."""
        make = partial(self._again, key, lambda run: positions.pulled_apart_of(run, rule, factor, gaps))
        return await self._kept.get(("gap", key, rule, factor, tuple(gaps)), make)
