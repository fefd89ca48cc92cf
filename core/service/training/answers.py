"""A training as it goes on, in plain data: its curve, its frames, and how they see an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...learn.watched_training import Point, Weights

State = Literal["waiting", "running", "paused", "ended", "failed"]


@dataclass(frozen=True)
class FrameFacts:
    """What a frame says beside its weights; watched_training.Frame has the meaning of each."""

    step: int
    given: tuple[float, ...]
    own: tuple[float, ...]
    whole: int
    gradients: tuple[float, ...]
    loss: float | None = None  # None where it is no number
    finds: Weights = ()
    back: Weights = ()
    ahead: Weights = ()


@dataclass(frozen=True)
class News:
    """What a run has come to since the news before: its state, its place in the queue, and what is new of it."""

    state: State
    place: int = 0  # how many wait or run before it, while it waits
    seconds: float = 0.0  # that it will wait, about
    points: tuple[Point, ...] = ()
    frames: tuple[FrameFacts, ...] = ()
    why: str = ""  # it failed


@dataclass(frozen=True, eq=False)
class LookFacts:
    """An example as one frame of a training sees it; watched_training.Look in plain data."""

    step: int
    pattern: np.ndarray  # float32 [layer, head, query, key]
    p: tuple[float, ...]  # of the right symbol at each place of the answer, what is before it given
    best: tuple[str, ...]
    own: str  # what it writes on its own
    finds: np.ndarray  # float32 [layer, head]
    ahead: np.ndarray  # float32 [layer, head]
