"""Predictions: the likeliest next words of some positions, from the residual stream that the head is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from .. import frames
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.text import Tokens, from_ids
from ..model.transformer import Head


@dataclass(frozen=True)
class Predictions:
    """The k likeliest words for each asked-for position: ids and probs [pos][k], strings as the tokenizer spells them."""

    positions: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]
    strings: tuple[tuple[str, ...], ...]
    probs: tuple[tuple[float, ...], ...]

    def to_frame(self) -> frames.DataFrame:
        """A row for each word, the likeliest of a position first (rank 1). Needs pandas."""
        ranks = [
            (position, rank) for position, ids in zip(self.positions, self.ids, strict=True) for rank in range(len(ids))
        ]
        return frames.of_columns(
            {
                "position": [position for position, _ in ranks],
                "rank": [rank + 1 for _, rank in ranks],
                "id": list(chain.from_iterable(self.ids)),
                "string": list(chain.from_iterable(self.strings)),
                "prob": list(chain.from_iterable(self.probs)),
            }
        )


def head_of(loaded: Loaded) -> Head:
    """The model's head. Raises TextError for a model that has none."""
    if loaded.model.head is None:
        raise TextError(f"{loaded.spec.title} has no head, so it predicts no words. Try a language model.")
    return loaded.model.head


def likeliest(loaded: Loaded, x: Tensor, positions: Sequence[int], k: int) -> Predictions:
    """The head's logits for x [pos, d_model], the last residual stream of these positions."""
    with torch.inference_mode():
        probs, ids = head_of(loaded)(x[None])[0].float().softmax(-1).topk(min(k, loaded.config.vocab_size))
    rows = ids.tolist()
    return Predictions(
        tuple(positions),
        tuple(map(tuple, rows)),
        tuple(strings_of(loaded, row) for row in rows),
        tuple(map(tuple, probs.tolist())),
    )


def strings_of(loaded: Loaded, ids: Sequence[int]) -> tuple[str, ...]:
    return from_ids(loaded.tokenizer, ids).strings


def checked_positions(tokens: Tokens, positions: Sequence[int] | None) -> list[int]:
    """Resolve positions; None means the last real token. Raises IndexError for one that the text does not have."""
    if positions is None:
        return [max(i for i, padding in enumerate(tokens.padding) if not padding)]
    if bad := [p for p in positions if not 0 <= p < len(tokens)]:
        raise IndexError(f"position {bad[0]} of {len(tokens)}")
    return list(positions)


def labels_of(loaded: Loaded, ids: Sequence[int]) -> tuple[str, ...]:
    """Label of each token, by itself: Tokens.labels."""
    return tuple(from_ids(loaded.tokenizer, [i]).labels[0] for i in ids)


def check_token(loaded: Loaded, token: int | None) -> None:
    """Raises TextError for a number that is not in the vocabulary."""
    n, title = loaded.config.vocab_size, loaded.spec.title
    if token is not None and not 0 <= token < n:
        raise TextError(f"Token number {token} is not in the vocabulary of {title}, which has 0 to {n - 1}.")
