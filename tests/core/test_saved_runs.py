"""Runs of Train that were kept as files, and models of runs under their names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from core import trace
from core.checkpoints import at_point
from core.errors import CheckpointError, HeadlightError
from core.learn import recorded_runs, watched_training
from core.learn.watched_training import Frame, Point, Spec
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine
from core.service.training import Trainer
from scripts import train_runs

SPEC = Spec(steps=6, seed=3)


def made(spec: Spec) -> tuple[list[Point], list[Frame]]:
    every = list(watched_training.run(spec))
    return [one for one in every if isinstance(one, Point)], [one for one in every if isinstance(one, Frame)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one run in it."""
    kept = tmp_path_factory.mktemp("runs")
    recorded_runs.write(kept, SPEC, *made(SPEC))
    return kept


@pytest.mark.thorough
def test_a_run_comes_back_as_it_was(folder: Path) -> None:
    points, frames = made(SPEC)
    back = recorded_runs.read(folder, SPEC)
    assert back is not None
    assert [(one.step, one.loss, one.accuracy) for one in back[0]] == [
        (one.step, one.loss, one.accuracy) for one in points
    ]
    for ours, theirs in zip(frames, back[1], strict=True):
        assert all(getattr(ours, name) == getattr(theirs, name) for name in recorded_runs.FACTS)
        assert all(
            x.dtype == theirs.weights[name].dtype and x.equal(theirs.weights[name]) for name, x in ours.weights.items()
        )
    assert recorded_runs.read(folder, Spec(steps=7, seed=3)) is None, "another run of the same name"
    assert recorded_runs.read(folder, Spec(steps=6, seed=4)) is None


def test_a_file_that_cannot_be_read_is_no_run(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = f"{watched_training.name_of(SPEC)}.safetensors"
    whole = (folder / name).read_bytes()
    for broken in (b"", whole[:-100], whole.replace(b'"points', b'"pointz', 1), b"\x80\x04" + whole):
        (tmp_path / name).write_bytes(broken)
        assert recorded_runs.read(tmp_path, SPEC) is None
    assert "cannot be read" in caplog.text


def test_a_run_that_is_kept_is_there_at_once_and_trains_nothing(folder: Path) -> None:
    trainer = Trainer(command=("false",), folder=folder)

    async def first() -> tuple[str, int, int]:
        coming = trainer.watch(SPEC)
        news = await anext(coming)
        await coming.aclose()
        return news.state, len(news.points), len(news.frames)

    assert asyncio.run(first()) == ("ended", 6, len(watched_training.frame_steps(SPEC)))
    assert trainer._process is None
    assert len(Trainer(folder=folder).frames(SPEC)) == len(watched_training.frame_steps(SPEC))


@pytest.mark.thorough
def test_of_a_run_that_ships_the_last_frame_is_there_while_it_is_none_that_has_ended(tmp_path: Path) -> None:
    """Who presses Train sees it learn: nothing but its model is there at once."""
    points, frames = made(SPEC)
    recorded_runs.write(tmp_path / "ends", SPEC, points[-1:], frames[-1:])
    trainer = Trainer(folder=tmp_path / "none", ends=tmp_path / "ends")
    assert [frame.step for frame in trainer.frames(SPEC)] == [SPEC.steps]
    with pytest.raises(HeadlightError, match="no such training"):
        trainer.now(SPEC)

    async def first() -> str:
        coming = trainer.watch(SPEC)
        news = await anext(coming)
        await coming.aclose()
        return news.state

    try:
        assert asyncio.run(first()) == "running"
    finally:
        trainer.close()


def test_of_runs_that_are_there_as_files_only_so_many_are_held(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.service.training.KEPT_BYTES", 0)
    there = recorded_runs.read(folder, SPEC)
    assert there is not None
    specs = [Spec(steps=6, seed=seed) for seed in range(3)]
    for spec in specs:
        recorded_runs.write(tmp_path, spec, *there)
    trainer = Trainer(folder=tmp_path)
    assert all(trainer.frames(spec) for spec in specs)
    assert list(trainer._runs) == specs[-1:]


def test_the_script_makes_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    monkeypatch.setattr(train_runs, "run", lambda spec: watched_training.run(Spec(spec.task, spec.twin, steps=2)))
    monkeypatch.setattr(train_runs, "Spec", lambda task, twin: Spec(task, twin, steps=2))
    asked = ["--tasks", "echo", "--twins", "none", "nomask", "--out", str(tmp_path)]
    try:
        assert train_runs.main(asked) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "trained-echo-nomask-0.safetensors",
            "trained-echo-none-0.safetensors",
        ]
        assert capsys.readouterr().out.count("2 steps") == 2
        assert train_runs.main(asked) == 0 and capsys.readouterr().out == ""
    finally:
        torch.set_num_threads(threads)
    assert train_runs.main(["--tasks", "cook"]) == 2


# as models


@pytest.mark.parametrize("spec", [Spec(), Spec("sort", "heads1", 12), Spec("copy", "nomask", 3, fork=210)])
def test_a_run_is_found_by_its_name_and_by_its_title(spec: Spec) -> None:
    said = watched_training.described(spec)
    assert watched_training.named(said.id) == watched_training.named(said.title) == spec
    assert [int(step) for step, _ in said.points] == watched_training.frame_steps(spec)
    assert at_point(said, said.points[1][0]).id == f"{said.id}@{said.points[1][0]}"


def test_other_names_are_no_runs() -> None:
    for name in ("minilm", "trained-copy-none", "trained-copy-none-0@5", "Trained copy", "trained-copy-none-0\n", ""):
        assert watched_training.named(name) is None
    for name in ("trained-cook-none-0", "Trained copy, nobody, seed 0", "trained-copy-postln-0-from-5"):
        with pytest.raises(HeadlightError):
            watched_training.named(name)


def test_a_run_reads_text_as_its_frame_reads_ids() -> None:
    spec = Spec("copy", "nomask")
    frame = next(one for one in watched_training.run(spec) if isinstance(one, Frame) and one.step)
    seen = watched_training.evaluate_example(spec, frame, watched_training.example(spec, "cab"))
    opened = watched_training.opened(spec, frame)
    assert opened.spec.title == f"Trained copy, nomask, seed 0 at step {frame.step}"
    run = trace(opened, "cab=cab", interventions=watched_training.VARIANTS["nomask"].edits)
    assert run.source.labels[0] == "<s>"
    assert torch.stack([record.pattern() for record in run.attention]).equal(seen.pattern)
    again = watched_training.trained(f"trained-copy-nomask-0@{frame.step}")
    assert all(x.equal(y) for x, y in zip(again.model.parameters(), opened.model.parameters(), strict=True))


def test_a_name_of_no_run_or_step_is_refused_in_a_sentence() -> None:
    with pytest.raises(CheckpointError, match="no run of Train"):
        watched_training.trained("minilm@5")


def test_the_engine_runs_a_training_by_name_while_it_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_training, "STEPS", 6)
    service = LocalService(Engine())
    service._trainer.folder = folder

    def ask(model: str) -> list[str]:
        return list(service.engine.run(Request(model, ("ab=ab",))).source.labels)

    assert ask("trained-copy-none-3") == ["<s>", *"ab=ab"]
    assert ask("trained-copy-none-3@0") == ["<s>", *"ab=ab"]
    with pytest.raises(CheckpointError, match="press Train"):
        ask("trained-copy-none-4")
    with pytest.raises(CheckpointError, match="keeps no step 77"):
        ask("trained-copy-none-3@77")
