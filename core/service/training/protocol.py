"""Questions of a screen about models that are trained before one's eyes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from ...learn.watched_training import Spec
from .answers import LookFacts, News


class Trainings(Protocol):
    """Trainings, their models, and how these see an example. What all answers have in common: core.service.protocol.Service."""

    def train(self, spec: Spec) -> AsyncGenerator[News]:
        """A training from its beginning, as far as it is, and then what comes of it until it has ended. Raises Busy.

        It is begun if nobody did; when the last who watches closes the iterator, one that has not ended is cancelled.
        """
        ...

    async def expect_training(self, spec: Spec) -> None:
        """Somebody may begin this training in a moment: let what it runs in be there by then. Nothing is begun."""
        ...

    async def training(self, spec: Spec) -> News:
        """What there is of a training now. Nothing is begun and nobody watches. Raises Refused where there is no such training."""
        ...

    async def pause_training(self, spec: Spec) -> None:
        """Let a training wait where it is once nobody watches it, instead of ending it; whoever watches it next lets it go on."""
        ...

    async def trained(self, spec: Spec, step: int) -> bytes:
        """The model of a frame as a zip: config, weights, tokenizer, recipe, card. Raises Refused where there is no such frame."""
        ...

    async def looks(self, spec: Spec, example: str, after: int = -1) -> tuple[LookFacts, ...]:
        """An example as every frame of a training behind step `after` sees it, so far: the next few, so that the first come soon.

        Raises Refused for an example that the task does not read, and where there is no such training.
        """
        ...
