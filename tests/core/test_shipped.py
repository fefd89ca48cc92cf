"""What ships in models/: every model of the index is there, is the file it should be, and does what its card says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import torch

from core import generate
from core.checkpoints import CATALOG, ModelSpec, at_point, curve, find, load, locate
from core.checkpoints.catalog import INDEX, MODELS, POINTS, SHIPPED, shipped
from core.checkpoints.files import header
from core.checkpoints.from_config import describe
from core.errors import CheckpointError
from core.learn.tasks import TASKS, is_held_out, problems
from scripts import catalog as script
from scripts import evaluate

SPECS = [spec for spec in CATALOG if spec.source == "shipped"]
ASKED = 50  # held-out problems of a task


# The first lines of Through the Looking-Glass (Lewis Carroll, 1871), which the storyteller has not read.
UNREAD = (
    "One thing was certain, that the white kitten had had nothing to do with it: - it was the black kitten's fault "
    "entirely. For the white kitten had been having its face washed by the old cat for the last quarter of an hour (and "
    "bearing it pretty well, considering); so you see that it couldn't have had any hand in the mischief."
)


def card_says(name: str, what: str) -> float:
    """A number from the table of a card."""
    found = re.search(
        rf"^\| {re.escape(what)} \| ([\d.]+)", (MODELS / name / "card.md").read_text("utf-8"), re.MULTILINE
    )
    assert found, f"models/{name}/card.md says nothing of {what!r}"
    return float(found[1])


def name_of(spec: ModelSpec) -> str:
    return spec.id


def task_of(spec: ModelSpec) -> str | None:
    return next((name for name in TASKS if spec.id == name or spec.id.startswith(f"{name}-")), None)


def test_the_index_is_of_what_lies_in_the_folder() -> None:
    index = json.loads((MODELS / INDEX).read_text("utf-8"))
    assert set(index) == set(script.finished()), "a training has ended or a model is gone: python -m scripts.catalog"
    assert [spec.id for spec in SPECS] == [name for name in SHIPPED if name in index]


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_it_loads_with_its_digest_and_has_a_card(spec: ModelSpec) -> None:
    loaded = load(spec.id)  # raises for another digest
    assert len(spec.sha256) == 64 and loaded.spec.n_params == spec.n_params
    assert loaded.config.kind in ("decoder", "encoder-decoder") and loaded.tokenizer is not None and loaded.end_ids
    folder = locate(spec, None)[1]
    card = (folder / "card.md").read_text("utf-8")
    assert card.startswith("# ") and "## Weaknesses" in card
    assert spec.note.endswith((".", "!")) and spec.licence and spec.example


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("spec", [spec for spec in SPECS if task_of(spec)], ids=name_of)
def test_a_task_is_solved(spec: ModelSpec) -> None:
    task = TASKS[task_of(spec) or ""]
    asked = problems(task, ASKED, seed="shipped", held_out=True)
    written = generate(load(spec.id), asked, max_tokens=task.n_ctx)
    right = sum(g.ending == "end" and g.text == task.answer(p) for g, p in zip(written, asked, strict=True))
    assert right >= 0.95 * ASKED


@pytest.mark.parametrize("spec", [spec for spec in SPECS if task_of(spec)], ids=name_of)
def test_the_example_is_a_held_out_problem_with_its_answer(spec: ModelSpec) -> None:
    task = TASKS[task_of(spec) or ""]
    end = spec.example.index("|") + 2 if "|" in spec.example else spec.example.index("=") + 1
    assert is_held_out(task, spec.example[:end])
    assert spec.example[end:] == task.answer(spec.example[:end])


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.points], ids=name_of)
def test_points_go_from_untrained_to_the_model_itself(spec: ModelSpec) -> None:
    names = [name for name, _ in spec.points]
    steps = [int(name) for name in names]
    assert steps[0] == 0 and steps == sorted(steps) and 10 <= len(steps) <= 14
    assert steps[-1] == max(curve(spec.id)["step"])
    first, last = (load(f"{spec.id}@{name}") for name in (names[0], names[-1]))
    assert first.spec.title == f"{spec.title} at step 0"
    assert dict(spec.points)[names[-1]] == spec.sha256
    assert first.config == last.config
    folders = {path.name for path in (MODELS / spec.id / POINTS).iterdir()}
    assert folders == set(names[:-1])  # the last is the model itself, which is stored once


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_matrices_are_stored_as_int8(spec: ModelSpec) -> None:
    weights = [MODELS / spec.id / "model.safetensors", *(MODELS / spec.id / POINTS).rglob("*.safetensors")]
    for path in weights:
        assert {stored.dtype for stored in header(path) if not stored.name.endswith("_scale")} == {"I8", "F16"}
        assert path.stat().st_size < 1.2 * spec.n_params


def test_nothing_but_a_point_that_was_kept_can_be_asked_for() -> None:
    spec = next(spec for spec in SPECS if spec.points)
    for asked in ("0", "00001", "../copy", "/etc", "", "steps/00000", "٠٠٠٠٠"):
        with pytest.raises(CheckpointError, match="no point"):
            at_point(spec, asked)
    with pytest.raises(CheckpointError, match="No points were kept"):
        find("minilm@00000")


def test_another_file_than_the_one_that_shipped_is_refused(tmp_path: Path, monkeypatch) -> None:
    spec = next(spec for spec in SPECS if spec.points)
    folder = tmp_path / spec.id
    folder.mkdir()
    for name in spec.files:
        (folder / name).write_bytes((MODELS / spec.id / name).read_bytes())
    monkeypatch.setattr("core.checkpoints.MODELS", tmp_path)
    assert load(spec.id).spec.id == spec.id
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    with pytest.raises(CheckpointError, match=r"not the published file.*repository"):
        load(spec.id)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="make models"):
        load(spec.id)


@pytest.mark.parametrize("index", [None, "{", "[]", '{"copy": {}}', '{"copy": 3}'])
def test_an_index_that_cannot_be_read_offers_nothing_and_says_so(tmp_path: Path, index: str | None, caplog) -> None:
    if index is not None:
        (tmp_path / INDEX).write_text(index)
    assert shipped(tmp_path) == ()
    assert (index == "[]") != ("cannot be read" in caplog.text)  # an empty list is as good as an empty index


def test_the_index_is_written_and_compared(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "copy"
    for place in (folder, folder / "steps" / "00000"):
        place.mkdir(parents=True)
        (place / "model.safetensors").write_bytes((MODELS / "copy" / "model.safetensors").read_bytes())
    assert script.main(["--models", str(tmp_path)]) == 0
    assert json.loads((tmp_path / INDEX).read_text()) == {}  # it has no card: its training is not over
    (folder / "card.md").write_text("# copy")
    (folder / "recipe.json").write_text('{"phases": [{"steps": 20}, {"steps": 3}]}')
    assert script.main(["--models", str(tmp_path), "--check"]) == 1
    assert script.main(["--models", str(tmp_path)]) == 0
    assert script.main(["--models", str(tmp_path), "--check"]) == 0
    (spec,) = shipped(tmp_path)
    assert spec.n_params == load("copy").spec.n_params
    assert spec.points == (("00000", spec.sha256), ("00023", spec.sha256))
    (folder / "training").mkdir()
    assert script.main(["--models", str(tmp_path), "--check"]) == 1
    assert "copy: gone" in capsys.readouterr().out


def test_the_storytellers_card_comes_out_again() -> None:
    loaded = load("storyteller")
    heads = evaluate.head_table(evaluate.repeated_patterns(loaded, evaluate.N_REPEATED))
    for what, shares in heads.items():
        layer, head, share = evaluate.best(shares)
        assert card_says("storyteller", f"{what}: layer {layer} head {head}") == pytest.approx(share, abs=0.02)
    assert evaluate.best(heads["induction head"])[2] > 0.4
    assert evaluate.best(heads["previous-token head"])[2] > 0.4
    perplexity = card_says("storyteller", "perplexity per token")
    assert perplexity < 0.8 * card_says("storyteller", "perplexity per token, 5-gram, Kneser–Ney")
    assert perplexity < 0.2 * card_says("storyteller", "perplexity per token, unigram")


def test_the_storyteller_foretells_a_text_it_has_not_read() -> None:
    loaded = load("storyteller")
    assert loaded.tokenizer is not None
    ids = torch.tensor(loaded.tokenizer.encode(UNREAD, add_special_tokens=False).ids)
    nats = evaluate.foretold(loaded, ids)
    assert len(nats) == len(ids)
    bits_per_byte = nats.sum().item() / math.log(2) / len(UNREAD.encode())
    assert bits_per_byte == pytest.approx(card_says("storyteller", "bits per byte"), rel=0.25)


@pytest.mark.thorough
def test_the_translators_card_comes_out_again(tmp_path: Path) -> None:
    for what, value, _ in evaluate.alignment_rows(load("translator")):
        assert card_says("translator", what) == pytest.approx(value, abs=1.1)
    assert card_says("translator", "BLEU, beam 4") >= 33
    part = {row.name: row.value for row in evaluate.measure("translator", MODELS, tmp_path, part=20).rows}
    assert part["BLEU, greedy"] > 25  # of the captions in scripts/alignment.py, which are in no corpus


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("spec", [spec for spec in SPECS if task_of(spec)], ids=name_of)
def test_a_task_models_card_comes_out_again(spec: ModelSpec) -> None:
    assert card_says(spec.id, "whole answers exactly right, greedy") >= 99
    task, loaded = TASKS[task_of(spec) or ""], load(spec.id)
    shares = evaluate.looks_at_next(loaded, task, evaluate.LOOKED_AT)
    first = (MODELS / spec.id / "card.md").read_text("utf-8").split("| 0 | ")[-1].split("\n")[0]
    assert [float(cell) for cell in first.strip("| ").split(" | ")] == pytest.approx(shares[0].tolist(), abs=0.011)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_all_of_its_files_take_part_or_are_known(spec: ModelSpec) -> None:
    assert load(spec.id).notices == ()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_a_plan_is_of_the_model_that_runs(spec: ModelSpec) -> None:
    assert describe(spec.id).config == load(spec.id).model.config
