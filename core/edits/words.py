"""Edits of the order of tokens."""

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
    """Swap two tokens of a stack, at the indices `first` and `second`.

    All activations are those of a run on the swapped ids. Positions and masks do not change, and labels, ids and losses of the run are
    those of the original text. Only the embeddings are swapped, so that a model that derives positions from ids (RoBERTa) is not
    affected otherwise.

    Raises InterventionError for two equal indices, and in the run for an index beyond the text.
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
            return x  # the next token in generation, after the swap
        if last >= n:
            raise InterventionError(f"There is no token {last} to swap: this text has tokens 0 to {n - 1}.")
        order = torch.arange(n, device=x.device)
        order[[self.first, self.second]] = order[[self.second, self.first]]
        return x[:, order]
