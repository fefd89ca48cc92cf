"""The surroundings of a walk: how a token's stream begins, what every sublayer adds to it, and how much each part of a sublayer wrote."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..model.hooks import hook_points
from ..model.transformer import Attention
from ..run.predictions import checked_positions
from ..run.trace import Trace
from .layer_walk import Walk, mlp_of

SUBLAYERS = {
    "attn_out": "attention",
    "cross_out": "cross-attention",
    "mlp_out": "MLP",
}  # the point -> what it is called


@dataclass(frozen=True, eq=False)
class Start:
    """How one token's stream begins: the vectors that are added, and what comes of it (normed, where the model norms it)."""

    parts: tuple[tuple[str, Tensor], ...]  # token, type, position, as the model has them: [d_model] each
    embed: Tensor  # [d_model]
    is_normed: bool


@dataclass(frozen=True, eq=False)
class Added:
    """How long a vector one sublayer adds to each token's stream."""

    layer: int
    sublayer: str  # attention, cross-attention, MLP
    lengths: Tensor  # [pos] float32


@dataclass(frozen=True, eq=False)
class Neurons:
    """The neurons that write the longest vectors for the followed token, the longest first."""

    indices: Tensor  # [neuron]
    activations: Tensor  # [neuron]: after the activation, and the product where the MLP is gated
    lengths: Tensor  # [neuron]: ‖W_down[:, neuron]‖, what one unit of it writes


def start(run: Trace, stack: str, query: int) -> Start:
    """The vectors whose sum the first layer is given, from a pass that ends after the embedding.

    Raises IndexError for a position that the run does not have, KeyError for a stack, and Outdated after a training.
    """
    tokens = run.source if stack == "encoder" or run.target is None else run.target
    checked_positions(tokens, [query])
    name = f"{stack}.embed"
    known = hook_points(run.loaded.model)
    points = [f"{name}.hook_{what}" for what in ("token", "position", "embed")]
    if points[-1] not in known:
        raise KeyError(f"no stack {stack!r}")
    seen = run.forward.moments(
        [point for point in points if point in known],
        lambda _, x: x[run.index if x.shape[0] > 1 else 0, query].float(),
    )
    names: list[str] = [name for name, _ in run.config.stacks]
    embedding = run.loaded.model.stacks[names.index(stack)].embed
    parts = [("token", seen[points[0]])]
    if embedding.token_type is not None:
        row = tokens.type_ids[query] if stack == "encoder" else 0
        parts.append(("type", embedding.token_type.weight[row].detach().float()))
    if points[1] in seen:
        parts.append(("position", seen[points[1]]))
    return Start(tuple(parts), seen[points[2]], not isinstance(embedding.norm, nn.Identity))


def additions(run: Trace, stack: str) -> tuple[Added, ...]:
    """The vector that every sublayer of a stack adds to every token, in the order of the pass: its length, which every run keeps.

    Raises KeyError for a stack that the model does not have.
    """
    layers: dict[str, int] = dict(run.config.stacks)
    if (n_layers := layers.get(stack)) is None:
        raise KeyError(f"no stack {stack!r}")
    known = run.residual_norms
    places = [(layer, what) for layer in range(n_layers) for what in SUBLAYERS]
    points = {point: place for place in places if (point := f"{stack}.blocks.{place[0]}.hook_{place[1]}") in known}
    return tuple(Added(layer, SUBLAYERS[what], known[point].float()) for point, (layer, what) in points.items())


def by_head(walk: Walk, site: str) -> Tensor:
    """[head, d_model]: what each head writes for the followed token. Their sum and W_O's bias is what attention writes."""
    attention = walk.block.get_submodule(site)
    assert isinstance(attention, Attention)
    z = walk.values[f"{site}.z"]  # [head, d_head]
    with torch.inference_mode():
        weight = attention.o.weight.float().unflatten(1, z.shape)  # [d_model, head, d_head]
        return torch.einsum("hj,dhj->hd", z, weight)


def loudest(walk: Walk, k: int = 10) -> Neurons:
    """The k neurons that write the longest vectors: |activation| · ‖W_down[:, neuron]‖. None where the layer has a mixture of experts."""
    mlp = mlp_of(walk.block)
    if mlp is None:
        none = torch.zeros(0)
        return Neurons(none.long(), none, none)
    with torch.inference_mode():
        act = walk.values["mlp.act"]
        lengths = mlp.down.weight.float().norm(dim=0)  # [d_ff]
        chosen = (act.abs() * lengths).topk(min(k, len(act))).indices
        return Neurons(chosen, act[chosen], lengths[chosen])
