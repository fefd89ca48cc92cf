"""Questions of a screen about masks, padding, leakage and the division by √d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from ...read.projections import Compared
from ...read.scaling import Spread
from ..answers import SiteId
from .answers import LeakageFacts, Outcome, PaddingEffect, ScaleEffect, ScoresAndMasks, UnmaskedFacts


class Masks(Protocol):
    """The effects of masks, of padding and of the scale. What all answers have in common: core.service.protocol.Service."""

    async def masked(self, key: str, site: SiteId, layers: Sequence[int] | None = None) -> ScoresAndMasks:
        """The scores of some layers of a site before any mask (None: of all), and the run's masks. Raises TooLarge."""
        ...

    async def masked_rows(
        self, key: str, site: SiteId, layer: int, head: int, rows: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of one head, end excluded: its scores before any mask, float32 [row, key], and why cells are masked, as in Tile."""
        ...

    async def outcome(self, key: str, ids: Sequence[int] = ()) -> Outcome:
        """The next word, the probabilities of `ids` as the next one, and the loss; of an encoder the text's vector."""
        ...

    async def padded(
        self, key: str, texts: Sequence[str], side: Literal["left", "right"], text: int, layer: int | None = None
    ) -> PaddingEffect:
        """These texts in one batch of the run's model, seen from one of them, against that text alone.

        None is the layer in which a head would give padding most.
        """
        ...

    async def leakage(self, key: str) -> LeakageFacts:
        """The run's text as the model reads it whose last layer learnt without its mask. Raises Refused for any other model."""
        ...

    async def unmasked(self, key: str) -> UnmaskedFacts:
        """The run's text with the causal mask taken away, nothing trained. Raises Refused for a model that has none, or writes nothing."""
        ...

    async def unscaled(self, key: str) -> ScaleEffect:
        """How far scores spread and how much choice rows have, with the division by √d and in a run without it."""
        ...

    async def spreads(self) -> tuple[Spread, ...]:
        """Random q·k of several widths, measured."""
        ...

    async def projections(self, d_model: int, widths: tuple[int, int, int], rows: int) -> Compared:
        """One product for q, k and v against three, timed where models run. Raises Refused for tables that take too long to make."""
        ...
