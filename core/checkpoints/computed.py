"""Lazy tensors: computed from stored ones when they are read, one at a time (dequantized weights, merged adapters)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from .files import Stored


@dataclass(frozen=True, eq=False)
class LazyTensor:
    """Handle of a computed tensor, with the method of safetensors' handles."""

    make: Callable[[], Tensor]

    def get_tensor(self, name: str) -> Tensor:
        """The tensor in float32, in the shape of its Stored."""
        return self.make()


def lazy_tensor(name: str, file: str, shape: tuple[int, ...], make: Callable[[], Tensor]) -> Stored:
    """A computed tensor in float32. `file` is the origin of its numbers, for messages."""
    return Stored(name, file, shape, "F32", LazyTensor(make))
