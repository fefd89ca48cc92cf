"""Questions of a screen about what a model writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from ...write.generate import Sampling
from ...write.writing import CacheCost, LensRow
from .answers import BeamsGrown, LensWords, OpenedText, WrittenOn, WrittenToken, WroteWords


class Writing(Protocol):
    """A run's text written on, token by token. What all answers have in common: core.service.protocol.Service."""

    def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] | WrittenOn = ()
    ) -> AsyncGenerator[OpenedText | WrittenToken]:
        """What follows the run's text: the text with the tokens of `path` behind it, then up to n more as they are written.

        Each token is one turn among the passes, and none is written that nobody waits for. Labels of the tokens `also` come
        with the first answer. WrittenOn in their place says that the caller has the text already: then only the tokens come.
        """
        ...

    def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        """The n_beams likeliest texts of up to n tokens behind the run's text, step by step, in turns as with write()."""
        ...

    async def lens_at(self, key: str, path: Sequence[int], position: int, token: int) -> tuple[LensRow, ...]:
        """What each layer would say behind one position of the text with `path` behind it, and how it ranks one token."""
        ...

    async def wrote(self, key: str, path: Sequence[int]) -> WroteWords:
        """The heads and single looks that wrote each token of `path`, and each of the last ones of the run's text."""
        ...

    async def lens_columns(self, key: str, path: Sequence[int], positions: Sequence[int]) -> LensWords:
        """The words of each layer after many positions of the text with `path` after it, in one pass."""
        ...

    async def written_text(self, key: str, path: Sequence[int]) -> str:
        """The run's text, of an encoder-decoder its target, with the tokens of `path` behind it: as one would type it."""
        ...

    async def cache_cost(self, key: str, path: Sequence[int], n: int = 240) -> CacheCost:
        """How long the token behind n others takes with and without a cache, measured now, and whether both say the same."""
        ...
