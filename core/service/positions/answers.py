"""How a run knows the order of its tokens, in plain data: its positions, another order, one query and one key as clocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

REACH = 64  # tokens to either side, of a rule over distance


@dataclass(frozen=True, eq=False)
class StackPositions:
    """How one stack of a run knows the order of its tokens. What a kind does not have is None."""

    stack: str
    kind: str  # learned, sinusoidal, rotary, alibi, relative: ModelConfig.position
    places: tuple[int, ...]  # where each token was believed to be
    n_ctx: int  # rows of its table; of other kinds the length that it was made for
    d_model: int
    parameters: int  # that were learnt for it
    layout: str | None = None  # of sinusoids: interleaved or halves
    # the two rows of the table that are nearest, and how far apart they are
    closest: tuple[int, int, float] | None = None
    compared: int = 0  # of how many rows
    alike: np.ndarray | None = None  # float32 [distance]: the mean cosine of two rows so far apart, without row 0
    too_long: str | None = None  # what is said of a text longer than the table
    frequencies: np.ndarray | None = None  # float32 [d_rotary/2]: radians a position
    slopes: np.ndarray | None = None  # float32 [head]: of ALiBi
    bias: np.ndarray | None = None  # float32 [head, 2 · REACH + 1]: what a distance adds to a score, key − query
    buckets: np.ndarray | None = None  # int [2 · REACH + 1]: the bucket of each distance


@dataclass(frozen=True, eq=False)
class OrderChange:
    """What another order of the same tokens did to the heads of a site; everything by words, not by places."""

    rows: int  # evenly spaced, that were looked at
    of: int
    moved: np.ndarray  # float32 [layer, head]: the share of its attention that a head moved (measures.moved)
    reach: int
    before: np.ndarray | None  # float32 [layer, head, 2 · reach + 1]: mean weight by distance; nan where there is none
    after: np.ndarray | None  # the same by the places that the words have now; None for cross-attention
    places: tuple[int, ...]  # of the queries, now


@dataclass(frozen=True, eq=False)
class Clock:
    """One query and one key of a head before rotary positions turned them, and all that makes their score of a distance."""

    q: np.ndarray  # float32 [d_head]
    k: np.ndarray  # float32 [d_head], of the query's group
    frequencies: np.ndarray  # float32 [d_rotary/2]: radians a position; feature j turns with j + d_rotary/2
    scale: float  # of q·k
    factor: float  # by which turning makes q and k longer, of yarn; 1 otherwise
    places: tuple[int, int]  # of the query and of the key, in this run
    score: float  # theirs, in this run
    masked: bool  # whether the query may not look at the key, so that the score counts for nothing


@dataclass(frozen=True, eq=False)
class PaperRules:
    """ALiBi and T5's buckets as their papers write them: nobody's own numbers."""

    slopes: np.ndarray  # float32 [head]: of 8 heads
    bias: np.ndarray  # float32 [head, 2 · REACH + 1]: what ALiBi adds at a distance, key − query
    buckets: np.ndarray  # int [2 · REACH + 1]: of 32, up to 128 tokens to both sides
    wide: np.ndarray  # int [2 · far + 1]: the same further out
    decoder: np.ndarray  # int [far + 1]: of 32 for keys before the query alone, by how many tokens they are before it
    exact: int  # distances to either side that have a bucket of their own
    far: int  # from here on all distances share one


@dataclass(frozen=True, eq=False)
class Stretches:
    """The frequencies of a model's rotary positions under each rule for longer texts (core.read.long_context)."""

    n_ctx: int  # tokens of a text that it was trained for
    base: float
    d_head: int
    rules: tuple[str, ...]
    frequencies: np.ndarray  # float32 [rule, d_rotary/2]: radians a position, of a text `factor` times as long
    factors: tuple[float, ...]  # by which each rule makes q and k longer


@dataclass(frozen=True)
class EndLoss:
    """The mean loss of the last tokens of a text."""

    loss: float  # nats
    last: int  # tokens that it is a mean of
    of: int  # tokens of the text


@dataclass(frozen=True)
class PulledApart:
    """A text with places left empty in its middle: the probability of its next token, by how many there are."""

    after: int  # the last token before the gap
    word: str  # the token that is asked for: the first guess on the text as it is
    gaps: tuple[int, ...]
    chances: tuple[float, ...]


@dataclass(frozen=True)
class Follower:
    """The head that follows the word, or the place, more than any other, and the row that shows it best."""

    layer: int
    head: int
    query: int
    key: int  # the word or place that it looks at there, as it was
    by: float  # points of its attention: how much nearer it is to the one map than to the other


@dataclass(frozen=True, eq=False)
class WordSwap:
    """Two words that change places, for the heads of a site (core.read.word_swap.Follows, as arrays)."""

    along: (
        np.ndarray
    )  # float32 [layer, head]: the share of its attention by which a head's map differs from one carried along
    still: np.ndarray  # float32 [layer, head]: the same from the map as it was
    apart: np.ndarray  # float32 [layer]: the largest |Δ| of any weight from the map carried along
    after_both: float  # the same in rows after both words, over all layers
    one_back: np.ndarray  # float32 [2, layer, head]: the mean weight on the token before, as it was and now
    word: Follower
    place: Follower
    rows: int  # that along and still are means over
    read: int  # rows that were read, evenly spaced
    of: int
    weights: int  # that apart is the largest over: of all layers and heads


@dataclass(frozen=True, eq=False)
class SwappedMaps:
    """One head before and after two words have changed places: all tokens of a short text, else those that matter here."""

    places: tuple[int, ...]  # in their order, both words among them
    before: np.ndarray  # float32 [row, key] of these places, as it was
    after: np.ndarray  # the same on the swapped text
    allowed: np.ndarray  # bool [row, key]: whether the mask lets it look, on the swapped text
