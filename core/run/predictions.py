"""Predictions of a run: next tokens, or the classes of a classifier."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from .. import dataframes
from ..checkpoints import Loaded
from ..errors import GenerationError, TextError
from ..model.outputs import FREE, Classifier, Kind, TokenConstraint, mask_disallowed
from ..model.text import Tokens, from_ids
from ..model.transformer import LMHead
from .request import Prompt


@dataclass(frozen=True)
class Predictions:
    """The k most likely tokens per position: ids and probs [pos][k], strings as in the tokenizer.

    Fewer than k if fewer tokens are allowed.
    """

    positions: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]
    strings: tuple[tuple[str, ...], ...]
    probs: tuple[tuple[float, ...], ...]

    def to_frame(self) -> dataframes.DataFrame:
        """A row per token, the most likely of a position first (rank 1). Requires pandas."""
        ranks = [
            (position, rank) for position, ids in zip(self.positions, self.ids, strict=True) for rank in range(len(ids))
        ]
        return dataframes.of_columns(
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


def next_token_constraints(loaded: Loaded, tokens: Tokens, positions: Sequence[int]) -> list[TokenConstraint]:
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


def allowed_scores(logits: Tensor, what: Sequence[TokenConstraint]) -> Tensor:
    """logits [row, vocab] with -inf for disallowed tokens. Raises GenerationError if none is allowed."""
    allowed = mask_disallowed(logits, what)
    if allowed is not logits and bool(allowed.isneginf().all(-1).any()):
        raise GenerationError(
            "Nothing may follow this text: its model's generation_config.json forbids every token here. Try another text."
        )
    return allowed


def top_k_tokens(loaded: Loaded, x: Tensor, tokens: Tokens, positions: Sequence[int], k: int) -> Predictions:
    """The most likely tokens from the logits of x [pos, d_model], the last residual stream of these positions in `tokens`.

    Disallowed tokens have no probability and are not listed.
    """
    what = next_token_constraints(loaded, tokens, positions)
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


@dataclass(frozen=True)
class Classes:
    """A classifier's result: a number per class, in the order of config.json's id2label.

    `kind` is "one" for a single label, "several" for multi-label, or "numbers" for a regression.
    """

    names: tuple[str, ...]
    kind: Kind
    logits: tuple[float, ...]  # for a regression its values
    probabilities: tuple[float, ...] | None  # softmax of the logits, sigmoids for several; None for a regression

    @property
    def likeliest(self) -> str | None:
        """The name of the class with the largest logit; None for a regression."""
        return None if self.probabilities is None else self.names[self.logits.index(max(self.logits))]

    def to_frame(self) -> dataframes.DataFrame:
        """A row per class. Requires pandas."""
        columns: dict[str, list[object]] = {"class": [*self.names], "logit": [*self.logits]}
        if self.probabilities is not None:
            columns["prob"] = [*self.probabilities]
        return dataframes.of_columns(columns)


def classifier_of(loaded: Loaded) -> Classifier:
    """The model's classification head. Raises TextError for a model that has none."""
    if loaded.classifier is None:
        raise TextError(
            f"{loaded.spec.title} has no classification head, so it sorts texts into no classes. Try a classifier."
        )
    return loaded.classifier


def class_logits(loaded: Loaded, x: Tensor, prompt: Prompt) -> Tensor:
    """Logits [row, class], float32, from the last residual [row, pos, d_model] of one text in several runs.

    Raises TextError for a text without the end token that the head reads, and for a target of another length.
    """
    head, title = classifier_of(loaded), loaded.spec.title
    (tokens,) = prompt.last_read
    if head.classes.reads == "end":
        (source,) = prompt.sources
        if len(source) != len(tokens):
            raise TextError(
                f"{title} reads its decoder where the text of {len(source):,} tokens ends, and the target has {len(tokens):,}. Leave the "
                "target out: the decoder then reads the text once more."
            )
        tokens = source
        if head.shape.end_id not in [i for i, hidden in zip(tokens.ids, tokens.padding, strict=True) if not hidden]:
            raise TextError(
                f"{title} reads the place of its end token, number {head.shape.end_id}, and this text has none. Put it at the end of the ids."
            )
    with torch.inference_mode():
        return head(x, tuple(tokens.ids), tuple(tokens.padding)).float()


def check_class(loaded: Loaded, number: int | None) -> None:
    """Raises TextError for an invalid class number."""
    n = len(classifier_of(loaded).classes.names)
    if number is not None and not 0 <= number < n:
        raise TextError(f"Class number {number} is none of {loaded.spec.title}, which has 0 to {n - 1}.")
