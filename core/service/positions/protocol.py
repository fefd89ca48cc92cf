"""Questions of a screen about how a run knows the order of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ...read.long_context import Rule
from ...read.word_order import Equivariance, MovedOn
from ..answers import Side, SiteId
from .answers import Clock, EndLoss, OrderChange, PulledApart, StackPositions, Stretches, SwappedMaps, WordSwap


class Positions(Protocol):
    """Positions, and what another order does. What all answers have in common: core.service.protocol.Service."""

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        """How each stack of the run knows the order of its tokens."""
        ...

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        """Rows of a stack's own table of positions, as it was loaded: float32 [pos, d_model]."""
        ...

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderChange:
        """How far each head of a site moved in another run of the same tokens, and what each gives to every distance."""
        ...

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        """The proof that order comes in through positions alone: the words of an encoder's text moved to other places."""
        ...

    async def moved_on(self, key: str, by: int) -> MovedOn:
        """What it does to the run's scores and weights to move the whole text on by so many places."""
        ...

    async def clock(self, key: str, record: int, head: int, query: int, at: int) -> Clock:
        """One query and one key before rotary positions turned them, and all that makes their score of a distance."""
        ...

    async def pairs_to_swap(self, key: str, side: Side) -> tuple[tuple[int, int], ...]:
        """Pairs of words of one text of the run that are worth swapping, by their places; the first of them first."""
        ...

    async def word_swap(self, key: str, other: str, site: SiteId, words: tuple[int, int]) -> WordSwap:
        """Which heads follow the word and which the place, where two words have changed places in another run
        (edits.SwapWords)."""
        ...

    async def swapped_maps(
        self, key: str, other: str, record: int, head: int, query: int, words: tuple[int, int]
    ) -> SwappedMaps:
        """One head of both runs, of all places or of those that matter for one row."""
        ...

    async def stretches(self, key: str, factor: float) -> Stretches:
        """The frequencies of the run's model under each rule for texts `factor` times as long as it was trained for."""
        ...

    async def end_loss(self, key: str, text: str, rule: Rule, factor: float, dropped: bool = False) -> EndLoss:
        """The loss of the run's model at the end of another text, by a rule for longer texts, or without positions."""
        ...

    async def pulled_apart(self, key: str, rule: Rule, factor: float, gaps: Sequence[int]) -> PulledApart:
        """The probability of the run's next token where so many places are left empty in its text."""
        ...
