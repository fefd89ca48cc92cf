"""Edits of the words themselves: which token stands where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from ..errors import InterventionError
from ..model.hooks import Hook
from ..model.transformer import Transformer
from .edit import Edit, one_stack_of
from .fields import AnyStack, Whole


@dataclass(frozen=True, repr=False)
class SwapWords(Edit, word="swap"):
    """Let two tokens of a stack change places: `first` and `second`, from 0.

    All numbers are those of a run on the ids in that order. Positions and masks stay as they are, and so does what the run
    says of its text: labels, ids and losses are still those of the text as it was typed. Of the tokens alone their
    embeddings move, so that a model that finds its positions in the ids (RoBERTa) counts them as before.

    Raises InterventionError for one place given twice, and at the run for a place that the text does not have.
    """

    first: Annotated[int, Whole("a")]
    second: Annotated[int, Whole("b")]
    stack: AnyStack = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first == self.second:
            raise InterventionError(f"SwapWords has the place {self.first} twice: give two tokens, SwapWords(1, 3).")

    @property
    def sees_ahead(self) -> bool:
        return True

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return {f"{one_stack_of(model, self.stack, 'words')}.embed.hook_token": self._swapped}

    def _swapped(self, x: Tensor) -> Tensor:  # [batch, pos, d_embed]
        n, last = x.shape[1], max(self.first, self.second)
        if n == 1 and last > 0:
            return x  # the next token of a text that is being written, whose words have changed places already
        if last >= n:
            raise InterventionError(f"There is no token {last} to swap: this text has tokens 0 to {n - 1}.")
        order = torch.arange(n, device=x.device)
        order[[self.first, self.second]] = order[[self.second, self.first]]
        return x[:, order]
