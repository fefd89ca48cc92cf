"""Questions of a screen about one token's way through a layer."""

from __future__ import annotations

from typing import Protocol

from ...learn.residual_paths import ResidualPath
from ...read.additions import Added, WalkFacts, WalkNumber
from ...read.ending import Ending
from ...read.experts import Routing
from ...read.layer_walk import Guess, Terms
from ...read.strip import Strip


class Walks(Protocol):
    """One token through one layer. What all answers have in common: core.service.protocol.Service."""

    async def walk(self, key: str, stack: str, layer: int, query: int) -> WalkFacts:
        """What one token is at each step of one layer."""
        ...

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        """One number of a walk as the sum that it is."""
        ...

    async def additions(self, key: str, stack: str) -> tuple[Added, ...]:
        """How long a vector every sublayer of a stack adds to every token."""
        ...

    async def experts(self, key: str, stack: str) -> Routing:
        """The experts that every token took in every layer. Raises Refused for a stack without experts."""
        ...

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        """What the head would make of a token's stream behind every addition; None asks for the last real token."""
        ...

    async def strip(self, key: str, stack: str, position: int | None = None) -> Strip:
        """One stack at one position, layer by layer; None asks for the last real token."""
        ...

    async def ending(self, key: str, position: int | None = None, k: int = 10) -> Ending:
        """From the last layer to the next word. Raises Refused for a model without a head."""
        ...

    async def residual_paths(self) -> tuple[ResidualPath, ...]:
        """The gradient in fresh layers with the residual connection and without, worked out once."""
        ...
