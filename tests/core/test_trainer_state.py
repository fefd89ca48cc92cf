"""Losses of a Trainer's checkpoints: the last that were written down up to each step, and a sentence for each damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.catalog import Losses, losses_at
from core.errors import CheckpointError

HISTORY = [
    {"step": 250, "loss": 3.5, "learning_rate": 1e-4},
    {"step": 500, "loss": 2.5},
    {"step": 500, "eval_loss": 2.75, "eval_runtime": 1.0},
    {"step": 900, "loss": float("nan")},
    {"step": 1000, "loss": 2},
]


def state(folder: Path, **said: Any) -> Path:
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 1000, "log_history": HISTORY} | said))
    return folder


def test_each_step_has_the_last_losses_up_to_it(tmp_path: Path) -> None:
    found = losses_at(state(tmp_path), [100, 500, 950, 1000])
    assert found == {
        100: Losses(None, None),
        500: Losses(2.5, 2.75),
        950: Losses(2.5, 2.75),
        1000: Losses(2.0, 2.75),
    }


def test_without_its_file_there_are_none(tmp_path: Path) -> None:
    assert losses_at(tmp_path, [1]) == {}


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ({"step": 1}, "log_history must be a list of objects"),
        ([1, 2], "log_history must be a list of objects"),
        ([{"step": 1, "loss": "low"}], "has loss that is no number, or belongs to no step"),
        ([{"loss": 1.5}], "has loss that is no number, or belongs to no step"),
        ([{"step": 1, "eval_loss": True}], "has eval_loss that is no number"),
    ],
)
def test_damaged(history: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=says):
        losses_at(state(tmp_path, log_history=history), [1])


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text('{"log_history": [')
    with pytest.raises(CheckpointError, match=r"trainer_state\.json is not valid JSON"):
        losses_at(tmp_path, [1])
