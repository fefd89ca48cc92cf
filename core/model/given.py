"""Given: the mask argument of a caller of the fused kernel: a mask, numbers to add to the scores, or both in one tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

NEVER = float("-inf")
FAR = 4096.0  # every mask that is written as numbers goes beyond it: 10,000 is the smallest in use


@dataclass(frozen=True, eq=False)
class Given:
    """The mask argument of one call, with its axes as they were handed in.

    values [..., head or 1, query or 1, key or 1] are bool, True where a query may look, or numbers that are added to the
    scores. Their leading axes broadcast to `leading`, those of the call, which together are its batch. Numbers up to
    `hidden_from` hide (hiding_numbers).
    """

    values: Tensor
    leading: tuple[int, ...]
    hidden_from: float

    @property
    def is_soft(self) -> bool:
        """Whether some cells are hidden by finite numbers: a row in which nothing else is left then still has weights."""
        return self.hidden_from > NEVER

    @property
    def heads_differ(self) -> bool:
        return self.values.shape[-3] > 1

    @cached_property
    def hides(self) -> bool:
        """Whether there is a hidden cell."""
        return not bool(self._seen(self.values).all())

    @cached_property
    def adds(self) -> bool:
        """Whether there is a number other than 0 on a cell that may be looked at."""
        return self.values.dtype != torch.bool and bool((self._seen(self.values) & (self.values != 0)).any())

    def allowed(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query or 1, key or 1] bool for the positions asked for: True where the query may look."""
        return self._seen(self.taken(queries, keys))

    def added(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the numbers added where the query may look, and 0 where it may not."""
        taken = self.taken(queries, keys)
        return taken.masked_fill(~self._seen(taken), 0.0)

    def hiding(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape, float32: the numbers of a mask that hide, and 0 where the query may look."""
        taken = self.taken(queries, keys)
        numbers = taken.masked_fill(self._seen(taken), 0.0)
        if numbers.dtype == torch.float64:  # whose lowest is finite, and stays so
            numbers = numbers.clamp(min=torch.finfo(torch.float32).min).where(numbers.isfinite(), numbers)
        return numbers.float()

    def taken(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The same shape: the values as they were handed in."""
        values = tile(self.values, queries, keys)
        if values.shape[:-3].numel() == 1:
            return values.reshape(1, *values.shape[-3:])
        return values.expand(*self.leading, *values.shape[-3:]).flatten(0, len(self.leading) - 1)

    def of(self, text: int) -> Given:
        """The same for one text of the batch."""
        return replace(self, values=picked(self.values, self.leading, text)[None], leading=(1,))

    def _seen(self, values: Tensor) -> Tensor:
        # NaN is not hidden: it reaches the softmax, and its row becomes NaN.
        return values if values.dtype == torch.bool else ~(values <= self.hidden_from)


def given(values: Tensor, leading: tuple[int, ...]) -> Given:
    """The mask argument of one call, from spread() of it."""
    return Given(values, leading, NEVER if values.dtype == torch.bool else hiding_numbers(values))


def spread(mask: Tensor) -> Tensor:
    """A call's mask [..., query or 1, key or 1] with the axes that it lacks, and without the copies that expand() only pretends."""
    mask = mask if mask.ndim > 2 else mask.reshape((1,) * (3 - mask.ndim) + tuple(mask.shape))
    for axis, (size, stride) in enumerate(zip(mask.shape, mask.stride(), strict=True)):
        mask = mask.narrow(axis, 0, 1) if stride == 0 and size > 1 else mask
    return mask


def hiding_numbers(values: Tensor) -> float:
    """The number from which on downwards a mask's numbers hide their cells; −inf where only −inf does.

    A mask that is written as numbers has −1e4, −1e9 or the lowest of a dtype on its hidden cells, often with a bias added
    to it, or twice over (a future that is padding), or rounded (−9,984 in bfloat16). So no single number is the limit. The
    rule: numbers hide from the first power of two, 4,096 or more, below which the mask leaves a gap, with none between
    it and its half. A bias has no such gap: ALiBi, which grows by the step, would reach −4,096 after thousands of tokens
    and still be no mask.
    """
    lowest = torch.where(values.isfinite(), values, 0.0).amin().item() if values.numel() else 0.0
    limit = FAR
    while lowest <= -limit:
        if not ((values > -limit) & (values <= -limit / 2)).any():
            return -limit
        limit *= 2
    return NEVER


def picked(x: Tensor, leading: tuple[int, ...], text: int) -> Tensor:
    """[..., a, b, c] -> [a, b, c]: the part of x for one text of the batch; its leading axes broadcast to those of the call."""
    places: list[int] = []
    for n in reversed(leading):
        text, place = divmod(text, n)
        places.insert(0, place)
    own = x.ndim - 3
    for place in places[len(places) - own :]:
        x = x[place if x.shape[0] > 1 else 0]
    return x


def tile(x: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The asked-for rows and columns of x [..., query or 1, key or 1], which broadcasts."""
    x = x if x.shape[-2] == 1 else x[..., queries, :]
    return x if x.shape[-1] == 1 else x[..., keys]
