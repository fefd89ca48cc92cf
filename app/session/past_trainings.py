"""Trainings that ended before this process began, and what each came to. The room that has them registers how they are found."""

from __future__ import annotations

from collections.abc import Callable

from core.learn.watched_training import Spec
from core.service import TrainingUpdate

_sources: dict[str, Callable[[Spec], TrainingUpdate | None]] = {}  # by the room that has them


def register(room: str, news: Callable[[Spec], TrainingUpdate | None]) -> None:
    """Have a room asked for what a training came to; None of one that it does not have. A room has one way to ask it, the last."""
    _sources[room] = news


def news(spec: Spec) -> TrainingUpdate | None:
    """The outcome of a training, as the service says it of one that has ended; None where it is not kept."""
    return next((found for source in _sources.values() if (found := source(spec)) is not None), None)
