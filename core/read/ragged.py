"""Stacking of layers with different numbers of heads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def stacked(layers: Sequence[Tensor], nothing: float) -> Tensor:
    """[head, …] of each layer as [layer, head, …], padded with `nothing` for heads that a layer does not have."""
    most = max(len(layer) for layer in layers)
    return torch.stack(
        [torch.cat([layer, layer.new_full((most - len(layer), *layer.shape[1:]), nothing)]) for layer in layers]
    )
