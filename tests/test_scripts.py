"""The scripts that train what ships, a few steps of each from end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from core import load, trace
from core.training import STATE
from scripts import train_tasks
from scripts.train_tasks import PLANS, main, run, save_points


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fewer problems for a card, whose numbers are not what is tested, and the threads as they were."""
    for name in ("HELD_OUT", "POINT_CHECK", "LOOKED_AT", "BATCH"):
        monkeypatch.setattr(train_tasks, name, 4)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", PLANS)
def test_a_few_steps_of_every_task_model(name: str, tmp_path: Path) -> None:
    assert main([name, "--steps", "3", "--out", str(tmp_path)]) == 0
    folder, plan = tmp_path / name, PLANS[name]
    loaded = load(folder)
    assert loaded.config == plan.config()
    assert loaded.spec.n_params <= 300_000
    assert (
        len(
            trace(loaded, "([=" if plan.task == "brackets" else "12+34=" if plan.task == "addition" else "ab").attention
        )
        > 0
    )
    assert json.loads((folder / "curve.json").read_text())["step"] == [1, 2, 3]
    points = sorted(path.name for path in (folder / "steps").glob("*"))
    assert points == (["00000", "00001", "00002", "00003"] if plan.points else [])
    assert not (folder / "training").exists()
    card = (folder / "card.md").read_text()
    assert f"{loaded.spec.n_params:,} parameters" in card
    assert "whole answers exactly right" in card
    if plan.points:
        last = load(folder / "steps" / "00003").model.state_dict()
        assert all(torch.equal(value, last[key]) for key, value in loaded.model.state_dict().items())


@pytest.mark.usefixtures("few")
def test_a_stopped_run_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    plan = PLANS["reverse"]
    whole = list(run(plan, tmp_path / "whole", steps=6, save_every=2))
    for done in run(plan, tmp_path / "parts", steps=6, save_every=2):
        if done.step == 4:
            break
    assert (tmp_path / "parts" / "reverse" / "training" / STATE).is_file()
    assert [done.step for done in run(plan, tmp_path / "parts", steps=6, save_every=2)] == [3, 4, 5, 6]
    assert len(whole) == 6
    files = {path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "parts") for path in (tmp_path / "parts").rglob("*") if path.is_file()} == files
    for file in files:
        if file.suffix == ".safetensors":
            assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()
    one, other = (json.loads((tmp_path / way / "reverse" / "curve.json").read_text()) for way in ("whole", "parts"))
    assert {**one, "seconds": None} == {**other, "seconds": None}


def test_points_are_twelve_and_early() -> None:
    for plan in PLANS.values():
        points = save_points(plan.steps)
        assert len(points) == 12
        assert (points[0], points[-1]) == (0, plan.steps)
        assert sum(point <= plan.steps // 4 for point in points) >= 6
    assert save_points(1) == [0, 1]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["cpoy", "--out", str(tmp_path)]) == 2
    assert "There is no task model 'cpoy'. Choose from copy, reverse" in capsys.readouterr().err
    assert main(["--list"]) == 0
    assert "copy-heads-16" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
