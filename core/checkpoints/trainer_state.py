"""Losses that transformers' Trainer wrote down, trainer_state.json, at the steps whose checkpoints it kept."""

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
    """The last losses that were written down up to a step: of training, and of evaluation; None where there is none."""

    training: float | None
    evaluation: float | None


def losses_at(folder: Path, steps: Iterable[int]) -> dict[int, Losses]:
    """The losses at each step, by the file of one checkpoint, which tells of all steps before it; none where there is no such file.

    Raises CheckpointError where the file is damaged.
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
    """step -> loss. Raises CheckpointError for what is no number."""
    found: dict[int, float] = {}
    for row in history:
        step, value = row.get("step"), row.get(key)
        if value is None:
            continue
        if not isinstance(step, int) or isinstance(value, bool) or not isinstance(value, int | float):
            raise CheckpointError(f"{STATE}: log_history has {key} that is no number, or belongs to no step.")
        if math.isfinite(value):  # a training that broke wrote NaN
            found[step] = float(value)
    return found


def _last(column: dict[int, float], step: int) -> float | None:
    there = [at for at in column if at <= step]
    return column[max(there)] if there else None
