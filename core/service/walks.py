"""A walk in plain data: one token through one layer, with what a screen needs to compute again what a visitor changes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch
from torch import nn

from ..errors import Refused
from ..learn.residual_paths import residual_paths
from ..model.text import from_ids
from ..model.transformer import RMSNorm
from ..read.additions import additions, by_head, loudest, start
from ..read.ending import ending
from ..read.experts import routing
from ..read.layer_walk import Guess, Terms, Walk, guesses, terms, walk
from ..read.strip import strip
from ..run.trace import Trace
from .engine import Engine
from .event_loop import AnswerCache
from .facts import array
from .worker import Worker

SHARED_EXPERT = -1  # in the place of an expert's number


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
class LayerWalk:
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
    chosen: tuple[
        int, ...
    ] = ()  # the experts of mlp.taken by their numbers; SHARED_EXPERT: the one that all tokens take


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


def walk_facts(walk: Walk) -> LayerWalk:
    """Raises Outdated after a training."""
    begun = start(walk.run, walk.stack, walk.query)
    loud = loudest(walk)
    return LayerWalk(
        walk.stack,
        walk.layer,
        walk.query,
        {step: array(values) for step, values in walk.values.items()},
        norms_of(walk),
        tuple(site_walk(walk, site) for site in walk.inputs if site != "mlp"),
        {name: array(vector) for name, vector in begun.parts},
        array(begun.embed),
        begun.is_normed,
        tuple(loud.indices.tolist()),
        tuple(loud.lengths.tolist()),
        tuple(SHARED_EXPERT if number is None else number for number in walk.chosen),
    )


def norms_of(walk: Walk) -> dict[str, NormFacts]:
    found: dict[str, NormFacts] = {}
    for step in walk.steps:
        part, _, name = step.rpartition(".")
        if name not in ("norm", "out_norm"):
            continue
        which = {"attn": "attn", "cross_attn": "cross", "mlp": "mlp"}[part]
        norm = walk.block.get_submodule(f"{which}_{name}")
        assert isinstance(norm, nn.LayerNorm | RMSNorm)
        before = walk.before_norm[step] if name == "norm" else walk.values[f"{part}.out"][None]
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        found[step] = NormFacts(
            array(before),
            array(norm.weight.detach()),
            None if bias is None else array(bias.detach()),
            norm.eps,
            isinstance(norm, nn.LayerNorm),
        )
    return found


def site_walk(walk: Walk, site: str) -> SiteWalk:
    record = walk.record(site)
    rule = record.rule
    queries = torch.tensor([walk.query], device=record.device)
    keys = torch.arange(record.n_key, device=record.device)
    bias, terms = None, dict[str, np.ndarray]()
    if rule.bias is not None:
        blocks = {name: term[0, :, 0] for name, term in rule.bias.terms(queries, keys).items()}  # [head or 1, key]
        terms = {name: array(block.expand(record.n_heads, -1)) for name, block in blocks.items()}
        bias = sum(terms.values(), np.zeros(1, np.float32))
    heads = range(record.n_heads) if rule.mask.heads_differ else range(1)
    reasons = torch.stack([rule.mask.reasons(queries, keys, head)[0] for head in heads])
    return SiteWalk(
        site,
        next(i for i, other in enumerate(walk.run.attention) if other.name == record.name),
        array(walk.turned_keys[site]),
        rule.scale,
        rule.temperature,
        bias,
        terms if len(terms) > 1 else {},
        reasons.cpu().numpy(),
        array(by_head(walk, site)),
    )


def added(run: Trace, stack: str) -> tuple[AddedFacts, ...]:
    return tuple(AddedFacts(one.layer, one.sublayer, array(one.lengths)) for one in additions(run, stack))


def strip_facts(run: Trace, stack: str, position: int | None) -> StripFacts:
    """Raises KeyError for a stack, IndexError for a position, and Outdated after a training."""
    found = strip(run, stack, position)
    next_word = None
    if found.next_word is not None:
        token, _, chance = found.next_word
        next_word = (from_ids(run.loaded.tokenizer, (token,)).labels[0], chance)
    return StripFacts(
        stack,
        found.position,
        array(found.stream),
        {name: array(lengths) for name, lengths in found.lengths.items()},
        None if found.adds is None else {name: array(values) for name, values in found.adds.items()},
        next_word,
        None if found.wires is None else array(found.wires),
    )


def ending_facts(run: Trace, position: int | None, k: int) -> EndingFacts:
    """Raises TextError for models without a head, IndexError for a position, and Outdated after a training."""
    found, norm = ending(run, position, k), None
    if (own := found.norm) is not None:
        norm = LastNormFacts(own.centre, own.scale, array(own.gain), None if own.shift is None else array(own.shift))
    return EndingFacts(
        found.position,
        array(found.before),
        array(found.after),
        norm,
        found.labels,
        tuple(found.logits.tolist()),
        tuple(found.probabilities.tolist()),
        found.log_sum_exp,
        found.mean,
        found.deviation,
        found.lowest,
        array(found.losses),
    )


def residual_path_facts() -> tuple[ResidualPathFacts, ...]:
    return tuple(
        ResidualPathFacts(one.norm, one.residual, tuple(one.gradients.tolist()), tuple(one.alike.tolist()))
        for one in residual_paths()
    )


def expert_facts(run: Trace, stack: str) -> ExpertFacts:
    """Raises TextError for a stack without experts, TooLarge and Outdated."""
    found = routing(run, stack)
    numbers = found.chosen.cpu().numpy().astype("int32")
    return ExpertFacts(stack, found.layers, found.n_experts, numbers, array(found.weights), array(found.load))


def without_run(walk: Walk) -> partial[Walk]:
    """A walk's own numbers, for the same run again: runs are the engine's to hold, and to drop."""
    return partial(Walk, **{field.name: getattr(walk, field.name) for field in fields(walk) if field.name != "run"})


def walk_bytes(kept: partial[Walk]) -> int:
    """About what it holds: the whole of whatever its tensors are parts of."""
    own = kept.keywords
    tensors = [x for name in ("values", "before_norm", "turned_keys") for x in own[name].values()]
    tensors += [x for pair in own["inputs"].values() for x in pair]
    return 16_384 + sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())


WALK_BYTES = 64 << 20  # of walks, whose numbers somebody asks about one by one


class LocalWalks(Worker):
    """Walks, and each number of them as a sum."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._walks = AnswerCache(WALK_BYTES, walk_bytes, engine.weight_versions)

    async def walk(self, key: str, stack: str, layer: int, query: int) -> LayerWalk:
        """What one token is at each step of one layer."""
        found = await self._walk(key, stack, layer, query)
        return await self._pass(partial(walk_facts, found))

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        """One number of a walk as the sum that it is."""
        found = await self._walk(key, number.stack, number.layer, number.query)
        try:
            return await self._work(partial(terms, found, number.step, number.index, k))
        except KeyError as error:
            raise Refused(f"This layer has {error.args[0]}.") from None
        except (IndexError, ValueError) as error:
            raise Refused(f"There is {error}." if isinstance(error, IndexError) else f"{error}.") from None

    async def additions(self, key: str, stack: str) -> tuple[AddedFacts, ...]:
        """How long a vector every sublayer of a stack adds to every token."""

        async def make() -> tuple[AddedFacts, ...]:
            run = await self._run(key)
            try:
                return await self._work(partial(added, run, stack))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("additions", key, stack), make)

    async def experts(self, key: str, stack: str) -> ExpertFacts:
        """The experts that every token took in every layer. Raises Refused for a stack without experts."""

        async def make() -> ExpertFacts:
            return await self._again(key, lambda run: expert_facts(run, stack))

        return await self._kept.get(("experts", key, stack), make)

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        """What the head would make of a token's stream behind every addition; None asks for the last real token."""

        async def make() -> tuple[Guess, ...]:
            return await self._again(key, lambda run: guesses(run, query))

        return await self._kept.get(("guesses", key, query), make)

    async def strip(self, key: str, stack: str, position: int | None = None) -> StripFacts:
        """One stack at one position, layer by layer; None asks for the last real token."""

        async def make() -> StripFacts:
            try:
                return await self._again(key, lambda run: strip_facts(run, stack, position))
            except KeyError:
                raise Refused(f"This run has no stack called {stack!r}.") from None

        return await self._kept.get(("strip", key, stack, position), make)

    async def ending(self, key: str, position: int | None = None, k: int = 10) -> EndingFacts:
        """From the last layer to the next word. Raises Refused for a model without a head."""

        async def make() -> EndingFacts:
            return await self._again(key, lambda run: ending_facts(run, position, k))

        return await self._kept.get(("ending", key, position, k), make)

    async def residual_paths(self) -> tuple[ResidualPathFacts, ...]:
        """The gradient in fresh layers with the residual connection and without, worked out once."""
        return await self._kept.get("residual paths", lambda: self._work(residual_path_facts, slow=True))

    async def _walk(self, key: str, stack: str, layer: int, query: int) -> Walk:
        async def make() -> partial[Walk]:
            return await self._again(key, lambda run: without_run(walk(run, stack, layer, query)))

        of = await self._run(key)
        return (await self._walks.get((key, stack, layer, query), make))(of)
