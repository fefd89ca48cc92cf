"""The lead of one answer over another: a difference of two logits, which is also that of their log-probabilities, in nats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import TextError
from ..run.classes import check_class
from ..run.predictions import check_token
from ..run.trace import Trace
from .ablations import RowAnswers, has_classes
from .sweeps import asked_position


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


def same_shape(run: Trace, other: Trace) -> None:
    """Raises TextError unless both runs are of one model, with as many tokens each: parts are then taken token by token."""
    mine, theirs = run.config, other.config
    if mine != theirs or run.spec.classes != other.spec.classes:
        raise TextError("A part can be taken from a run of the same model alone; this other model has others.")
    lengths = [(len(run.source), len(other.source))]
    if run.target is not None and other.target is not None:
        lengths.append((len(run.target), len(other.target)))
    for a, b in lengths:
        if a != b:
            raise TextError(
                f"These texts have {a:,} and {b:,} tokens, and what a part gave is taken token by token. "
                "Give a sentence of the same length."
            )


def _best(run: Trace, position: int | None) -> tuple[int, ...]:
    """The two likeliest tokens after a position (None: the last), or classes."""
    if position is None and has_classes(run.loaded):
        return tuple(run.class_logits().topk(2).indices.tolist())
    return run.predictions(None if position is None else [position], k=2).ids[0]
