"""Edits of positions: where the model believes each token to be. Masks stay as they are."""

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
    """Take the order of the tokens away from one stack or (None) from all; masks stay as they are.

    Learned and sinusoidal vectors are not added; rotary, ALiBi and relative positions all become 0, which leaves no
    distance between any two tokens.
    """

    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stacks = stacks_of(model, self.stack)
        if model.config.has_position_table:
            return {f"{stack}.embed.hook_position": torch.zeros_like for stack in stacks}
        return {f"{stack}.hook_positions": Move(torch.zeros_like) for stack in stacks}


@dataclass(frozen=True, repr=False)
class ShufflePositions(Edit, word="shuffle"):
    """Deal the positions of the real tokens out in another order, the same for texts of one length; masks stay as they are.

    Padding stays padding: no query looks at it.
    """

    seed: Annotated[int, Whole()] = 0
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def shuffle(places: Tensor) -> Tensor:
            generator = torch.Generator().manual_seed(self.seed)
            return places[torch.randperm(len(places), generator=generator).to(places.device)]

        return _hooks(model, self.stack, shuffle)


@dataclass(frozen=True, repr=False)
class SetPositions(Edit, word="positions"):
    """Give every real token its position: places[i] is that of the i-th. A place may be given twice.

    Raises InterventionError at the run for a text with another number of tokens, or a place beyond a learned table.
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

        return _hooks(model, stack, given)


@dataclass(frozen=True, repr=False)
class ShiftPositions(Edit, word="shift"):
    """Move every token on by `by` positions, or back where it is negative, as if other text stood before it.

    Raises InterventionError at the run where that leads beyond the positions that a learned or sinusoidal table has.
    """

    by: Annotated[int, Whole(lowest=-HIGHEST)]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return _hooks(model, self.stack, lambda places: places + self.by)


def _hooks(model: Transformer, stack: StackName | None, to: Callable[[Tensor], Tensor]) -> Mapping[str, Hook]:
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
