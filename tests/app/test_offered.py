"""The models on offer: the operator's are added by name, paths stay private, and nothing else can be loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.session import models as session_models
from core.checkpoints import CATALOG
from core.errors import CheckpointError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "secret-place" / "my-model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    return folder


def test_hub_ids_and_folders_are_offered_by_name_and_never_by_path(folder: Path):
    models = session_models.read(f" openai-community/gpt2 , {folder},,", CATALOG)
    assert list(models) == [*(spec.id for spec in CATALOG), "openai-community/gpt2", "my-model"]
    assert [spec.title for spec in models.values()][-2:] == ["openai-community/gpt2", "my-model"]
    assert models["my-model"].location == str(folder)


def test_what_is_no_model_or_has_the_name_of_another_is_left_out_and_logged(folder: Path, caplog):
    twin = folder.parent / "elsewhere" / "my-model"
    twin.mkdir(parents=True)
    models = session_models.read(f"{folder},{twin},nothing-here,minilm,../x", CATALOG)
    assert list(models) == [*(spec.id for spec in CATALOG), "my-model"]
    assert models["my-model"].location == str(folder)
    assert "two models called my-model" in caplog.text and "nothing-here" in caplog.text


def test_without_the_variable_there_is_the_catalog():
    assert list(session_models.read("", CATALOG)) == [spec.id for spec in CATALOG]


@pytest.mark.parametrize("name", ["/etc", "openai-community/gpt2", "../minilm", ""])
def test_only_what_is_offered_can_be_loaded(name: str):
    with pytest.raises(CheckpointError, match="Choose one of SmolLM2-135M, MiniLM-L6"):
        session_models.load(name)


def test_a_model_that_should_have_shipped_and_did_not_is_left_out_and_logged(tmp_path: Path, monkeypatch, caplog):
    monkeypatch.setattr("core.checkpoints.MODELS", tmp_path)
    models = session_models.read("", CATALOG)
    assert list(models) == [spec.id for spec in CATALOG if spec.source != "shipped"]
    assert "copy is not offered" in caplog.text and "make models" in caplog.text


def test_a_point_of_a_training_is_offered_with_its_model_and_no_path_is():
    point, digest = session_models.MODELS["copy"].points[1]
    spec = session_models.spec_of(f"copy@{point}")
    assert spec.title == f"Copy at step {int(point)}" and spec.sha256 == digest
    assert session_models.load(f"copy@{point}").spec.id == f"copy@{point}"
    for name in ("copy@1", "copy@../sort", "copy@steps/00000", "minilm@00000", "nothing@00000"):
        with pytest.raises(CheckpointError):
            session_models.load(name)


def test_a_folder_that_cannot_be_loaded_is_named_without_its_path(folder: Path, monkeypatch):
    monkeypatch.setattr(session_models, "MODELS", session_models.read(str(folder), CATALOG))
    with pytest.raises(CheckpointError) as refusal:
        session_models.load("my-model")
    assert "secret-place" not in str(refusal.value)
