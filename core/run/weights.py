"""Which weights a run is of: a mark taken when it ran, and a refusal of what other weights would make wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..errors import Outdated
from ..model.transformer import Transformer

SAMPLED = 16  # numbers of a weight that are looked at as well


@dataclass(frozen=True, eq=False, repr=False)
class WeightsMark:
    """The weights of a model at one moment. `version` rises whenever a training changes them in place."""

    model: Transformer
    version: int
    sample: Tensor

    @property
    def holds(self) -> bool:
        """Whether the model still has the weights that the mark was taken of."""
        if _version(self.model) != self.version:
            return False
        return _same_bits(_sample(self.model), self.sample)

    def check(self) -> None:
        """Raises Outdated where the weights have changed."""
        if not self.holds:
            raise Outdated(
                "The model has been trained since this run, so what its weights then would give is no longer known. "
                "What the run holds can still be read; run the text again for the rest."
            )


def mark_weights(model: Transformer) -> WeightsMark:
    return WeightsMark(model, _version(model), _sample(model))


def _version(model: Transformer) -> int:
    """How often the weights were written in place, by torch's own counters. Inference tensors have none: nothing trains them."""
    parameters = _parameters.get(model)
    if parameters is None:  # walking all modules takes as long as a small layer does
        parameters = _parameters[model] = tuple(p for p in model.parameters() if not p.is_inference())
    return sum(p._version for p in parameters)


_parameters: WeakKeyDictionary[Transformer, Sequence[Tensor]] = WeakKeyDictionary()


def _sample(model: Transformer) -> Tensor:
    """A few of the numbers themselves: torch's fused optimisers, and weights that are put in others' place, move no counter."""
    weights = []
    for stack, n in model.config.stacks:
        for layer in {0, n - 1}:
            mlp = "mlp.router" if model.config.has_experts(layer) else "mlp.down"
            weights += [model.get_parameter(f"{stack}.blocks.{layer}.{name}.weight") for name in ("attn.q", mlp)]
    if model.head is not None:
        weights.append(model.get_parameter("head.unembed.weight"))
    with torch.inference_mode():
        return torch.cat([weight[0, :SAMPLED] for weight in weights])


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """As bits, since a weight that is no number is not equal to itself. Tensors that are only traced have no numbers."""
    if type(a) is not Tensor or a.is_meta:
        return True
    if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
        return False
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
