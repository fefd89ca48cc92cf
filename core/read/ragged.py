"""One tensor over all layers, where layers may have different numbers of heads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def stacked(layers: Sequence[Tensor], nothing: float) -> Tensor:
    """[head, …] of each layer as [layer, head, …], with `nothing` in the place of heads that a layer does not have."""
    most = max(len(layer) for layer in layers)
    return torch.stack(
        [
            torch.cat([one, one.new_full((most - len(one), *one.shape[1:]), nothing)]) if len(one) < most else one
            for one in layers
        ]
    )
