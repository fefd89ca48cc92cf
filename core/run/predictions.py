"""Predictions: the most likely next tokens at some positions, from the input of the LM head."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from .. import frames
from ..checkpoints import Loaded
from ..errors import GenerationError, TextError
from ..model.next_tokens import FREE, Following, allowed_only
from ..model.text import Tokens, from_ids
from ..model.transformer import LMHead


@dataclass(frozen=True)
class Predictions:
    """The k most likely tokens per position: ids and probs [pos][k], strings as in the tokenizer.

    Fewer than k if fewer tokens are allowed.
    """

    positions: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]
    strings: tuple[tuple[str, ...], ...]
    probs: tuple[tuple[float, ...], ...]

    def to_frame(self) -> frames.DataFrame:
        """A row per token, the most likely of a position first (rank 1). Requires pandas."""
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


def head_of(loaded: Loaded) -> LMHead:
    """The model's LM head. Raises TextError for a model without one."""
    if loaded.model.head is None:
        raise TextError(loaded.headless)
    return loaded.model.head


def following(loaded: Loaded, tokens: Tokens, positions: Sequence[int]) -> list[Following]:
    """The tokens that generation_config.json allows after each position, for generative models.

    In an encoder-decoder, everything after the start token counts as generated; in a decoder, nothing.
    """
    rule = loaded.next_tokens
    if rule.is_free or not loaded.config.writes:
        return [FREE] * len(positions)
    real = [i for i, padding in enumerate(tokens.padding) if not padding]
    text = [tokens.ids[i] for i in real]
    n_prompt = 1 if loaded.config.kind == "encoder-decoder" else len(text)
    lengths = [bisect_right(real, position) for position in positions]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    found = rule.following(text, [lengths[i] for i in order], n_prompt)
    return [what for _, what in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


def allowed_scores(logits: Tensor, what: Sequence[Following]) -> Tensor:
    """logits [row, vocab] with -inf for disallowed tokens. Raises GenerationError if none is allowed."""
    allowed = allowed_only(logits, what)
    if allowed is not logits and bool(allowed.isneginf().all(-1).any()):
        raise GenerationError(
            "Nothing may follow this text: its model's generation_config.json forbids every token here. Try another text."
        )
    return allowed


def likeliest(loaded: Loaded, x: Tensor, tokens: Tokens, positions: Sequence[int], k: int) -> Predictions:
    """The most likely tokens from the logits of x [pos, d_model], the last residual stream of these positions in `tokens`.

    Disallowed tokens have no probability and are not listed.
    """
    what = following(loaded, tokens, positions)
    with torch.inference_mode():
        scores = allowed_scores(head_of(loaded)(x[None])[0].float(), what)
        probs, ids = scores.softmax(-1).topk(min(k, loaded.config.vocab_size))
        may_follow = ~scores.gather(-1, ids).isneginf()  # first in each row; can be fewer than k
    counts = may_follow.sum(-1).tolist()
    rows = [row[:n] for row, n in zip(ids.tolist(), counts, strict=True)]
    shares = [row[:n] for row, n in zip(probs.tolist(), counts, strict=True)]
    return Predictions(
        tuple(positions),
        tuple(map(tuple, rows)),
        tuple(strings_of(loaded, row) for row in rows),
        tuple(map(tuple, shares)),
    )


def strings_of(loaded: Loaded, ids: Sequence[int]) -> tuple[str, ...]:
    return from_ids(loaded.tokenizer, ids).strings


def checked_positions(tokens: Tokens, positions: Sequence[int] | None) -> list[int]:
    """Resolve positions; None is the last real token. Raises IndexError for a position outside the text."""
    if positions is None:
        return [max(i for i, padding in enumerate(tokens.padding) if not padding)]
    if bad := [p for p in positions if not 0 <= p < len(tokens)]:
        raise IndexError(f"position {bad[0]} of {len(tokens)}")
    return list(positions)


def labels_of(loaded: Loaded, ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens.labels of each token separately."""
    return tuple(from_ids(loaded.tokenizer, [i]).labels[0] for i in ids)


def check_token(loaded: Loaded, token: int | None) -> None:
    """Raises TextError for a token id outside the vocabulary."""
    n, title = loaded.config.vocab_size, loaded.spec.title
    if token is not None and not 0 <= token < n:
        raise TextError(f"Token number {token} is not in the vocabulary of {title}, which has 0 to {n - 1}.")
