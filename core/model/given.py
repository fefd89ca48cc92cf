"""Given: the mask argument of a fused-attention call: a mask, numbers to add to the scores, or both in one tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

NEVER = float("-inf")
FAR = 4096.0  # least magnitude of numbers that hide; the smallest in use is 10,000


@dataclass(frozen=True, eq=False)
class Given:
    """The mask argument of one call, with its original axes.

    values [..., head or 1, query or 1, key or 1] are bool, True for visible cells, or numbers that are added to the scores. Their
    leading axes broadcast to `leading`, the batch axes of the call. Numbers up to `hidden_from` hide cells (hiding_numbers).
    """

    values: Tensor
    leading: tuple[int, ...]
    hidden_from: float

    @property
    def is_soft(self) -> bool:
        """True if finite numbers hide cells, so that a fully hidden row still has weights."""
        return self.hidden_from > NEVER

    @property
    def heads_differ(self) -> bool:
        return self.values.shape[-3] > 1

    @cached_property
    def hides(self) -> bool:
        """True if a cell is hidden."""
        return not bool(self._seen(self.values).all())

    @cached_property
    def adds(self) -> bool:
        """True if a number other than 0 is added to a visible cell."""
        return self.values.dtype != torch.bool and bool((self._seen(self.values) & (self.values != 0)).any())

    def allowed(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query or 1, key or 1] bool for these positions: True for visible cells."""
        return self._seen(self.taken(queries, keys))

    def added(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the numbers added to visible cells, and 0 for hidden ones."""
        taken = self.taken(queries, keys)
        return taken.masked_fill(~self._seen(taken), 0.0)

    def hiding(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape, float32: the numbers added to hidden cells, and 0 for visible ones."""
        taken = self.taken(queries, keys)
        numbers = taken.masked_fill(self._seen(taken), 0.0)
        if numbers.dtype == torch.float64:  # its lowest number is finite and must remain finite
            numbers = numbers.clamp(min=torch.finfo(torch.float32).min).where(numbers.isfinite(), numbers)
        return numbers.float()

    def taken(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the original values."""
        values = tile(self.values, queries, keys)
        if values.shape[:-3].numel() == 1:
            return values.reshape(1, *values.shape[-3:])
        return values.expand(*self.leading, *values.shape[-3:]).flatten(0, len(self.leading) - 1)

    def of(self, text: int) -> Given:
        """The same for one text of the batch."""
        return replace(self, values=picked(self.values, self.leading, text)[None], leading=(1,))

    def _seen(self, values: Tensor) -> Tensor:
        # NaN does not hide. It reaches the softmax, and its row becomes NaN.
        return values if values.dtype == torch.bool else ~(values <= self.hidden_from)


def given(values: Tensor, leading: tuple[int, ...]) -> Given:
    """The mask argument of one call, after spread()."""
    return Given(values, leading, NEVER if values.dtype == torch.bool else hiding_numbers(values))


def spread(mask: Tensor) -> Tensor:
    """A call's mask [..., query or 1, key or 1] with all axes, and size 1 for axes that come from expand()."""
    mask = mask if mask.ndim > 2 else mask.reshape((1,) * (3 - mask.ndim) + tuple(mask.shape))
    for axis, (size, stride) in enumerate(zip(mask.shape, mask.stride(), strict=True)):
        mask = mask.narrow(axis, 0, 1) if stride == 0 and size > 1 else mask
    return mask


def hiding_numbers(values: Tensor) -> float:
    """The largest number that hides a cell; −inf if only −inf does.

    A numeric mask has −1e4, −1e9 or the lowest number of a dtype in hidden cells, often plus a bias, added twice (for padding in the
    future), or rounded (−9,984 in bfloat16). So there is no fixed limit. The rule: numbers hide from minus the first power of two, at
    least 4,096, such that no number of the mask is between it and its half. A bias has no such gap: ALiBi, which grows step by step,
    reaches −4,096 after thousands of tokens and is not a mask.
    """
    lowest = torch.where(values.isfinite(), values, 0.0).amin().item() if values.numel() else 0.0
    limit = FAR
    while lowest <= -limit:
        if not ((values > -limit) & (values <= -limit / 2)).any():
            return -limit
        limit *= 2
    return NEVER


def picked(x: Tensor, leading: tuple[int, ...], text: int) -> Tensor:
    """[..., a, b, c] -> [a, b, c]: x of one text of the batch. Leading axes of x broadcast to those of the call."""
    indices: list[int] = []
    for n in reversed(leading):
        text, index = divmod(text, n)
        indices.insert(0, index)
    for index in indices[len(indices) - (x.ndim - 3) :]:
        x = x[index if x.shape[0] > 1 else 0]
    return x


def tile(x: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """These rows and columns of x [..., query or 1, key or 1], which broadcasts."""
    x = x if x.shape[-2] == 1 else x[..., queries, :]
    return x if x.shape[-1] == 1 else x[..., keys]
