"""Each file of each form that opens, damaged in one place: the model opens as before, or a sentence names what is wrong."""

from __future__ import annotations

import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import core
from core.checkpoints import load
from core.errors import CheckpointError
from tests.core.published import reference
from tests.core.test_adapter import LLAMA, adapter


def plain(place: Path) -> Path:
    return Path(shutil.copytree(reference("llama gqa").folder, place / "model"))


def lora(place: Path) -> Path:
    folder = plain(place)
    found = adapter(folder, LLAMA, base_model_name_or_path="owner/model")
    return found


def classifier(place: Path) -> Path:
    config = hf.BertConfig(
        vocab_size=53, hidden_size=20, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24
    )
    config.num_labels = 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hf.BertForSequenceClassification(config).save_pretrained(place / "model")
    return place / "model"


def shards(place: Path) -> Path:
    reference("llama gqa").model.save_pretrained(place / "model", max_shard_size="20KB")
    return place / "model"


def two_stacks(place: Path) -> Path:
    return Path(shutil.copytree(reference("bart").folder, place / "model"))


def with_text(place: Path) -> Path:
    """The form that reads words: its tokenizer is a file too."""
    folder = plain(place)
    there = core.checkpoints.locate(core.checkpoints.find("copy"), None)[1]
    shutil.copy(there / "tokenizer.json", folder)
    return folder


FORMS = (plain, lora, classifier, shards, two_stacks, with_text)


def _json_of(path: Path, change: Callable[[dict], object]) -> None:
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))


def _pickled() -> bytes:
    out = io.BytesIO()
    pickle.dump({"weight": [1.0]}, out)
    return out.getvalue()


def _tensors(path: Path, change: Callable[[str, torch.Tensor], torch.Tensor | None]) -> None:
    """The last tensor of a file by its name, changed or left out."""
    tensors = load_file(path)
    last = sorted(tensors)[-1]
    made = change(last, tensors.pop(last))
    save_file(tensors if made is None else tensors | {last: made}, path, {"format": "pt"})


ANY: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a pickle": lambda path: path.write_bytes(_pickled()),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "gone": lambda path: path.unlink(),
}
JSON: dict[str, Callable[[Path], object]] = {
    "a list": lambda path: path.write_text("[]"),
    "a number": lambda path: path.write_text("7"),
    "deep": lambda path: path.write_text('{"a":' * 5000 + "1" + "}" * 5000),
    "no keys": lambda path: path.write_text("{}"),
    "words for numbers": lambda path: _json_of(path, lambda said: said.update(dict.fromkeys(said, "x"))),
    "null": lambda path: _json_of(path, lambda said: said.update(dict.fromkeys(said))),
}
WEIGHTS: dict[str, Callable[[Path], object]] = {
    "a row more": lambda path: _tensors(path, lambda _, x: torch.cat([x, x[:1]])),
    "a tensor less": lambda path: _tensors(path, lambda _, x: None),
    "whole numbers": lambda path: _tensors(path, lambda _, x: x.to(torch.int32)),
    "not finite": lambda path: _tensors(path, lambda _, x: torch.full_like(x, float("nan"))),
    "turned": lambda path: _tensors(path, lambda _, x: x.reshape(-1)),
}


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_damaged_file_is_a_sentence(form: Callable[[Path], Path], tmp_path: Path) -> None:
    whole = form(tmp_path)
    load(whole)
    files = sorted(path.name for path in whole.iterdir())
    tried = refused = 0
    for name in files:
        ways = ANY | (JSON if name.endswith(".json") else WEIGHTS)
        for way, damage in ways.items():
            kept = whole.with_name("kept")
            whole.rename(kept)
            shutil.copytree(kept, whole)
            damage(whole / name)
            tried, before = tried + 1, refused
            try:
                load(whole)
            except CheckpointError as error:
                refused += 1
                said = str(error)
                assert 20 < len(said) < 3000 and "Traceback" not in said and str(tmp_path) not in said, (
                    name,
                    way,
                    said,
                )
            except Exception as error:
                pytest.fail(f"{name}, {way}: {type(error).__name__}: {error}")
            shutil.rmtree(whole)
            kept.rename(whole)
            must = name.endswith(".safetensors") or name in ("config.json", "adapter_config.json")
            if must and way in ("half", "empty", "a pickle", "a tensor less", "a list", "no keys"):
                assert refused > before, (name, way)
    assert refused >= tried // 3
    load(whole)
