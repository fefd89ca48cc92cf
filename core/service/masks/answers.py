"""What masks, padding and the scale do, in plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...read.scaling import Sharpness
from ..answers import SiteId


@dataclass(frozen=True, eq=False)
class ScoresAndMasks:
    """The scores of some layers of a site before any mask, and the masks of the run."""

    site: SiteId
    layers: tuple[int, ...]
    scores: np.ndarray  # float32 [layer, head, query, key]: (q·k · scale + bias) / temperature
    masks: tuple[np.ndarray, ...]  # uint8 [query, key], reasons as in Tile; those that are alike are there once
    mask_of: tuple[tuple[int, ...], ...]  # of each layer: which mask, or one for every head; -1 hides nothing


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run makes of its text: the next word and the loss, of a classifier its classes, of other models the text's vector."""

    # The likeliest next ones: id, as a reader sees it, probability. Of a classifier its classes, with their numbers.
    words: tuple[tuple[int, str, float], ...]
    asked: tuple[float, ...]  # probabilities of the ids, or classes, that were asked for
    losses: np.ndarray  # float32 [pos - 1], nats; empty where nothing is foretold
    vector: np.ndarray  # float32 [d_model]: the mean over real tokens of the last residual stream
    numbers: tuple[tuple[str, float], ...] = ()  # of a regression: what each number is called, and its value


@dataclass(frozen=True, eq=False)
class PaddingEffect:
    """Some texts in one batch, seen from one of them, against that text alone."""

    labels: tuple[tuple[str, ...], ...]  # of every text, padding included
    padding: tuple[tuple[bool, ...], ...]
    text: int  # which one is seen
    layer: int
    masked: np.ndarray  # float32 [head, query, key]: scores of this layer in the batch
    free: np.ndarray  # the same where padding may be looked at
    causal: bool  # of the attention: the future is hidden as well
    scale: float
    on_padding: np.ndarray  # float32 [layer, head]: mean weight on padding of the real rows, masked
    on_padding_free: np.ndarray
    weights: tuple[float, float]  # max |Δ| against the text alone, masked and not: of all weights
    output: tuple[float, float]  # of the last residual stream
    cosine: tuple[float, float]  # of the texts' vectors
    # Of a model that writes: the likeliest next word of the text alone, as a reader sees it, with its probability alone, in the
    # batch, and there with its padding seen; then the likeliest of that last one
    next_word: tuple[str, float, float, float] | None
    leads: tuple[str, float] | None


@dataclass(frozen=True, eq=False)
class LeakageFacts:
    """Leakage as arrays: see core.learn.leakage."""

    layer: int
    head: int
    losses: np.ndarray
    dropped: np.ndarray
    relearnt: np.ndarray
    before: np.ndarray
    after: np.ndarray
    next_word: float
    written: str
    written_relearnt: str
    steps: int
    seconds: int


@dataclass(frozen=True, eq=False)
class UnmaskedFacts:
    """A text with the causal mask taken away, as arrays: see core.read.unmasked."""

    labels: tuple[str, ...]
    losses: np.ndarray
    without: np.ndarray
    layer: int
    head: int
    next_word: float
    before: np.ndarray
    after: np.ndarray
    written: str
    written_without: str


@dataclass(frozen=True)
class ScaleEffect:
    """The same text with the division by √d and without it, over all heads."""

    own: Sharpness
    without: Sharpness
