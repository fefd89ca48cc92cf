"""Edits of a run: frozen, hashable records that say what to change, and the hooks that change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from .errors import Refused
from .hooks import Hook
from .model import Attention, Transformer
from .rules import MaskEdit, ScoreRule

StackName = Literal["encoder", "decoder"]
Site = Literal["attn", "cross_attn"]


class InterventionError(Refused):
    """An edit of a layer, head or cell that the model does not have; says which there are."""


@dataclass(frozen=True)
class Ablate:
    """Silence one head: its output z becomes zero, so that it writes nothing into the residual stream."""

    stack: StackName
    layer: int
    head: int
    site: Site = "attn"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        _check_head(model, self.head)

        def zero(z: Tensor) -> Tensor:
            z = z.clone()
            z[:, self.head] = 0
            return z

        return {f"{name}.hook_z": zero for name in _attentions(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True)
class EditMask:
    """Let one query look at one key, or forbid it, in one head or (head None) in all of them."""

    stack: StackName
    layer: int
    query: int
    key: int
    allowed: bool
    head: int | None = None
    site: Site = "attn"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        if self.head is not None:
            _check_head(model, self.head)

        def edit(rule: ScoreRule) -> ScoreRule:
            for name, value, n in (("query", self.query, rule.mask.n_query), ("key", self.key, rule.mask.n_key)):
                if not 0 <= value < n:
                    raise InterventionError(
                        f"There is no {name} {value} to edit: this text has positions 0 to {n - 1}."
                    )
            cell = MaskEdit(self.query, self.key, self.allowed, self.head)
            return replace(rule, mask=replace(rule.mask, edits=(*rule.mask.edits, cell)))

        return {f"{name}.hook_rule": edit for name in _attentions(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True)
class DropCausalMask:
    """Let every query of the decoder look at the future as well, in one layer or (None) in all."""

    layer: int | None = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        if model.decoder is None:
            raise InterventionError("This model is an encoder: it has no causal mask to drop.")

        def free(rule: ScoreRule) -> ScoreRule:
            return replace(rule, mask=replace(rule.mask, causal=False))

        return {f"{name}.hook_rule": free for name in _attentions(model, "decoder", self.layer, "attn")}


@dataclass(frozen=True)
class NoScale:
    """Leave out the 1/√d_head, so that scores grow with d_head and the softmax saturates. None means everywhere."""

    stack: StackName | None = None
    layer: int | None = None
    site: Site | None = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def unscaled(rule: ScoreRule) -> ScoreRule:
            return replace(rule, scale=1.0)

        return {f"{name}.hook_rule": unscaled for name in _attentions(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True)
class Temperature:
    """Divide the scores by `value` before the softmax: below 1 sharper, above 1 flatter. None means everywhere."""

    value: float
    stack: StackName | None = None
    layer: int | None = None
    site: Site | None = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        if not 0 < self.value < float("inf"):
            raise InterventionError(f"A temperature must be above 0 and finite; {self.value} is not. Try 0.5 or 2.")

        def warmer(rule: ScoreRule) -> ScoreRule:
            return replace(rule, temperature=rule.temperature * self.value)

        return {f"{name}.hook_rule": warmer for name in _attentions(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True)
class DropPositions:
    """Take the order of the tokens away from one stack or (None) from all; masks stay as they are.

    Learned and sinusoidal vectors are not added; rotary, ALiBi and relative positions all become 0, which leaves no
    distance between any two tokens.
    """

    stack: StackName | None = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        hooks: dict[str, Hook] = {}
        for stack in _stacks(model, self.stack):
            if model.config.has_position_table:
                hooks[f"{stack}.embed.hook_position"] = torch.zeros_like
            else:
                hooks[f"{stack}.hook_positions"] = torch.zeros_like
        return hooks


@dataclass(frozen=True)
class ShufflePositions:
    """Deal the positions out in another order, the same for every text of the batch; masks stay as they are."""

    seed: int = 0
    stack: StackName | None = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def shuffle(positions: Tensor) -> Tensor:  # [batch, pos]
            generator = torch.Generator().manual_seed(self.seed)
            order = torch.randperm(positions.shape[-1], generator=generator).to(positions.device)
            return positions[:, order]

        return {f"{stack}.hook_positions": shuffle for stack in _stacks(model, self.stack)}


Intervention = Ablate | EditMask | DropCausalMask | NoScale | Temperature | DropPositions | ShufflePositions


def _stacks(model: Transformer, stack: StackName | None) -> list[str]:
    names = [name for name, _ in model.config.stacks]
    if stack is not None and stack not in names:
        raise InterventionError(f"This model has no {stack}; it has: {', '.join(names)}.")
    return names if stack is None else [stack]


def _attentions(model: Transformer, stack: StackName | None, layer: int | None, site: Site | None) -> list[str]:
    """The module paths of the attentions that are meant; at least one, or an InterventionError."""
    prefixes = tuple(f"{name}." for name in _stacks(model, stack))
    found = []
    for name, module in model.named_modules():
        if isinstance(module, Attention) and name.startswith(prefixes):
            _, _, i, its_site = name.split(".")
            if layer in (None, int(i)) and site in (None, its_site):
                found.append(name)
    if not found:
        layers = ", ".join(f"{name} layers 0 to {n - 1}" for name, n in model.config.stacks)
        raise InterventionError(
            f"There is no {site or 'attention'} in {stack or 'any'} layer {layer}; this model has {layers}."
        )
    return found


def _check_head(model: Transformer, head: int) -> None:
    if not 0 <= head < model.config.n_heads:
        raise InterventionError(f"There is no head {head}: this model's heads are 0 to {model.config.n_heads - 1}.")
