"""How a run knows the order of its tokens, of the Service in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...read.word_order import Equivariance, MovedOn, Unturned, equivariance, moved_on, unturned
from ..answers import SiteId
from ..worker import Worker, check_below
from . import compute as positions
from .answers import Clock, OrderChange, StackPositions


class LocalPositions(Worker):
    """Positions and what another order does."""

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        async def make() -> tuple[StackPositions, ...]:
            run = await self._run(key)
            return await self._work(partial(positions.positions_of, run), slow=True)

        return await self._kept.get(("positions", key), make)

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        run = await self._run(key)
        return await self._work(partial(positions.rows_of, run, stack, first, rows))

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderChange:
        async def make() -> OrderChange:
            run, at = await self._site(key, site)
            changed, _ = await self._site(other, site)
            return await self._work(partial(positions.order_change, run, changed, at, reach), slow=True)

        return await self._kept.get(("order", key, other, site, reach), make)

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        make = partial(self._again, key, lambda run: equivariance(run, places))
        return await self._kept.get(("equivariance", key, tuple(places)), make)

    async def moved_on(self, key: str, by: int) -> MovedOn:
        return await self._kept.get(("moved on", key, by), lambda: self._again(key, lambda run: moved_on(run, by)))

    async def clock(self, key: str, record: int, head: int, query: int, at: int) -> Clock:
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
