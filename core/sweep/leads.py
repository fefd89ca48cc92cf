"""The lead of one answer over another: a difference of two logits, which is also that of their log-probabilities, in nats."""

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
from .ablations import RowAnswers, has_classes, heads_of, in_batches, patched, place_of, rows_of, silenced
from .sides import check_lengths
from .sweeps import HeadPlace, asked_position, check_same_model

Given = Literal["other", "zero", "mean"]
Head = HeadPlace | tuple[int, int]  # (layer, head) of the last stack's self-attention


@dataclass(frozen=True)
class Lead:
    """A token, or a class, and the one that it is measured against: after a position, or (None) as the class of the text."""

    answer: int
    rival: int
    position: int | None

    def of(self, rows: RowAnswers) -> np.ndarray:
        """float32 [row], of rows that watch the answer and then the rival."""
        assert rows.logit is not None
        return rows.logit[:, 0] - rows.logit[:, 1]


def lead_between(
    run: Trace,
    other: Trace | None = None,
    answer: int | None = None,
    rival: int | None = None,
    position: int | None = None,
) -> Lead:
    """The lead that a change of `run` is measured by.

    answer None: the likeliest of the run. rival None: the likeliest of the other run, or the second of this one where there is
    no other run or both have the same answer. Raises TextError for a model that answers with a vector, for numbers that are no
    token, and for an answer against itself; IndexError for a position.
    """
    at = asked_position(run, position, answer)
    if at is not None:
        check_token(run.loaded, rival)
    elif has_classes(run.loaded):
        check_class(run.loaded, rival)
    else:
        raise TextError(
            f"{run.spec.title} answers with a vector, so no word leads over another. Choose a model that predicts words or classes."
        )
    own = _best(run, at)
    first = own[0] if answer is None else answer
    if rival is None:
        beside = [] if other is None else _best(other, None if position is None else at)[:1]
        rival = next((token for token in (*beside, *own) if token != first), None)
    if rival is None or rival == first:
        raise TextError("An answer has no lead over itself. Give another rival.")
    return Lead(first, rival, at)


def check_pair(run: Trace, other: Trace) -> None:
    """Raises TextError unless both runs are of one model, with as many tokens each: parts are then taken token by token."""
    check_same_model(run, other)
    check_lengths(run, other)


def checked_head(loaded: Loaded, head: Head) -> HeadPlace:
    """Raises InterventionError for a head that the model lacks."""
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


def _best(run: Trace, position: int | None) -> tuple[int, ...]:
    """The two likeliest tokens after a position (None: the last), or classes."""
    if position is None and has_classes(run.loaded):
        return tuple(run.class_logits().topk(2).indices.tolist())
    return run.predictions(None if position is None else [position], k=2).ids[0]


def lead_in(run: Trace, lead: Lead) -> float:
    """The same lead in another run."""
    at = lead.position
    logits = run.class_logits() if at is None else run.activation("head.hook_logits", [at])[0].float()
    return float(logits[lead.answer] - logits[lead.rival])


def lead_changes(
    run: Trace, other: Trace | None, heads: Sequence[HeadPlace], lead: Lead, to: Given = "other"
) -> tuple[np.ndarray, float]:
    """By how much the lead of the run changes when each of some heads alone gives what it gave in the other run, nothing
    ("zero") or its mean over the tokens of the text; float32 [head]. And the lead of the run itself.

    Raises TextError for another model or length, TooLarge with both numbers, and Outdated after a training.
    """
    forward = run.forward.of(run.index)
    order = {head: i for i, head in enumerate(heads_of(forward))}
    named = [(attention_of(head), head.head) for head in heads]
    chosen = sorted(set(named), key=order.__getitem__)
    if to == "other":
        if other is None:
            raise TextError("There is no other sentence to take a head from. Give one.")
        check_pair(run, other)
        points = list(dict.fromkeys(f"{name}.hook_z" for name, _ in chosen))
        found = other.forward.moments(points, lambda _, z: z[other.index].clone()) if points else {}
        theirs = {point.removesuffix(".hook_z"): z for point, z in found.items()}
        whole = slice(None), slice(None)
        edits = patched(chosen, theirs, dict.fromkeys(theirs, whole))
    else:
        edits = silenced(chosen, to, forward.prompt)
    rows = rows_of(forward, edits, lead.position, lead.answer, (lead.rival,))
    before = float(lead.of(rows.before())[0])
    after = [lead.of(part) for part in in_batches(rows)] if chosen else []
    changes = dict(zip(chosen, np.concatenate(after) - before, strict=True)) if after else {}
    return np.array([changes[head] for head in named], np.float32), before
