"""Logit difference of an answer and an alternative, which is also the difference of their log-probabilities, in nats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..checkpoints import Loaded
from ..errors import InterventionError, TextError
from ..model.hooks import hook_points
from ..run.classes import check_class
from ..run.predictions import check_token
from ..run.trace import Trace
from .ablations import (
    RowAnswers,
    has_classes,
    heads_of,
    in_batches,
    place_of,
    rows_of,
    with_ablations,
    with_patches,
)
from .sweeps import HeadPlace, check_lengths, check_same_model, head_outputs, resolve_position

Given = Literal["other", "zero", "mean"]
Head = HeadPlace | tuple[int, int]  # (layer, head) of the last stack's self-attention


@dataclass(frozen=True)
class LogitDiff:
    """An answer and an alternative: tokens after a position, or (None) classes of the text."""

    answer: int
    alternative: int
    position: int | None

    def of(self, rows: RowAnswers) -> np.ndarray:
        """float32 [row], of rows that watch the answer and then the alternative."""
        assert rows.logit is not None
        return rows.logit[:, 0] - rows.logit[:, 1]


def logit_diff_between(
    run: Trace,
    other: Trace | None = None,
    answer: int | None = None,
    alternative: int | None = None,
    position: int | None = None,
) -> LogitDiff:
    """The logit difference that measures a change of `run`.

    `answer` None: the most likely token of the run. `alternative` None: the most likely of the other run, or the second of this one if there
    is no other run or both have the same answer. Raises TextError for a model that answers with a vector, for invalid tokens, and
    for an answer against itself; IndexError for a position.
    """
    at = resolve_position(run, position, answer)
    if at is not None:
        check_token(run.loaded, alternative)
    elif has_classes(run.loaded):
        check_class(run.loaded, alternative)
    else:
        raise TextError(
            f"{run.spec.title} answers with a vector, so no word leads over another. Choose a model that predicts words or classes."
        )
    own = _top_two(run, at)
    answer = own[0] if answer is None else answer
    if alternative is None:
        others = [] if other is None else _top_two(other, None if position is None else at)[:1]
        alternative = next((token for token in (*others, *own) if token != answer), None)
    if alternative is None or alternative == answer:
        raise TextError("An answer has no lead over itself. Give another alternative.")
    return LogitDiff(answer, alternative, at)


def check_pair(run: Trace, other: Trace) -> None:
    """Raise TextError unless both runs are of one model and have the same number of tokens, as patching needs."""
    check_same_model(run, other)
    check_lengths(run, other)


def checked_head(loaded: Loaded, head: Head) -> HeadPlace:
    """Resolve a head. Raises InterventionError if the model lacks it."""
    if not isinstance(head, HeadPlace):
        layer, number = head
        head = HeadPlace(loaded.config.stacks[-1][0], layer, "attn", number)
    if f"{attention_of(head)}.hook_z" not in hook_points(loaded.model):
        layers = " and ".join(f"0 to {n - 1} of the {stack}" for stack, n in loaded.config.stacks)
        raise InterventionError(
            f"This model has no {head.site} in layer {head.layer} of the {head.stack}: its layers are {layers}."
        )
    if not 0 <= head.head < loaded.config.n_heads:
        raise InterventionError(
            f"There is no head {head.head}: this model's heads are 0 to {loaded.config.n_heads - 1}."
        )
    return head


def heads_in(loaded: Loaded) -> list[HeadPlace]:
    """Every head of the model in the order of the pass."""
    names = [point.removesuffix(".hook_z") for point in hook_points(loaded.model) if point.endswith(".hook_z")]
    return [HeadPlace(*place_of(name), head) for name in names for head in range(loaded.config.n_heads)]


def attention_of(head: HeadPlace) -> str:
    """The module path of its attention."""
    return f"{head.stack}.blocks.{head.layer}.{head.site}"


def _top_two(run: Trace, position: int | None) -> tuple[int, ...]:
    """The two most likely tokens after a position (None: the last), or classes."""
    if position is None and has_classes(run.loaded):
        return tuple(run.class_logits().topk(2).indices.tolist())
    return run.predictions(None if position is None else [position], k=2).ids[0]


def logit_diff_in(run: Trace, lead: LogitDiff) -> float:
    """The value of the same logit difference in another run."""
    at = lead.position
    logits = run.class_logits() if at is None else run.activation("head.hook_logits", [at])[0].float()
    return float(logits[lead.answer] - logits[lead.alternative])


def logit_diff_changes(
    run: Trace, other: Trace | None, heads: Sequence[HeadPlace], lead: LogitDiff, to: Given = "other"
) -> tuple[np.ndarray, float]:
    """Return the change of the logit difference, float32 [head], when each head outputs what it output in the other run, zero, or its mean
    over the tokens of the text; and the logit difference of the run itself.

    Raises TextError for another model or length, TooLarge with both numbers, and Outdated after a training.
    """
    forward = run.forward.of(run.index)
    order = {head: i for i, head in enumerate(heads_of(forward))}
    named = [(attention_of(head), head.head) for head in heads]
    unique = sorted(set(named), key=order.__getitem__)
    if to == "other":
        if other is None:
            raise TextError("There is no other sentence to take a head from. Give one.")
        check_pair(run, other)
        z = head_outputs(other, (name for name, _ in unique))
        edits = with_patches(unique, z, dict.fromkeys(z, (slice(None), slice(None))))
    else:
        edits = with_ablations(unique, to, forward.prompt)
    rows = rows_of(forward, edits, lead.position, lead.answer, (lead.alternative,))
    before = float(lead.of(rows.before())[0])
    after = [lead.of(part) for part in in_batches(rows)] if unique else []
    changes = dict(zip(unique, np.concatenate(after) - before, strict=True)) if after else {}
    return np.array([changes[head] for head in named], np.float32), before
