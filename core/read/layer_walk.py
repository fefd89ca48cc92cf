"""One token's way through one layer: every number on it, and where each number came from.

Every step of a layer is a sum of products, a norm, or a function of one number. walk() has what the followed token is at each
step, terms() takes any one of these numbers apart, and guesses() says what the stream would predict after every addition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .. import memory
from ..errors import TextError
from ..model.config import ModelConfig
from ..model.hooks import hook_points
from ..model.transformer import MLP, Attention, Block, Expert, MixtureOfExperts, RMSNorm
from ..run.attention import AttentionRecord
from ..run.predictions import allowed_scores, checked_positions, following, head_of, strings_of
from ..run.trace import Trace

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Walk:
    """What the token at `query` is at each step of one layer, float32, in the order of the pass.

    values has these steps, where the layer has them (`attn` stands for cross_attn too):
        x             [d_model]            the residual stream as the layer begins
        attn.norm     [d_model]            pre and sandwich: first, what attention reads; post: last, the stream after it
        attn.q        [head, d_head]       the query, before rotary positions turn it
        attn.k, .v    [kv_head, key, d_head]  of all keys, which queries of other heads may share; k before it is turned
        attn.turned   [head, d_head]       rotary only: the query as it meets the keys
        attn.raw      [head, key]          q·k
        attn.scores   [head, key]          scaled, biased, −∞ where the mask forbids
        attn.weights  [head, key]          softmax
        attn.z        [head, d_head]       Σ weight · v
        attn.out      [d_model]            z W_O, with its bias: what attention adds
        attn.out_norm [d_model]            sandwich: the same, normed
        attn.add      [d_model]            the stream with it
        mlp.norm      [d_model]            as attn.norm
        mlp.gate      [d_ff]               gated: what the activation gets
        mlp.up        [d_ff]               what the activation gets, or the gate is multiplied with
        mlp.act       [d_ff]               after the activation (and the product)
        mlp.out       [d_model]            what the MLP adds
        mlp.out_norm, mlp.add [d_model]    as for attention
    A layer with a mixture of experts has, instead of gate, up and act:
        mlp.router    [expert]             the router's score of every expert
        mlp.taken     [choice]             the weights of those that it chose, the largest first, and of the expert that all tokens take
        mlp.experts   [choice, d_model]    what each of them makes of the token; mlp.out is their sum by these weights
    before_norm has what each norm is given, of every position, [pos, d_model]: BatchNorm would measure its columns.
    """

    run: Trace
    stack: str
    layer: int
    query: int
    values: Mapping[str, Tensor]
    before_norm: Mapping[str, Tensor]
    inputs: Mapping[
        str, tuple[Tensor, Tensor]
    ]  # attention -> what its queries [d_model] and its keys [key, d_model] read
    turned_keys: Mapping[str, Tensor]  # attention -> k as the queries meet it, [kv_head, key, d_head]
    chosen: Sequence[int | None] = ()  # the experts of mlp.taken by their numbers; None: the one that all tokens take

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def block(self) -> Block:
        """The layer's module. Raises Outdated where its weights are no longer those of the run."""
        self.run.forward.weights.check()
        found = self.run.loaded.model.get_submodule(f"{self.stack}.blocks.{self.layer}")
        assert isinstance(found, Block)
        return found

    def record(self, site: str) -> AttentionRecord:
        """The record of this layer's attention; site is attn or cross_attn."""
        name = f"{self.stack}.blocks.{self.layer}.{site}"
        return next(record for record in self.run.attention if record.name == name)


@dataclass(frozen=True)
class Terms:
    """value = Σ of the k largest products + rest + bias + edited.

    indices say what each shown product is of (a feature, a key, a head, a neuron), factors are its two numbers, products
    what they make. rest is the sum of the `n_rest` others. edited is what an edit of the run made of it, 0 without one.
    """

    value: float
    indices: tuple[int, ...]
    factors: tuple[tuple[float, float], ...]
    products: tuple[float, ...]
    rest: float
    n_rest: int
    bias: float
    edited: float


@dataclass(frozen=True)
class Guess:
    """What the head makes of the stream after one addition. It is a reading: only the last one is the model's output."""

    point: str
    layer: int | None  # None: the embedding, before any layer
    sublayer: str  # embedding, attention, cross-attention, MLP
    id: int
    string: str
    probability: float
    final_probability: float  # of the word that the model ends on
    final_rank: int


def walk(run: Trace, stack: str, layer: int, query: int) -> Walk:
    """One token's way through one layer, from one more pass that ends after this layer, with the run's edits.

    Raises IndexError for a stack, layer or position that the run does not have, TextError for a layer with a part whose numbers
    are not shown here, TooLarge with the bytes needed and free, and
    Outdated after a training.
    """
    stacks: dict[str, int] = dict(run.config.stacks)
    if not 0 <= layer < stacks.get(stack, 0):
        there = ", ".join(f"{name} layers 0 to {n - 1}" for name, n in stacks.items())
        raise IndexError(f"layer {layer} in {stack!r}: this model has {there}")
    if (rare := unwalked(run.config, layer)) is not None:
        raise TextError(
            f"{run.loaded.spec.title} has {rare} in this layer, which is not shown step by step. Its patterns, scores and what each "
            "head adds are in the other rooms."
        )
    tokens = run.source if stack == "encoder" or run.target is None else run.target
    checked_positions(tokens, [query])
    name = f"{stack}.blocks.{layer}"
    ends = tuple(f".hook_{what}" for what in MOMENTS)
    points = [p for p in hook_points(run.loaded.model) if p.startswith(f"{name}.") and p.endswith(ends)]
    if f"{name}.cross_attn.hook_q" in points:
        points.append("encoder.hook_final")
    config = run.config
    wide = 8 * config.d_model + 3 * config.d_ff + 6 * config.n_heads * config.d_head
    n = max(len(tokens), len(run.source))
    memory.admit_large(
        run.texts * n * wide * 4, run.loaded.device, f"A walk through {n:,} tokens", "Use a shorter text."
    )

    def part(point: str, x: Tensor) -> Tensor:
        x = x[run.index if x.shape[0] > 1 else 0]
        # Of the wide moments the one row: a view of it would keep all rows for as long as the walk is kept.
        return (x[query].clone() if ".mlp.hook_" in point else x).float()

    seen = run.forward.moments(points, part)
    return _walk(run, stack, layer, query, {point.removeprefix(f"{name}."): x for point, x in seen.items()})


def mlp_of(block: Block) -> MLP | None:
    """The MLP of a layer; None where it has a mixture of experts."""
    return block.mlp if isinstance(block.mlp, MLP) else None


def unwalked(config: ModelConfig, layer: int) -> str | None:
    """The part of a layer that has no steps here, in words; None where every number of it can be shown."""
    parts = {
        "multi-head latent attention": config.kv_rank > 0,
        "a soft-cap on scores": config.score_softcap is not None,
        "attention sinks": config.sinks,
        "norms after the sublayers alone": config.norm_order == "after",
        "one norm for both sublayers": config.shared_norm,
        "an attention without a norm": layer == 0 and not config.first_attn_norm,
        "queries and keys normed at their full width or after they turn": config.qk_norm
        and config.qk_norm_place != "head",
        "queries that grow with the text": config.query_growth != 0,
    }
    return next((part for part, has in parts.items() if has), None)


# The moments of a layer that a walk needs, by the end of their names; there are no more of them than a layer has.
MOMENTS = (
    *("resid_pre", "attn_normed", "cross_normed", "mlp_normed", "q_pre", "k_pre", "q", "k", "v", "z", "o"),
    *("attn_out", "resid_mid", "cross_out", "resid_cross", "pre", "pre_linear", "post", "router", "mlp_out"),
    "resid_post",
)


def _walk(run: Trace, stack: str, layer: int, query: int, seen: Mapping[str, Tensor]) -> Walk:
    order = run.config.norm_order
    post, sandwich = order == "post", order == "sandwich"
    values: dict[str, Tensor] = {}
    before: dict[str, Tensor] = {}
    inputs: dict[str, tuple[Tensor, Tensor]] = {}
    turned_keys: dict[str, Tensor] = {}
    stream = seen["hook_resid_pre"]  # [pos, d_model]
    chosen: list[int | None] = []
    whole = Walk(run, stack, layer, query, values, before, inputs, turned_keys, chosen)
    values["x"] = stream[query]

    def begin(part: str, hook: str) -> Tensor:
        """The input of a sublayer, [pos, d_model]."""
        if post:
            return stream
        # A parallel layer's sublayers read the same stream.
        before[f"{part}.norm"] = seen["hook_resid_pre"] if run.config.parallel else stream
        values[f"{part}.norm"] = seen[hook][query]
        return seen[hook]

    def end(part: str, out: Tensor, added: Tensor, after: Tensor | None) -> Tensor:
        """The stream after a sublayer, [pos, d_model]: what came out of it, what is added (normed, in a sandwich), the sum."""
        values[f"{part}.out"] = out
        if sandwich:
            values[f"{part}.out_norm"] = added[query]
        together = stream + added
        if after is None:
            values[f"{part}.add"] = together[query]
            return together
        values[f"{part}.add"] = together[query] if post else after[query]
        if post:
            before[f"{part}.norm"] = together
            values[f"{part}.norm"] = after[query]
        return after

    for site, short in (("attn", "attn"), ("cross_attn", "cross")):
        if f"{site}.hook_q" not in seen:
            continue
        h = begin(site, f"hook_{short}_normed")
        inputs[site] = h[query], h if site == "attn" else seen["encoder.hook_final"]
        record = whole.record(site)
        q, k = seen[f"{site}.hook_q"], seen[f"{site}.hook_k"]
        values[f"{site}.q"] = seen.get(f"{site}.hook_q_pre", q)[:, query]
        values[f"{site}.k"], values[f"{site}.v"] = seen.get(f"{site}.hook_k_pre", k), seen[f"{site}.hook_v"]
        turned_keys[site] = k
        if f"{site}.hook_q_pre" in seen:
            values[f"{site}.turned"] = q[:, query]
        values[f"{site}.raw"] = record.raw(queries=[query])[:, 0]
        values[f"{site}.scores"] = record.scores(queries=[query], masked=True)[:, 0]
        values[f"{site}.weights"] = record.pattern(queries=[query])[:, 0]
        values[f"{site}.z"] = seen[f"{site}.hook_z"][:, query]
        after = seen.get("hook_resid_mid" if site == "attn" else "hook_resid_cross")
        stream = end(site, seen[f"{site}.hook_o"][query], seen[f"hook_{short}_out"], after)
    h = begin("mlp", "hook_mlp_normed")
    inputs["mlp"] = h[query], h
    mlp = mlp_of(whole.block)
    with torch.inference_mode():
        if mlp is None:
            values["mlp.router"] = seen["mlp.hook_router"]
            chosen[:], values["mlp.taken"], values["mlp.experts"] = _experts(whole, h[query])
            made = values["mlp.taken"] @ values["mlp.experts"]
        else:
            if mlp.gate is not None:
                values["mlp.gate"], values["mlp.up"] = seen["mlp.hook_pre"], seen["mlp.hook_pre_linear"]
            else:
                values["mlp.up"] = seen["mlp.hook_pre"]
            values["mlp.act"] = seen["mlp.hook_post"]
            made = _float(mlp.down, values["mlp.act"]) if sandwich else seen["hook_mlp_out"][query]
    end("mlp", made if sandwich else seen["hook_mlp_out"][query], seen["hook_mlp_out"], seen["hook_resid_post"])
    return whole


def _mixture(block: Block) -> MixtureOfExperts:
    assert isinstance(block.mlp, MixtureOfExperts)
    return block.mlp


def _experts(walk: Walk, h: Tensor) -> tuple[list[int | None], Tensor, Tensor]:
    """The experts that a token takes, their weights [choice], and what each makes of it, [choice, d_model]."""
    mixture = _mixture(walk.block)
    kind = mixture.router.weight.dtype
    weights, numbers = mixture.routed(walk.values["mlp.router"].to(kind))
    weights, order = weights.float().sort(descending=True, stable=True)
    chosen: list[int | None] = [*numbers[order].tolist()]
    if mixture.shared is not None:
        own = h.new_ones(1)
        if mixture.shared_gate is not None:
            own = mixture.shared_gate(h.to(kind)).float().sigmoid()
        weights, chosen = torch.cat([weights, own]), [*chosen, None]
    made = [_expert(mixture, number)(h[None].to(kind))[0].float() for number in chosen]
    return chosen, weights, torch.stack(made)


def _expert(mixture: MixtureOfExperts, number: int | None) -> Expert:
    found = mixture.shared if number is None else mixture.experts[number]
    assert isinstance(found, Expert)
    return found


def terms(walk: Walk, step: str, index: Index | int, k: int = 6) -> Terms:
    """One number of a walk as a sum, the k largest products first.

    index is the number's place in walk.values[step]. What the terms are of: for q, k, v, up and gate the features of what is
    projected; for raw the features of q and k; for scores the raw score and the scale (what distance adds is the bias); for
    weights e^(score − largest) and 1 / Σ; for z the keys; for attn.out the heads; for mlp.out the neurons, or the experts that the
    token takes; for the router's scores the features, for an expert its neurons; for add the
    stream and what is added; for norm the normed number and γ (its bias is β); for turned the pair that is turned.
    The residual stream x, the activation and the router's weights have no terms. Raises KeyError for a step and IndexError for a place that the
    walk does not have, ValueError for a step without terms, and Outdated after a training.
    """
    if step not in walk.values:
        raise KeyError(f"no step {step!r}; there are: {', '.join(walk.steps)}")
    place = (index,) if isinstance(index, int) else tuple(index)
    values = walk.values[step]
    if len(place) != values.ndim or any(not 0 <= i < n for i, n in zip(place, values.shape, strict=True)):
        raise IndexError(f"no number {list(place)} in {step}, which is {list(values.shape)}")
    with torch.inference_mode():
        first, second, bias = _factors(walk, step, place)
    first, second, value = first.cpu().double(), second.cpu().double(), float(values[place])
    products = (first * second).float()
    if not torch.isfinite(values[place]):  # a masked score is no sum
        return Terms(value, (), (), (), value, 0, 0.0, 0.0)
    chosen = products.abs().topk(min(k, len(products))).indices
    shown = products[chosen]
    rest = float(products.sum(dtype=torch.float64) - shown.sum(dtype=torch.float64))
    missing = value - float(shown.sum(dtype=torch.float64)) - rest - bias
    # What rounding leaves belongs to the others; what an edit changed is named.
    edited = missing if abs(missing) > 1e-3 * max(1.0, abs(value)) and walk.run.forward.edited else 0.0
    return Terms(
        value,
        tuple(chosen.tolist()),
        tuple(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True)),
        tuple(shown.tolist()),
        rest + missing - edited,
        len(products) - len(chosen),
        bias,
        edited,
    )


def _factors(walk: Walk, step: str, place: Index) -> tuple[Tensor, Tensor, float]:
    """The two factors of each term [term], and the bias."""
    part, _, name = step.rpartition(".")
    block, values = walk.block, walk.values
    if name in ("norm", "out_norm"):
        return _norm_factors(walk, part, name, place[0])
    if name == "add":
        added = values[f"{part}.out_norm"] if f"{part}.out_norm" in values else values[f"{part}.out"]
        stream = values["x"] if part == "attn" else values[_stream_before(walk, part)]
        pair = torch.stack([stream[place[0]], added[place[0]]])
        return pair, torch.ones(2), 0.0
    if part == "mlp":
        mlp = mlp_of(block)
        if mlp is None:
            return _mixture_factors(walk, name, place)
        return _mlp_factors(mlp, values, walk.inputs["mlp"][0], name, place[0])
    if part in walk.inputs:
        attention = block.get_submodule(part)
        assert isinstance(attention, Attention)
        return _attention_factors(walk, attention, part, name, place)
    raise ValueError(f"{step} is not a sum: it is what the layer is given")


def _stream_before(walk: Walk, part: str) -> str:
    """The step that has the stream which this sublayer adds to."""
    before = "cross_attn" if part == "mlp" and "cross_attn" in walk.inputs else "attn"
    return f"{before}.norm" if walk.run.config.norm_order == "post" else f"{before}.add"


def _norm_factors(walk: Walk, part: str, name: str, j: int) -> tuple[Tensor, Tensor, float]:
    norm = norm_of(walk, f"{part}.{name}")
    x = walk.values[f"{part}.out"] if name == "out_norm" else walk.before_norm[f"{part}.norm"][walk.query]
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    return normed(norm, x)[j : j + 1], norm.weight[j : j + 1].float(), 0.0 if bias is None else float(bias[j])


def norm_of(walk: Walk, step: str) -> nn.LayerNorm | RMSNorm:
    """The norm whose output a step is, such as attn.norm or mlp.out_norm."""
    norm = walk.block.get_submodule(step.replace("cross_attn", "cross").replace(".", "_"))
    assert isinstance(norm, nn.LayerNorm | RMSNorm)
    return norm


def normed(norm: nn.LayerNorm | RMSNorm, x: Tensor) -> Tensor:
    """x [..., d_model] by a norm's own rule, before γ and β: mean 0 and deviation 1, or for RMSNorm no mean taken off."""
    x = x.float()
    if isinstance(norm, RMSNorm):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.eps)
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + norm.eps)


def _mlp_factors(mlp: MLP, values: Mapping[str, Tensor], h: Tensor, name: str, j: int) -> tuple[Tensor, Tensor, float]:
    if name == "out":
        return values["mlp.act"], mlp.down.weight[j].float(), _bias(mlp.down, j)
    if name == "act":
        if mlp.gate is None:
            raise ValueError("mlp.act is not a sum: it is the activation of one number")
        return mlp.activation(values["mlp.gate"][j : j + 1]), values["mlp.up"][j : j + 1], 0.0
    linear = mlp.gate if name == "gate" else mlp.up
    assert linear is not None
    return h, linear.weight[j].float(), _bias(linear, j)


def _mixture_factors(walk: Walk, name: str, place: Index) -> tuple[Tensor, Tensor, float]:
    values, h, mixture = walk.values, walk.inputs["mlp"][0], _mixture(walk.block)
    if name == "out":
        return values["mlp.taken"], values["mlp.experts"][:, place[0]], 0.0
    if name == "router":
        return h, mixture.router.weight[place[0]].float(), _bias(mixture.router, place[0])
    if name == "experts":
        expert = _expert(mixture, walk.chosen[place[0]])
        neurons = expert.neurons(h[None].to(expert.down.weight.dtype))[0].float()
        return neurons, expert.down.weight[place[1]].float(), _bias(expert.down, place[1])
    raise ValueError(f"mlp.{name} is not a sum: it is the router's rule for one score among others")


def _attention_factors(
    walk: Walk, attention: Attention, site: str, name: str, place: Index
) -> tuple[Tensor, Tensor, float]:
    values, record = walk.values, walk.record(site)
    head = place[0]
    group = head // (record.n_heads // record.n_kv_heads)
    if name in ("q", "k", "v"):
        return _projection_factors(walk, attention, site, name, place)
    if name == "turned":
        j = place[1]
        angles = _angles(walk)
        half = len(angles)
        if j >= 2 * half:  # partial rotary: this one is not turned
            return values[f"{site}.q"][head, j : j + 1], torch.ones(1), 0.0
        other = j + half if j < half else j - half
        pair = values[f"{site}.q"][head, [j, other]]
        # The length may change too (yarn), and is read off what the pass did.
        long = values[f"{site}.turned"][head, [j, other]].norm() / pair.norm().clamp(min=1e-30)
        turn = torch.stack([angles[j % half].cos(), angles[j % half].sin() * (-1 if j < half else 1)])
        return pair, turn * long, 0.0
    if name == "raw":
        q = values[f"{site}.turned" if f"{site}.turned" in values else f"{site}.q"][head]
        return q, walk.turned_keys[site][group, place[1]], 0.0
    if name == "scores":
        rule = record.rule
        at = torch.tensor([[walk.query], [place[1]]], device=record.device)
        bias = 0.0
        if rule.bias is not None:
            of_heads = rule.bias.block(at[0], at[1])[0]
            bias = float(of_heads[head if len(of_heads) > 1 else 0, 0, 0]) / rule.temperature
        return values[f"{site}.raw"][head, place[1] : place[1] + 1], torch.tensor([rule.scale / rule.temperature]), bias
    if name == "weights":
        scores = values[f"{site}.scores"][head].cpu().double()
        shares = (scores - scores.max()).exp()
        return shares[place[1] : place[1] + 1], (1 / shares.sum())[None], 0.0
    if name == "z":
        return values[f"{site}.weights"][head], values[f"{site}.v"][group, :, place[1]], 0.0
    weight = attention.o.weight[head].float().unflatten(0, (record.n_heads, -1))  # [head, d_head] of one feature
    return (values[f"{site}.z"] * weight).sum(-1), torch.ones(record.n_heads), _bias(attention.o, head)


def _projection_factors(
    walk: Walk, attention: Attention, site: str, name: str, place: Index
) -> tuple[Tensor, Tensor, float]:
    """q [head, j], k and v [kv_head, key, j]: what is projected, and the row of the matrix; with a norm, its own factors."""
    of_query, of_keys = walk.inputs[site]
    h = of_query if name == "q" else of_keys[place[1]]
    linear = {"q": attention.q, "k": attention.k, "v": attention.v}[name]
    head, j, d = place[0], place[-1], attention.d_head
    norm = {"q": attention.q_norm, "k": attention.k_norm, "v": None}[name]
    if isinstance(norm, nn.LayerNorm | RMSNorm):
        x = _float(linear, h)[head * d : (head + 1) * d]
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        return normed(norm, x)[j : j + 1], norm.weight[j : j + 1].float(), 0.0 if bias is None else float(bias[j])
    return h, linear.weight[head * d + j].float(), _bias(linear, head * d + j)


def _angles(walk: Walk) -> Tensor:
    """[d_rotary/2] radians by which this layer turns the followed token."""
    record = next(record for record in walk.run.positions if record.stack == walk.stack)
    windowed = walk.run.config.is_windowed(walk.layer) and walk.run.config.rotary_base_windowed is not None
    angles = record.angles(windowed)
    assert angles is not None
    return angles[walk.query].float()


def _bias(linear: nn.Linear, j: int) -> float:
    return 0.0 if linear.bias is None else float(linear.bias[j])


def _float(linear: nn.Linear, x: Tensor) -> Tensor:
    bias = None if linear.bias is None else linear.bias.float()
    return nn.functional.linear(x, linear.weight.float(), bias)


def guesses(run: Trace, query: int | None = None) -> tuple[Guess, ...]:
    """What the last norm and the head would make of the stream after the embedding and every addition (None: last token).

    Of each the likeliest word, and what the word that the model ends on has there. A guess before the end is a reading, not the
    model's output (nostalgebraist 2020). In post order the stream is normed as it comes. Raises TextError for models without
    a head, IndexError, and Outdated after a training.
    """
    head = head_of(run.loaded)
    tokens = run.source if run.target is None else run.target
    (position,) = checked_positions(tokens, None if query is None else [query])
    name, stack = run.config.stacks[-1][0], run.loaded.model.stacks[-1]
    places: list[tuple[str, int | None, str]] = [(f"{name}.blocks.0.hook_resid_pre", None, "embedding")]
    kinds = {"resid_mid": "attention", "resid_cross": "cross-attention", "resid_post": "MLP"}
    if run.config.parallel:
        kinds = {"resid_post": "attention and MLP"}
    known = hook_points(run.loaded.model)
    for layer in range(len(stack.blocks)):
        for end, kind in kinds.items():
            if (point := f"{name}.blocks.{layer}.hook_{end}") in known:
                places.append((point, layer, kind))
    seen = run.forward.moments([point for point, _, _ in places], lambda _, x: x[run.index, position])
    with torch.inference_mode():
        streams = torch.stack([seen[point] for point, _, _ in places])  # [addition, d_model]
        scores = head(stack.norm(streams)[None])[0].float()
        may_follow = following(run.loaded, tokens, [position]) * len(scores)
        chances = allowed_scores(scores, may_follow).softmax(-1)  # [addition, vocab]
    run.forward.weights.check()  # a training may go on beside this
    best, ids = chances.max(-1)
    final = chances[:, ids[-1]]
    ranks = 1 + (chances > final[:, None]).sum(-1)
    strings = strings_of(run.loaded, ids.tolist())
    return tuple(
        Guess(point, layer, kind, *rest)
        for (point, layer, kind), *rest in zip(
            places, ids.tolist(), strings, best.tolist(), final.tolist(), ranks.tolist(), strict=True
        )
    )
