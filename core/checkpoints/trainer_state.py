"""Losses recorded by transformers' Trainer in trainer_state.json, at the steps of its checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from .files import read_json

STATE = "trainer_state.json"


@dataclass(frozen=True)
class Losses:
    """The last training and evaluation losses recorded up to a step; None if there is none."""

    training: float | None
    evaluation: float | None


def losses_at(folder: Path, steps: Iterable[int]) -> dict[int, Losses]:
    """Losses at each step, from the file of one checkpoint, which includes all earlier steps. Empty without such a file.

    Raises CheckpointError if the file is damaged.
    """
    path = folder / STATE
    if not path.is_file():
        return {}
    history = read_json(path).get("log_history", [])
    if not isinstance(history, list) or not all(isinstance(row, dict) for row in history):
        raise CheckpointError(
            f"{STATE}: log_history must be a list of objects, one for each time that a loss was written."
        )
    training, evaluation = (_column(history, key) for key in ("loss", "eval_loss"))
    return {step: Losses(_last(training, step), _last(evaluation, step)) for step in steps}


def _column(history: list[dict[str, Any]], key: str) -> dict[int, float]:
    """step -> loss. Raises CheckpointError for anything but numbers."""
    column: dict[int, float] = {}
    for row in history:
        step, value = row.get("step"), row.get(key)
        if value is None:
            continue
        if not isinstance(step, int) or isinstance(value, bool) or not isinstance(value, int | float):
            raise CheckpointError(f"{STATE}: log_history has {key} that is no number, or belongs to no step.")
        if math.isfinite(value):  # a diverged training records NaN
            column[step] = float(value)
    return column


def _last(column: dict[int, float], step: int) -> float | None:
    recorded = [at for at in column if at <= step]
    return column[max(recorded)] if recorded else None
