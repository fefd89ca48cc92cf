"""A walk as arrays for the app, with the start of the residual stream and the norms of all additions to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..device import array
from ..model.attention import Attention
from ..model.hooks import hook_points
from ..run.predictions import checked_positions
from ..run.trace import Trace
from .conditional_loss import tokens_read
from .layer_walk import Walk, mlp_of, norm_of

SUBLAYERS = {"attn_out": "attention", "cross_out": "cross-attention", "mlp_out": "MLP"}  # hook -> name
EVERYONES = -1  # number of the shared expert, which all tokens take


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
class WalkFacts:
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
class Added:
    """Norms of the vectors that one sublayer adds to each token's stream."""

    layer: int
    sublayer: str  # attention, cross-attention, MLP
    lengths: np.ndarray  # float32 [pos]


def walk_facts(walk: Walk) -> WalkFacts:
    """Raises Outdated after a training."""
    parts, embed, is_normed = start(walk.run, walk.stack, walk.query)
    neurons, lengths = loudest(walk)
    return WalkFacts(
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
        chosen=tuple(EVERYONES if number is None else number for number in walk.chosen),
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


def start(run: Trace, stack: str, query: int) -> tuple[dict[str, Tensor], Tensor, bool]:
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


def additions(run: Trace, stack: str) -> tuple[Added, ...]:
    """Norms of all additions to the residual stream of a stack, in the order of the pass, from the run's own record.

    Raises KeyError for a stack that the model does not have.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if (n_layers := layers.get(stack)) is None:
        raise KeyError(f"no stack {stack!r}")
    known = run.residual_norms
    return tuple(
        Added(layer, name, array(known[point]))
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


def loudest(walk: Walk, k: int = 10) -> tuple[Tensor, Tensor]:
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
