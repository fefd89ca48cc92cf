"""largest(): adaptive max pooling along the last axis."""

from __future__ import annotations

import torch
from torch import Tensor


def largest(x: Tensor, n: int) -> Tensor:
    """[..., m] -> [..., n]: the maximum of each of n patches that cover the last axis, from ⌊i·m/n⌋ to ⌈(i + 1)·m/n⌉.

    The patches are those of torch's adaptive_max_pool1d, which is wrong on Apple's devices if n does not divide m
    (github.com/pytorch/pytorch/issues/190064), and slower on a CPU if it does.
    """
    m = x.shape[-1]
    if m % n == 0:
        return x.unflatten(-1, (n, -1)).amax(-1)
    return torch.stack([x[..., i * m // n : -(-(i + 1) * m // n)].amax(-1) for i in range(n)], dim=-1)
