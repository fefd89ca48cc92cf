"""A walk in plain data: one token through one layer, with what a screen needs to compute again what a visitor changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EVERYONES = -1  # in the place of an expert's number


@dataclass(frozen=True)
class WalkNumber:
    """One number of a walk: whose walk, the step, and the number's place in that step's tensor."""

    stack: str
    layer: int
    query: int
    step: str
    index: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NormFacts:
    """One norm of a layer: what it is given, and its own numbers."""

    before: np.ndarray  # float32 [pos, d_model]
    weight: np.ndarray  # float32 [d_model]: γ
    bias: np.ndarray | None  # float32 [d_model]: β; None where it has none
    eps: float
    takes_mean: bool  # False: RMSNorm


@dataclass(frozen=True, eq=False)
class SiteWalk:
    """One attention on the way: scores = (raw · scale + bias) / temperature, where reasons are 0."""

    site: str  # attn or cross_attn
    record: int  # which of Facts.records
    keys: np.ndarray  # float32 [kv_head, key, d_head]: k as the queries meet it
    scale: float
    temperature: float
    bias: np.ndarray | None  # float32 [head, key]: what distance adds; None where nothing is added
    terms: dict[str, np.ndarray]  # float32 [head, key]: what bias adds up, where it is more than one thing (DeBERTa)
    reasons: np.ndarray  # uint8 [head or 1, key]: why a key is hidden, as in rules.REASONS
    by_head: np.ndarray  # float32 [head, d_model]: what each head writes


@dataclass(frozen=True, eq=False)
class WalkFacts:
    """What the token at `query` is at each step of one layer. values are those of walk.Walk, float32, in its order."""

    stack: str
    layer: int
    query: int
    values: dict[str, np.ndarray]
    norms: dict[str, NormFacts]  # step -> its norm; of a norm after a sublayer, only of the followed token
    sites: tuple[SiteWalk, ...]
    start: dict[str, np.ndarray]  # token, type, position: float32 [d_model] each, in the order of their addition
    embed: np.ndarray  # float32 [d_model]: what the first layer is given
    embed_normed: bool
    neurons: tuple[int, ...]  # that write the longest vectors, the longest first
    neuron_lengths: tuple[float, ...]  # what one unit of each writes
    chosen: tuple[int, ...] = ()  # the experts of mlp.taken by their numbers; EVERYONES: the one that all tokens take


@dataclass(frozen=True, eq=False)
class ExpertFacts:
    """The experts that every token took in every layer of a stack that has some."""

    stack: str
    layers: tuple[int, ...]  # the first axis of the arrays
    n_experts: int
    chosen: np.ndarray  # int32 [layer, pos, choice], the expert with the largest weight first
    weights: np.ndarray  # float32 [layer, pos, choice]
    load: np.ndarray  # float32 [layer, expert]: the share of the text's choices that each expert got


@dataclass(frozen=True, eq=False)
class AddedFacts:
    """How long a vector one sublayer adds to each token's stream."""

    layer: int
    sublayer: str
    lengths: np.ndarray  # float32 [pos]


@dataclass(frozen=True, eq=False)
class StripFacts:
    """One stack at one position: core.read.strip.Strip in plain data."""

    stack: str
    position: int
    stream: np.ndarray  # float32 [layer + 1]: ‖x‖ before every layer, and after the last
    lengths: dict[str, np.ndarray]  # attention, cross-attention, MLP -> float32 [layer]: the length of what it adds
    adds: dict[str, np.ndarray] | None  # the same names -> float32 [layer], in logits; None where that is no sum
    next_word: tuple[str, float] | None  # the label of the likeliest token, and its probability
    wires: np.ndarray | None  # float32 [layer, key]: cross-attention's weights, the mean of all heads


@dataclass(frozen=True, eq=False)
class LastNormFacts:
    """The norm before the head: after = (before − centre) / scale · gain + shift."""

    centre: float  # 0 of an RMS norm
    scale: float
    gain: np.ndarray  # float32 [d_model]
    shift: np.ndarray | None  # float32 [d_model]


@dataclass(frozen=True, eq=False)
class EndingFacts:
    """The end of the pass at one position: core.read.ending.Ending in plain data."""

    position: int
    before: np.ndarray  # float32 [d_model]: the stream after the last layer
    after: np.ndarray  # float32 [d_model]: what the head is given
    norm: LastNormFacts | None  # None where there is none
    labels: tuple[str, ...]  # of the likeliest tokens, the likeliest first
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    log_sum_exp: float
    mean: float  # of all logits, as the two that follow
    deviation: float
    lowest: float
    losses: np.ndarray  # float32 [pos], −ln of the probability of the token that follows; nan where none does


@dataclass(frozen=True, eq=False)
class ResidualPathFacts:
    """One backward pass through fresh layers: core.learn.residual_paths.ResidualPath in plain data."""

    norm: str  # pre, post, none
    residual: bool
    gradients: tuple[float, ...]  # [layer + 1]
    alike: tuple[float, ...]  # [layer + 1]
