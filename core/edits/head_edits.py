"""Edits of what heads give: silenced, set to their mean, made louder; and of the scores before the softmax."""

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
from .edit import Edit, attentions_of, check_head
from .fields import AnyLayer, AnySite, AnyStack, Number, OneHead, OneLayer, OneSite, OneStack, Word


@dataclass(frozen=True, repr=False)
class Ablate(Edit, word="ablate"):
    """Silence one head: its output z becomes zero, so that it writes nothing into the residual stream.

    With to="mean" each of its outputs becomes their mean over the tokens of the text: the head still writes, and the same
    everywhere. In a decoder that mean knows the tokens to come. Padding is not counted.
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
        # The real tokens [batch, query], as the self-attention of this layer has just seen them. Passes of several threads
        # may share the edit, each with a batch of its own.
        seen = threading.local()

        def look(rule: ScoreRule) -> None:
            seen.real = rule.mask.keep

        def mean(z: Tensor) -> Tensor:  # [batch, query, d_head]
            if seen.real is None:
                return z.mean(1, keepdim=True)
            counted = seen.real[..., None].to(z.dtype)
            return (z * counted).sum(1, keepdim=True) / counted.sum(1, keepdim=True)

        return {
            f"{self.stack}.blocks.{self.layer}.attn.hook_rule": look,
            f"{attention}.hook_z": _of_head(self.head, mean),
        }


@dataclass(frozen=True, repr=False)
class ScaleHead(Edit, word="scale"):
    """Multiply what one head gives by `factor`: 0 silences it, 2 makes it twice as loud, -1 turns it round."""

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
    """Leave out the 1/√d_head, so that scores grow with d_head and the softmax saturates. None means everywhere."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def unscaled(rule: ScoreRule) -> ScoreRule:
            return replace(rule, scale=1.0)

        return {f"{name}.hook_rule": unscaled for name in attentions_of(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True, repr=False)
class Temperature(Edit, word="temperature"):
    """Divide the scores by `value` before the softmax: below 1 sharper, above 1 flatter. None means everywhere."""

    value: Annotated[float, Number(above=0)]
    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def warmer(rule: ScoreRule) -> ScoreRule:
            return replace(rule, temperature=rule.temperature * self.value)

        return {f"{name}.hook_rule": warmer for name in attentions_of(model, self.stack, self.layer, self.site)}


def _of_head(head: int, change: Callable[[Tensor], Tensor]) -> Hook:
    """A hook of z [batch, head, query, d_head] that changes one head's [batch, query, d_head]."""

    def edit(z: Tensor) -> Tensor:
        changed = change(z[:, head])
        z = z.clone()
        z[:, head] = changed
        return z

    return edit
