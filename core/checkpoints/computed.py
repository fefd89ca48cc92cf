"""Tensors that no file holds as they are used: an adapter merged into weights, and rounded numbers written out in full.

Each is a Stored like any other, whose numbers are computed from others when they are read: one tensor at a time is in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from .files import Stored


@dataclass(frozen=True, eq=False)
class Computed:
    """The handle of a tensor that is computed: safetensors' handle has the same method."""

    make: Callable[[], Tensor]

    def get_tensor(self, name: str) -> Tensor:
        """[shape as the Stored says], in float32."""
        return self.make()


def computed(name: str, file: str, shape: tuple[int, ...], make: Callable[[], Tensor]) -> Stored:
    """A tensor of that name and shape in float32. `file`, the one that its numbers come from, is for sentences."""
    return Stored(name, file, shape, "F32", Computed(make))
