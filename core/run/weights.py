"""Fingerprint of the weights used in a run, to reject later queries after the weights have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..errors import Outdated
from ..model.transformer import Transformer

SAMPLED = 16  # numbers of a weight that are compared


@dataclass(frozen=True, eq=False, repr=False)
class WeightsMark:
    """Fingerprint of a model's weights. `version` increases when training changes them in place."""

    model: Transformer
    version: int
    sample: Tensor

    @property
    def holds(self) -> bool:
        """True if the model's weights have not changed since."""
        if _version(self.model) != self.version:
            return False
        return _same_bits(_sample(self.model), self.sample)

    def check(self) -> None:
        """Raises Outdated if the weights have changed."""
        if not self.holds:
            raise Outdated(
                "The model has been trained since this run, so what its weights then would give is no longer known. "
                "What the run holds can still be read; run the text again for the rest."
            )


def mark_weights(model: Transformer) -> WeightsMark:
    return WeightsMark(model, _version(model), _sample(model))


def _version(model: Transformer) -> int:
    """Number of in-place writes to the weights, by torch's counters. Inference tensors have none; they are never trained."""
    parameters = _parameters.get(model)
    if parameters is None:  # walking all modules takes as long as a small layer does
        parameters = _parameters[model] = tuple(p for p in model.parameters() if not p.is_inference())
    return sum(p._version for p in parameters)


_parameters: WeakKeyDictionary[Transformer, Sequence[Tensor]] = WeakKeyDictionary()


def _sample(model: Transformer) -> Tensor:
    """A few values, because fused optimisers and replaced weights do not change torch's counters."""
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
    """Bitwise equality, so that NaN equals itself; True for fake tensors, which have no values."""
    if type(a) is not Tensor or a.is_meta:
        return True
    if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
        return False
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
