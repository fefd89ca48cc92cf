"""Edits of the positions that the model assigns to tokens. Masks do not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from ..errors import InterventionError
from ..model.hooks import Hook
from ..model.transformer import Transformer
from .edit import Edit, Move, one_stack_of, stacks_of
from .fields import HIGHEST, AnyStack, Places, StackName, Whole


@dataclass(frozen=True, repr=False)
class DropPositions(Edit, word="nopositions"):
    """Remove the positions of one stack or (None) of all. Masks do not change.

    Learned and sinusoidal vectors are not added. Rotary, ALiBi and relative positions all become 0, so that all distances are 0.
    """

    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stacks = stacks_of(model, self.stack)
        if model.config.has_position_table:
            return {f"{stack}.embed.hook_position": torch.zeros_like for stack in stacks}
        return {f"{stack}.hook_positions": Move(torch.zeros_like) for stack in stacks}


@dataclass(frozen=True, repr=False)
class ShufflePositions(Edit, word="shuffle"):
    """Shuffle the positions of the real tokens, in the same way for texts of the same length. Masks, and with them padding, do not change."""

    seed: Annotated[int, Whole()] = 0
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def shuffle(places: Tensor) -> Tensor:
            generator = torch.Generator().manual_seed(self.seed)
            return places[torch.randperm(len(places), generator=generator).to(places.device)]

        return _move_hooks(model, self.stack, shuffle)


@dataclass(frozen=True, repr=False)
class SetPositions(Edit, word="positions"):
    """Set the position of every real token: places[i] is that of the i-th. Positions may repeat.

    The run raises InterventionError for a text with another number of tokens, or a position beyond a learned table.
    """

    places: Annotated[Sequence[int | range], Places()]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stack = one_stack_of(model, self.stack, "positions")

        def given(places: Tensor) -> Tensor:
            if len(places) != len(self.places):
                raise InterventionError(
                    f"{len(self.places)} positions are given, and the text has {len(places)} tokens. Give one for each."
                )
            return torch.tensor(self.places, device=places.device, dtype=places.dtype)

        return _move_hooks(model, stack, given)


@dataclass(frozen=True, repr=False)
class ShiftPositions(Edit, word="shift"):
    """Shift every token by `by` positions, as if other text preceded it. Negative values shift back.

    The run raises InterventionError for positions beyond a learned or sinusoidal table.
    """

    by: Annotated[int, Whole(lowest=-HIGHEST)]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return _move_hooks(model, self.stack, lambda places: places + self.by)


def _move_hooks(model: Transformer, stack: StackName | None, to: Callable[[Tensor], Tensor]) -> Mapping[str, Hook]:
    def checked(places: Tensor) -> Tensor:  # [token]
        moved = to(places)
        n = model.config.n_ctx
        if model.config.has_position_table and not (int(moved.min()) >= 0 and int(moved.max()) < n):
            raise InterventionError(
                f"These positions go from {int(moved.min())} to {int(moved.max())}, and the model's table has 0 to {n - 1}. "
                "Stay within it, or choose a model with rotary or relative positions."
            )
        return moved

    return {f"{name}.hook_positions": Move(checked) for name in stacks_of(model, stack)}
