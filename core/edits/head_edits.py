"""Edits of head outputs (zero ablation, mean ablation, scaling) and of scores before the softmax."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from ..model.hooks import Hook
from ..model.rules import ScoreRule
from ..model.transformer import Transformer
from .edit import Edit, attentions_of, check_head, rule_hooks
from .fields import AnyLayer, AnySite, AnyStack, Number, OneHead, OneLayer, OneSite, OneStack, Word


@dataclass(frozen=True, repr=False)
class Ablate(Edit, word="ablate"):
    """Ablate one head: its output z becomes zero, so that it adds nothing to the residual stream.

    With to="mean" its output at every position becomes the mean over the tokens of the text, without padding. In a decoder that mean
    depends on later tokens.
    """

    stack: OneStack
    layer: OneLayer
    head: OneHead
    site: OneSite = "attn"
    to: Annotated[Literal["zero", "mean"], Word({"zero": "zero", "mean": "mean"})] = "zero"

    @property
    def sees_ahead(self) -> bool:
        return self.to == "mean"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        (attention,) = attentions_of(model, self.stack, self.layer, self.site)
        if self.to == "zero":
            return {f"{attention}.hook_z": _of_head(self.head, torch.zeros_like)}
        # The real tokens [batch, query] of the mask of this layer's self-attention. Passes in several threads may share the edit,
        # each with its own batch.
        batch = threading.local()

        def read_mask(rule: ScoreRule) -> None:
            batch.real = rule.mask.keep

        def mean(z: Tensor) -> Tensor:  # [batch, query, d_head]
            if batch.real is None:
                return z.mean(1, keepdim=True)
            counted = batch.real[..., None].to(z.dtype)
            return (z * counted).sum(1, keepdim=True) / counted.sum(1, keepdim=True)

        return {
            f"{self.stack}.blocks.{self.layer}.attn.hook_rule": read_mask,
            f"{attention}.hook_z": _of_head(self.head, mean),
        }


@dataclass(frozen=True, repr=False)
class ScaleHead(Edit, word="scale"):
    """Scale the output of one head by `factor`: 0 is zero ablation, 2 doubles it, -1 inverts it."""

    factor: Annotated[float, Number()]
    stack: OneStack
    layer: OneLayer
    head: OneHead
    site: OneSite = "attn"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        (attention,) = attentions_of(model, self.stack, self.layer, self.site)
        return {f"{attention}.hook_z": _of_head(self.head, lambda z: z * self.factor)}


@dataclass(frozen=True, repr=False)
class NoScale(Edit, word="noscale"):
    """Remove the factor 1/√d_head, so that scores grow with d_head and the softmax saturates. None means all."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, scale=1.0))


@dataclass(frozen=True, repr=False)
class Temperature(Edit, word="temperature"):
    """Divide the scores by `value` before the softmax: below 1 sharpens, above 1 flattens. None means all."""

    value: Annotated[float, Number(above=0)]
    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, temperature=rule.temperature * self.value))


def _of_head(head: int, change: Callable[[Tensor], Tensor]) -> Hook:
    """A hook of z [batch, head, query, d_head] that changes one head's [batch, query, d_head]."""

    def edit(z: Tensor) -> Tensor:
        changed = change(z[:, head])
        z = z.clone()
        z[:, head] = changed
        return z

    return edit
