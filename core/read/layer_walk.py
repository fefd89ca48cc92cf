"""One token's way through one layer: every number on it, and the terms that each number is the sum of.

Every step of a layer is a sum of products, a norm, or a function of one number. walk() has the values of the followed token at each
step, terms() splits one number into its terms, and guesses() has the prediction of the residual stream after every addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from .. import dataframes, device
from ..device import array
from ..errors import TextError
from ..model.attention import Attention, RMSNorm
from ..model.config import ModelConfig
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..model.transformer import MLP, Block, Expert, MixtureOfExperts
from ..run.attention import AttentionRecord
from ..run.predictions import allowed_scores, checked_positions, head_of, next_token_constraints, strings_of
from ..run.trace_record import TraceRecord
from .next_token_loss import tokens_read

Index = tuple[int, ...]
Factors = tuple[Tensor, Tensor, float]  # the two factors of each term [term], and the bias

# Hooks of a layer that a walk needs, by the ends of their names. No layer has all of them.
LAYER_HOOKS = (
    *("resid_pre", "attn_normed", "cross_normed", "mlp_normed", "q_pre", "k_pre", "q", "k", "v", "z", "o"),
    *("attn_out", "resid_mid", "cross_out", "resid_cross", "pre", "pre_linear", "post", "router", "mlp_out"),
    "resid_post",
)
STREAM_AFTER = {"attn": "hook_resid_mid", "cross_attn": "hook_resid_cross", "mlp": "hook_resid_post"}


@dataclass(frozen=True, eq=False)
class Walk:
    """Values of the token at `query` at each step of one layer, float32, in the order of the pass.

    values has these steps, if the layer has them (`attn` stands for cross_attn too):
        x             [d_model]            the residual stream before the layer
        attn.norm     [d_model]            pre and sandwich: first, the input of attention; post: last, the stream after it
        attn.q        [head, d_head]       the query, before RoPE
        attn.k, .v    [kv_head, key, d_head]  of all keys, which queries of other heads may share; k before RoPE
        attn.turned   [head, d_head]       rotary only: the query after RoPE
        attn.raw      [head, key]          q·k
        attn.scores   [head, key]          scaled, biased, −∞ where masked
        attn.weights  [head, key]          softmax
        attn.z        [head, d_head]       Σ weight · v
        attn.out      [d_model]            z W_O with its bias: output of attention
        attn.out_norm [d_model]            sandwich: the same, normed
        attn.add      [d_model]            the stream plus the output
        mlp.norm      [d_model]            as attn.norm
        mlp.gate      [d_ff]               gated: input of the activation
        mlp.up        [d_ff]               input of the activation, or the factor of the gate
        mlp.act       [d_ff]               after the activation (and the product)
        mlp.out       [d_model]            output of the MLP
        mlp.out_norm, mlp.add [d_model]    as for attention
    A layer with a mixture of experts has, instead of gate, up and act:
        mlp.router    [expert]             the router's score of every expert
        mlp.taken     [choice]             the weights of the chosen experts, the largest first, then that of the shared expert
        mlp.experts   [choice, d_model]    the output of each; mlp.out is their sum by these weights
    before_norm has the input of each norm at every position, [pos, d_model], because BatchNorm would measure its columns.
    """

    run: TraceRecord
    stack: str
    layer: int
    query: int
    values: dict[str, Tensor] = field(default_factory=dict)
    before_norm: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[str, tuple[Tensor, Tensor]] = field(
        default_factory=dict
    )  # sublayer -> the input of its queries [d_model] and of its keys [key, d_model]
    turned_keys: dict[str, Tensor] = field(default_factory=dict)  # attention -> k after RoPE, [kv_head, key, d_head]
    chosen: list[int | None] = field(
        default_factory=list
    )  # numbers of the experts in mlp.taken; None: the expert that all tokens take

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def block(self) -> Block:
        """The layer's module. Raises Outdated if its weights are no longer those of the run."""
        self.run.forward.weights.check()
        block = self.run.loaded.model.get_submodule(f"{self.stack}.blocks.{self.layer}")
        assert isinstance(block, Block)
        return block

    def record(self, site: str) -> AttentionRecord:
        """The record of this layer's attention; site is attn or cross_attn."""
        name = f"{self.stack}.blocks.{self.layer}.{site}"
        return next(record for record in self.run.attention if record.name == name)


@dataclass(frozen=True)
class Terms:
    """value = Σ of the k largest products + rest + bias + edited."""

    value: float
    indices: tuple[int, ...]  # of each shown product: a feature, a key, a head, a neuron
    factors: tuple[tuple[float, float], ...]
    products: tuple[float, ...]
    rest: float  # sum of the n_rest other products
    n_rest: int
    bias: float
    edited: float  # change by an edit of the run, 0 without one


@dataclass(frozen=True)
class LensGuess:
    """Prediction of the residual stream after one addition. Only the last one is the model's output."""

    point: str
    layer: int | None  # None: the embedding, before any layer
    sublayer: str  # embedding, attention, cross-attention, MLP
    id: int
    string: str
    probability: float
    final_probability: float  # of the token that the model finally predicts
    final_rank: int


def walk(run: TraceRecord, stack: str, layer: int, query: int) -> Walk:
    """One token's way through one layer, from one more pass that ends after this layer, with the run's edits.

    Raises IndexError for a stack, layer or position that the run does not have, TextError for a layer with an unsupported part,
    TooLarge with the bytes needed and free, and Outdated after a training.
    """
    stacks: dict[str, int] = dict(run.config.stacks)
    if not 0 <= layer < stacks.get(stack, 0):
        known = ", ".join(f"{name} layers 0 to {n - 1}" for name, n in stacks.items())
        raise IndexError(f"layer {layer} in {stack!r}: this model has {known}")
    if (part := unwalked(run.config, layer)) is not None:
        raise TextError(
            f"{run.loaded.spec.title} has {part} in this layer, which is not shown step by step. Its patterns, scores and what each "
            "head adds are in the other rooms."
        )
    tokens = tokens_read(run, stack)
    checked_positions(tokens, [query])
    name = f"{stack}.blocks.{layer}"
    ends = tuple(f".hook_{end}" for end in LAYER_HOOKS)
    points = [p for p in hook_points(run.loaded.model) if p.startswith(f"{name}.") and p.endswith(ends)]
    if f"{name}.cross_attn.hook_q" in points:
        points.append("encoder.hook_final")
    config = run.config
    width = 8 * config.d_model + 3 * config.d_ff + 6 * config.n_heads * config.d_head
    n = max(len(tokens), len(run.source))
    device.check_fits_or_retry(
        run.texts * n * width * 4, run.loaded.device, f"A walk through {n:,} tokens", "Use a shorter text."
    )

    def keep(point: str, x: Tensor) -> Tensor:
        x = x[run.index if x.shape[0] > 1 else 0]
        # Keep a copy of one row of wide activations, because a view would keep all rows in memory.
        return (x[query].clone() if ".mlp.hook_" in point else x).float()

    seen = {point.removeprefix(f"{name}."): x for point, x in run.forward.moments(points, keep).items()}
    found, stream = Walk(run, stack, layer, query), seen["hook_resid_pre"]
    found.values["x"] = stream[query]
    for site in ("attn", "cross_attn"):
        if f"{site}.hook_q" in seen:
            stream = _walk_attention(found, seen, site, stream)
    _walk_mlp(found, seen, stream)
    return found


def mlp_of(block: Block) -> MLP | None:
    """The MLP of a layer; None if it has a mixture of experts."""
    return block.mlp if isinstance(block.mlp, MLP) else None


def unwalked(config: ModelConfig, layer: int) -> str | None:
    """Name of a part of this layer that walks do not support; None if every number of it can be shown."""
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


def _walk_attention(walk: Walk, seen: Mapping[str, Tensor], site: str, stream: Tensor) -> Tensor:
    """Add the steps of one attention to a walk; returns the stream after it, [pos, d_model]."""
    values, query = walk.values, walk.query
    h = _sublayer_input(walk, seen, site, stream)
    walk.inputs[site] = h[query], h if site == "attn" else seen["encoder.hook_final"]
    record = walk.record(site)
    q, k = seen[f"{site}.hook_q"], seen[f"{site}.hook_k"]  # [pos, head, d_head]
    values[f"{site}.q"] = seen.get(f"{site}.hook_q_pre", q)[query]
    values[f"{site}.k"] = seen.get(f"{site}.hook_k_pre", k).transpose(0, 1)
    values[f"{site}.v"] = seen[f"{site}.hook_v"].transpose(0, 1)
    walk.turned_keys[site] = k.transpose(0, 1)
    if f"{site}.hook_q_pre" in seen:
        values[f"{site}.turned"] = q[query]
    values[f"{site}.raw"] = record.raw(queries=[query])[:, 0]
    values[f"{site}.scores"] = record.scores(queries=[query], masked=True)[:, 0]
    values[f"{site}.weights"] = record.pattern(queries=[query])[:, 0]
    values[f"{site}.z"] = seen[f"{site}.hook_z"][query]
    return _stream_after(walk, seen, site, stream, seen[f"{site}.hook_o"][query])


def _walk_mlp(walk: Walk, seen: Mapping[str, Tensor], stream: Tensor) -> None:
    """Add the steps of the MLP, or of the mixture of experts, to a walk."""
    values, query = walk.values, walk.query
    h = _sublayer_input(walk, seen, "mlp", stream)
    walk.inputs["mlp"] = h[query], h
    mlp, out = mlp_of(walk.block), seen["hook_mlp_out"][query]
    is_sandwich = walk.run.config.norm_order == "sandwich"  # hook_mlp_out is normed then
    with torch.inference_mode():
        if mlp is None:
            values["mlp.router"] = seen["mlp.hook_router"]
            _walk_experts(walk, h[query])
            out = values["mlp.taken"] @ values["mlp.experts"] if is_sandwich else out
        else:
            if mlp.gate is not None:
                values["mlp.gate"], values["mlp.up"] = seen["mlp.hook_pre"], seen["mlp.hook_pre_linear"]
            else:
                values["mlp.up"] = seen["mlp.hook_pre"]
            values["mlp.act"] = seen["mlp.hook_post"]
            out = _float_linear(mlp.down, values["mlp.act"]) if is_sandwich else out
    _stream_after(walk, seen, "mlp", stream, out)


def _sublayer_input(walk: Walk, seen: Mapping[str, Tensor], part: str, stream: Tensor) -> Tensor:
    """Input of a sublayer, [pos, d_model]; adds the norm before it to the walk."""
    if walk.run.config.norm_order == "post":
        return stream
    normed_input = seen[f"hook_{_short_name(part)}_normed"]
    # Both sublayers of a parallel layer read the stream before the layer.
    walk.before_norm[f"{part}.norm"] = seen["hook_resid_pre"] if walk.run.config.parallel else stream
    walk.values[f"{part}.norm"] = normed_input[walk.query]
    return normed_input


def _stream_after(walk: Walk, seen: Mapping[str, Tensor], part: str, stream: Tensor, out: Tensor) -> Tensor:
    """The stream after a sublayer with this output, [pos, d_model]; adds the output, its norm and the sum to the walk."""
    values, query, order = walk.values, walk.query, walk.run.config.norm_order
    added = seen[f"hook_{_short_name(part)}_out"]
    values[f"{part}.out"] = out
    if order == "sandwich":
        values[f"{part}.out_norm"] = added[query]
    together, after = stream + added, seen.get(STREAM_AFTER[part])
    if after is None:
        after = together
    values[f"{part}.add"] = (together if order == "post" else after)[query]
    if order == "post" and after is not together:
        walk.before_norm[f"{part}.norm"] = together
        values[f"{part}.norm"] = after[query]
    return after


def _short_name(part: str) -> str:
    """Name of a sublayer in hooks and modules of its layer."""
    return part.replace("cross_attn", "cross")


def _mixture(block: Block) -> MixtureOfExperts:
    assert isinstance(block.mlp, MixtureOfExperts)
    return block.mlp


def _walk_experts(walk: Walk, h: Tensor) -> None:
    """Add the experts that the token takes to a walk: numbers, weights [choice] and outputs [choice, d_model]."""
    mixture = _mixture(walk.block)
    dtype = mixture.router.weight.dtype
    weights, numbers = mixture.route(walk.values["mlp.router"].to(dtype))
    weights, order = weights.float().sort(descending=True, stable=True)
    chosen: list[int | None] = [*numbers[order].tolist()]
    if mixture.shared is not None:
        own = h.new_ones(1)
        if mixture.shared_gate is not None:
            own = mixture.shared_gate(h.to(dtype)).float().sigmoid()
        weights, chosen = torch.cat([weights, own]), [*chosen, None]
    outputs = [_expert(mixture, number)(h[None].to(dtype))[0].float() for number in chosen]
    walk.chosen.extend(chosen)
    walk.values["mlp.taken"], walk.values["mlp.experts"] = weights, torch.stack(outputs)


def _expert(mixture: MixtureOfExperts, number: int | None) -> Expert:
    expert = mixture.shared if number is None else mixture.experts[number]
    assert isinstance(expert, Expert)
    return expert


def terms(walk: Walk, step: str, index: Index | int, k: int = 6) -> Terms:
    """One number of a walk as a sum, the k largest products first.

    index is the number's position in walk.values[step]. The terms depend on the step:
        q, k, v, up, gate, router  the features of the input
        raw                        the features of q and k
        turned                     the two features of the rotated pair
        scores                     the raw score and the scale; the bias is what distance adds
        weights                    e^(score − largest) and 1 / Σ
        z                          the keys
        attn.out                   the heads
        mlp.out, mlp.experts       the neurons; of a mixture's mlp.out the chosen experts
        norm                       the normed number and γ; the bias is β
        add                        the stream and the addition
    The residual stream x, the activation and the router's weights have no terms. Raises KeyError for a step and IndexError for a
    position that the walk does not have, ValueError for a step without terms, and Outdated after a training.
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
    if not torch.isfinite(values[place]):  # a masked score
        return Terms(value, (), (), (), value, 0, 0.0, 0.0)
    chosen = products.abs().topk(min(k, len(products))).indices
    shown = products[chosen]
    rest = float(products.sum(dtype=torch.float64) - shown.sum(dtype=torch.float64))
    missing = value - float(shown.sum(dtype=torch.float64)) - rest - bias
    # A rounding error belongs to the rest; only a larger difference is due to an edit.
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


def _factors(walk: Walk, step: str, place: Index) -> Factors:
    part, _, name = step.rpartition(".")
    block, values = walk.block, walk.values
    if name in ("norm", "out_norm"):
        x = values[f"{part}.out"] if name == "out_norm" else walk.before_norm[step][walk.query]
        return _norm_factors(norm_of(walk, step), x, place[0])
    if name == "add":
        added = values.get(f"{part}.out_norm", values[f"{part}.out"])
        before = "cross_attn" if part == "mlp" and "cross_attn" in walk.inputs else "attn"
        is_post = walk.run.config.norm_order == "post"
        stream = values["x" if part == "attn" else f"{before}.norm" if is_post else f"{before}.add"]
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


def _norm_factors(norm: nn.LayerNorm | RMSNorm, x: Tensor, j: int) -> Factors:
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    return normed(norm, x)[j : j + 1], norm.weight[j : j + 1].float(), 0.0 if bias is None else float(bias[j])


def norm_of(walk: Walk, step: str) -> nn.LayerNorm | RMSNorm:
    """The norm whose output a step is, such as attn.norm or mlp.out_norm."""
    norm = walk.block.get_submodule(_short_name(step).replace(".", "_"))
    assert isinstance(norm, nn.LayerNorm | RMSNorm)
    return norm


def normed(norm: nn.LayerNorm | RMSNorm, x: Tensor) -> Tensor:
    """x [..., d_model] normed, before γ and β: to mean 0 and deviation 1, or by the root mean square for RMSNorm."""
    x = x.float()
    if isinstance(norm, RMSNorm):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.eps)
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + norm.eps)


def _mlp_factors(mlp: MLP, values: Mapping[str, Tensor], h: Tensor, name: str, j: int) -> Factors:
    if name == "out":
        return values["mlp.act"], mlp.down.weight[j].float(), _bias(mlp.down, j)
    if name == "act":
        if mlp.gate is None:
            raise ValueError("mlp.act is not a sum: it is the activation of one number")
        return mlp.activation(values["mlp.gate"][j : j + 1]), values["mlp.up"][j : j + 1], 0.0
    linear = mlp.gate if name == "gate" else mlp.up
    assert linear is not None
    return h, linear.weight[j].float(), _bias(linear, j)


def _mixture_factors(walk: Walk, name: str, place: Index) -> Factors:
    values, h, mixture = walk.values, walk.inputs["mlp"][0], _mixture(walk.block)
    if name == "out":
        return values["mlp.taken"], values["mlp.experts"][:, place[0]], 0.0
    if name == "router":
        return h, mixture.router.weight[place[0]].float(), _bias(mixture.router, place[0])
    if name == "experts":
        expert = _expert(mixture, walk.chosen[place[0]])
        neurons = expert.hidden(h[None].to(expert.down.weight.dtype))[0].float()
        return neurons, expert.down.weight[place[1]].float(), _bias(expert.down, place[1])
    raise ValueError(f"mlp.{name} is not a sum: it is the router's rule for one score among others")


def _attention_factors(walk: Walk, attention: Attention, site: str, name: str, place: Index) -> Factors:
    values, record = walk.values, walk.record(site)
    head = place[0]
    group = head // (record.n_heads // record.n_kv_heads)
    if name in ("q", "k", "v"):
        return _projection_factors(walk, attention, site, name, place)
    if name == "turned":
        j = place[1]
        angles = _angles(walk)
        half = len(angles)
        if j >= 2 * half:  # partial rotary: this feature is not rotated
            return values[f"{site}.q"][head, j : j + 1], torch.ones(1), 0.0
        other = j + half if j < half else j - half
        pair = values[f"{site}.q"][head, [j, other]]
        # The norm may change too (YaRN), so it is read from the values of the pass.
        stretch = values[f"{site}.turned"][head, [j, other]].norm() / pair.norm().clamp(min=1e-30)
        rotation = torch.stack([angles[j % half].cos(), angles[j % half].sin() * (-1 if j < half else 1)])
        return pair, rotation * stretch, 0.0
    if name == "raw":
        q = values[f"{site}.turned" if f"{site}.turned" in values else f"{site}.q"][head]
        return q, walk.turned_keys[site][group, place[1]], 0.0
    if name == "scores":
        rule = record.rule
        at = torch.tensor([[walk.query], [place[1]]], device=record.device)
        bias = 0.0
        if rule.bias is not None:
            biases = rule.bias.block(at[0], at[1])[0]  # [head or 1, 1, 1]
            bias = float(biases[head if len(biases) > 1 else 0, 0, 0]) / rule.temperature
        return values[f"{site}.raw"][head, place[1] : place[1] + 1], torch.tensor([rule.scale / rule.temperature]), bias
    if name == "weights":
        scores = values[f"{site}.scores"][head].cpu().double()
        shares = (scores - scores.max()).exp()
        return shares[place[1] : place[1] + 1], (1 / shares.sum())[None], 0.0
    if name == "z":
        return values[f"{site}.weights"][head], values[f"{site}.v"][group, :, place[1]], 0.0
    weight = attention.o.weight[head].float().unflatten(0, (record.n_heads, -1))  # [head, d_head] of one feature
    return (values[f"{site}.z"] * weight).sum(-1), torch.ones(record.n_heads), _bias(attention.o, head)


def _projection_factors(walk: Walk, attention: Attention, site: str, name: str, place: Index) -> Factors:
    """q [head, j], k and v [kv_head, key, j]: the input and the row of the matrix, or the factors of a norm after it."""
    of_query, of_keys = walk.inputs[site]
    h = of_query if name == "q" else of_keys[place[1]]
    linear = {"q": attention.q, "k": attention.k, "v": attention.v}[name]
    head, j, d = place[0], place[-1], attention.d_head
    norm = {"q": attention.q_norm, "k": attention.k_norm, "v": None}[name]
    if isinstance(norm, nn.LayerNorm | RMSNorm):
        return _norm_factors(norm, _float_linear(linear, h)[head * d : (head + 1) * d], j)
    return h, linear.weight[head * d + j].float(), _bias(linear, head * d + j)


def _angles(walk: Walk) -> Tensor:
    """Radians by which this layer rotates the followed token, [d_rotary/2]."""
    record = next(record for record in walk.run.positions if record.stack == walk.stack)
    windowed = walk.run.config.is_windowed(walk.layer) and walk.run.config.rotary_base_windowed is not None
    angles = record.angles(windowed)
    assert angles is not None
    return angles[walk.query].float()


def _bias(linear: nn.Linear, j: int) -> float:
    return 0.0 if linear.bias is None else float(linear.bias[j])


def _float_linear(linear: nn.Linear, x: Tensor) -> Tensor:
    bias = None if linear.bias is None else linear.bias.float()
    return nn.functional.linear(x, linear.weight.float(), bias)


def guesses(run: TraceRecord, query: int | None = None) -> tuple[LensGuess, ...]:
    """Logit lens: prediction of the final norm and the head from the stream after the embedding and every addition.

    query None is the last real token. Each guess has the most likely token, and the probability of the token that the model finally
    predicts. Only the last one is the model's output (nostalgebraist 2020). In post order the stream is already normed. Raises
    TextError for models without a head, IndexError, and Outdated after a training.
    """
    head = head_of(run.loaded)
    tokens = tokens_read(run)
    (position,) = checked_positions(tokens, None if query is None else [query])
    name, stack = run.config.stacks[-1][0], run.loaded.model.stacks[-1]
    sublayers = {"resid_mid": "attention", "resid_cross": "cross-attention", "resid_post": "MLP"}
    if run.config.parallel:
        sublayers = {"resid_post": "attention and MLP"}
    known = hook_points(run.loaded.model)
    places: list[tuple[str, int | None, str]] = [(f"{name}.blocks.0.hook_resid_pre", None, "embedding")]
    places += [
        (point, layer, sublayer)
        for layer in range(len(stack.blocks))
        for hook, sublayer in sublayers.items()
        if (point := f"{name}.blocks.{layer}.hook_{hook}") in known
    ]
    seen = run.forward.moments([point for point, _, _ in places], lambda _, x: x[run.index, position])
    with torch.inference_mode():
        streams = torch.stack([seen[point] for point, _, _ in places])  # [addition, d_model]
        scores = head(stack.norm(streams)[None])[0].float()
        may_follow = next_token_constraints(run.loaded, tokens, [position]) * len(scores)
        probabilities = allowed_scores(scores, may_follow).softmax(-1)  # [addition, vocab]
    run.forward.weights.check()  # a training may run at the same time
    best, ids = probabilities.max(-1)
    final = probabilities[:, ids[-1]]
    ranks = 1 + (probabilities > final[:, None]).sum(-1)
    strings = strings_of(run.loaded, ids.tolist())
    return tuple(
        LensGuess(point, layer, sublayer, *rest)
        for (point, layer, sublayer), *rest in zip(
            places, ids.tolist(), strings, best.tolist(), final.tolist(), ranks.tolist(), strict=True
        )
    )


SUBLAYERS = {"attn_out": "attention", "cross_out": "cross-attention", "mlp_out": "MLP"}  # hook -> name
SHARED_EXPERT = -1  # number of the shared expert, which all tokens take


@dataclass(frozen=True)
class WalkNumber:
    """One number of a walk: the walk, the step, and the index into that step's tensor."""

    stack: str
    layer: int
    query: int
    step: str
    index: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NormFacts:
    """One norm of a layer: its input and its parameters."""

    before: np.ndarray  # float32 [pos, d_model]
    weight: np.ndarray  # float32 [d_model]: γ
    bias: np.ndarray | None  # float32 [d_model]: β
    eps: float
    takes_mean: bool  # False: RMSNorm


@dataclass(frozen=True, eq=False)
class SiteWalk:
    """One attention of the layer: scores = (raw · scale + bias) / temperature, where reasons are 0."""

    site: str  # attn or cross_attn
    record: int  # index into the attention records of the run
    keys: np.ndarray  # float32 [kv_head, key, d_head]: k after RoPE
    scale: float
    temperature: float
    bias: np.ndarray | None  # float32 [head, key]: added by distance
    terms: dict[str, np.ndarray]  # float32 [head, key]: the terms of bias, if there is more than one (DeBERTa)
    reasons: np.ndarray  # uint8 [head or 1, key]: why a key is masked, as in rules.REASONS
    by_head: np.ndarray  # float32 [head, d_model]: output of each head


@dataclass(frozen=True, eq=False)
class LayerWalk:
    """A Walk as arrays, with all inputs that the app needs to recompute a changed number."""

    stack: str
    layer: int
    query: int
    values: dict[str, np.ndarray]  # float32, the steps of the Walk
    norms: dict[str, NormFacts]  # by step; of a norm after a sublayer, only the row of the followed token
    sites: tuple[SiteWalk, ...]
    start: dict[str, np.ndarray]  # token, type, position: float32 [d_model] each, in the order of their addition
    embed: np.ndarray  # float32 [d_model]: input of the first layer
    embed_normed: bool
    neurons: tuple[int, ...]  # those that write the longest vectors, the longest first
    neuron_lengths: tuple[float, ...]  # norm of the output of each for an activation of 1
    chosen: tuple[int, ...] = ()  # numbers of the experts in mlp.taken; EVERYONES for the one that all tokens take


@dataclass(frozen=True, eq=False)
class SublayerNorms:
    """Norms of the vectors that one sublayer adds to each token's stream."""

    layer: int
    sublayer: str  # attention, cross-attention, MLP
    lengths: np.ndarray  # float32 [pos]


def walk_facts(walk: Walk) -> LayerWalk:
    """Raises Outdated after a training."""
    parts, embed, is_normed = start(walk.run, walk.stack, walk.query)
    neurons, lengths = strongest_neurons(walk)
    return LayerWalk(
        stack=walk.stack,
        layer=walk.layer,
        query=walk.query,
        values={step: array(values) for step, values in walk.values.items()},
        norms={step: _norm_facts(walk, step) for step in walk.steps if step.endswith("norm")},
        sites=tuple(_site_walk(walk, site) for site in walk.inputs if site != "mlp"),
        start={name: array(vector) for name, vector in parts.items()},
        embed=array(embed),
        embed_normed=is_normed,
        neurons=tuple(neurons.tolist()),
        neuron_lengths=tuple(lengths.tolist()),
        chosen=tuple(SHARED_EXPERT if number is None else number for number in walk.chosen),
    )


def _norm_facts(walk: Walk, step: str) -> NormFacts:
    norm = norm_of(walk, step)
    before = walk.before_norm[step] if step.endswith(".norm") else walk.values[f"{step.rpartition('.')[0]}.out"][None]
    takes_mean = isinstance(norm, nn.LayerNorm)
    bias = array(norm.bias.detach()) if takes_mean and norm.bias is not None else None
    return NormFacts(array(before), array(norm.weight.detach()), bias, norm.eps, takes_mean)


def _site_walk(walk: Walk, site: str) -> SiteWalk:
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
        site=site,
        record=next(i for i, other in enumerate(walk.run.attention) if other.name == record.name),
        keys=array(walk.turned_keys[site]),
        scale=rule.scale,
        temperature=rule.temperature,
        bias=bias,
        terms=terms if len(terms) > 1 else {},
        reasons=reasons.cpu().numpy(),
        by_head=array(by_head(walk, site)),
    )


def start(run: TraceRecord, stack: str, query: int) -> tuple[dict[str, Tensor], Tensor, bool]:
    """Start of one token's residual stream, from a pass that ends after the embedding.

    Returns the vectors that are added (token, type, position, if the model has them), the input of the first layer, each [d_model],
    and whether it is normed. Raises IndexError for a position that the run does not have, KeyError for a stack, and Outdated after a training.
    """
    tokens = tokens_read(run, stack)
    checked_positions(tokens, [query])
    name = f"{stack}.embed"
    known = hook_points(run.loaded.model)
    points = [f"{name}.hook_{hook}" for hook in ("token", "position", "embed")]
    if points[-1] not in known:
        raise KeyError(f"no stack {stack!r}")
    seen = run.forward.moments(
        [point for point in points if point in known],
        lambda _, x: x[run.index if x.shape[0] > 1 else 0, query].float(),
    )
    names: list[str] = [name for name, _ in run.config.stacks]
    embedding = run.loaded.model.stacks[names.index(stack)].embed
    parts = {"token": seen[points[0]]}
    if embedding.token_type is not None:
        row = tokens.type_ids[query] if stack == "encoder" else 0
        parts["type"] = embedding.token_type.weight[row].detach().float()
    if points[1] in seen:
        parts["position"] = seen[points[1]]
    return parts, seen[points[2]], not isinstance(embedding.norm, nn.Identity)


def additions(run: TraceRecord, stack: str) -> tuple[SublayerNorms, ...]:
    """Norms of all additions to the residual stream of a stack, in the order of the pass, from the run's own record.

    Raises KeyError for a stack that the model does not have.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if (n_layers := layers.get(stack)) is None:
        raise KeyError(f"no stack {stack!r}")
    known = run.residual_norms
    return tuple(
        SublayerNorms(layer, name, array(known[point]))
        for layer in range(n_layers)
        for hook, name in SUBLAYERS.items()
        if (point := f"{stack}.blocks.{layer}.hook_{hook}") in known
    )


def by_head(walk: Walk, site: str) -> Tensor:
    """[head, d_model]: output of each head for the followed token. With W_O's bias they add up to attention's output."""
    attention = walk.block.get_submodule(site)
    assert isinstance(attention, Attention)
    z = walk.values[f"{site}.z"]  # [head, d_head]
    with torch.inference_mode():
        weight = attention.o.weight.float().unflatten(1, z.shape)  # [d_model, head, d_head]
        return torch.einsum("hj,dhj->hd", z, weight)


def strongest_neurons(walk: Walk, k: int = 10) -> tuple[Tensor, Tensor]:
    """The k neurons that write the longest vectors, |activation| · ‖W_down[:, neuron]‖, and ‖W_down[:, neuron]‖ of each.

    Both are empty for a mixture of experts.
    """
    mlp = mlp_of(walk.block)
    if mlp is None:
        return torch.zeros(0).long(), torch.zeros(0)
    with torch.inference_mode():
        act = walk.values["mlp.act"]
        lengths = mlp.down.weight.float().norm(dim=0)  # [d_ff]
        chosen = (act.abs() * lengths).topk(min(k, len(act))).indices
        return chosen, lengths[chosen]


CHOICE_BYTES = 8 + 4  # the expert's number and its weight
SCORE_BYTES = 3 * 4  # temporary, for each score: float32, its share, and the sort order


@dataclass(frozen=True, eq=False)
class Routing:
    """The choices of every router of one stack.

    A mixture's output is Σ weight · expert(x). The shared expert (`d_shared` of the config) is not in `chosen`.
    """

    stack: str
    layers: tuple[int, ...]  # first axis of the arrays; other layers may have an ordinary MLP
    n_experts: int
    chosen: np.ndarray  # int32 [layer, pos, choice], the expert with the largest weight first
    weights: np.ndarray  # float32 [layer, pos, choice]
    tokens: Tokens

    @property
    def load(self) -> np.ndarray:
        """Share of each expert in the choices of the text, [layer, expert] float32; 1/n for all n experts if balanced. Without padding."""
        chosen = self.chosen[:, ~np.array(self.tokens.padding)].reshape(len(self.layers), -1)
        counts = [np.bincount(layer, minlength=self.n_experts) for layer in chosen]
        return np.array(counts, np.float32) / np.float32(chosen.shape[1])

    def to_frame(self) -> dataframes.DataFrame:
        """A row for each choice: layer, position, token, expert, weight. Needs pandas."""
        n_layers, n, k = self.chosen.shape
        labels = [str(label) for label in self.tokens.labels]
        return dataframes.of_columns(
            {
                "layer": [layer for layer in self.layers for _ in range(n * k)],
                "pos": [i for _ in range(n_layers) for i in range(n) for _ in range(k)],
                "token": [label for _ in range(n_layers) for label in labels for _ in range(k)],
                "expert": self.chosen.flatten().tolist(),
                "weight": self.weights.flatten().tolist(),
            }
        )


def routing(run: TraceRecord, stack: str | None = None) -> Routing:
    """The experts of every token in every layer of a stack (None: the last one with experts), from one more pass with the run's edits.

    The weights are the final factors, after the router's softmax, sigmoid or scale (Shazeer et al. 2017, arXiv:1701.06538; the
    config's `router`). Raises TextError for a model or a stack without experts, TooLarge with the bytes needed and free, and Outdated
    after a training.
    """
    title = run.loaded.spec.title
    run.require_model("the choice of its routers")
    expert_layers = run.config.expert_layers
    if not expert_layers:
        raise TextError(f"{title} has one MLP in each layer, which all tokens take, and no experts to choose between.")
    stack = list(expert_layers)[-1] if stack is None else stack
    if stack not in expert_layers:
        raise TextError(f"{title} has no experts in a stack {stack!r}. It has some in: {', '.join(expert_layers)}.")
    layers, config, tokens = expert_layers[stack], run.config, tokens_read(run, stack)
    n, k = len(tokens), config.n_experts_per_token
    needed = len(layers) * n * k * CHOICE_BYTES + n * config.n_experts * SCORE_BYTES
    device.check_fits_or_retry(needed, run.loaded.device, f"The experts of {n:,} tokens in {len(layers)} layers")
    mixtures: dict[str, MixtureOfExperts] = {}
    for layer in layers:
        mixture = run.loaded.model.get_submodule(f"{stack}.blocks.{layer}.mlp")
        assert isinstance(mixture, MixtureOfExperts)
        mixtures[f"{stack}.blocks.{layer}.mlp.hook_router"] = mixture

    chosen: dict[str, Tensor] = {}

    def choose(point: str, scores: Tensor) -> Tensor:
        """Weights [pos, choice] of one layer, the largest first, from scores [batch, pos, expert]."""
        weights, numbers = mixtures[point].route(scores[run.index])
        weights, order = weights.float().sort(dim=-1, descending=True, stable=True)
        chosen[point] = numbers.gather(-1, order)
        return weights

    weights = run.forward.moments(mixtures, choose)
    return Routing(
        stack=stack,
        layers=layers,
        n_experts=config.n_experts,
        chosen=torch.stack([chosen[point] for point in mixtures]).int().cpu().numpy(),
        weights=torch.stack([weights[point] for point in mixtures]).cpu().numpy(),
        tokens=tokens,
    )
