"""Forty inputs that go wrong in practice: each gets its sentence, none a stack trace, and what can be read is read."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from core import __main__ as command_line
from core import load
from core.checkpoints import Loaded

Outcome = tuple[int, str, str]  # exit code, standard output, standard error


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run `python -m core` with these arguments, in this process; the default model is read from disk only once."""
    monkeypatch.setattr(
        command_line, "load", lambda name, **options: minilm() if name == "minilm" else load(name, **options)
    )

    def call(*arguments: str) -> Outcome:
        code = command_line.main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@cache
def minilm() -> Loaded:
    return load("minilm")


# Texts. A fragment of the sentence that refuses it, or of the labels that it is read as.

REFUSED_TEXTS = {
    "empty": ("", "empty"),
    "only spaces": ("   ", "only spaces"),
    "only a newline": ("\n\t \n", "only spaces"),
    "half a character": ("one \ud83d two", "half of a character"),
    "100,000 characters": ("word " * 20_000, "20,002 tokens long"),
    "one word too many": ("word " * 511, "513 tokens long, and MiniLM-L6 has positions for 512"),
    "only a zero-width space": ("\u200b", "finds nothing to read"),
    "only NUL": ("\x00", "finds nothing to read"),
}
READ_TEXTS = {
    "control characters": ("one\x07two", "one"),
    "markup": ("<script>alert(1)</script>", "script"),
    "an image that runs code": ("<img src=x onerror=alert(1)>", "im"),
    "right to left": ("مرحبا بالعالم", "م"),
    "a family of one emoji": ("look 👨‍👩‍👧‍👦 there", "👨"),
    "a flag": ("🇩🇪 flag", "🇩"),
    "accents apart from their letters": ("cafe\u0301", "caf\u00e9"),  # a letter with its accent, as it is read
    "ligatures and full width": ("ﬁne Ｗｉｄｅ", "Ｗｉｄｅ"),
    "Chinese": ("注意力", "注"),
    "a very long word": ("a" * 300, "[UNK]"),
    "special tokens typed by hand": ("[CLS] [MASK] [SEP]", "[MASK]"),
    "a byte order mark": ("\ufeffhello", "hello"),
    "JSON": ('{"a": [1, 2]}', "{"),
    "a path": ("../../etc/passwd", "pass"),
    "a format string": ("%s %n {0} ${x}", "%"),
}


@pytest.mark.parametrize("name", REFUSED_TEXTS)
def test_a_text_that_cannot_be_read_gets_a_sentence(run: Callable[..., Outcome], name: str) -> None:
    text, words = REFUSED_TEXTS[name]
    code, out, err = run("trace", text, "--model", "minilm")
    assert code == 2 and out == ""
    assert_sentence(err, words)


@pytest.mark.parametrize("name", READ_TEXTS)
def test_a_strange_text_is_read_and_shown_as_it_is(run: Callable[..., Outcome], name: str, tmp_path: Path) -> None:
    text, label = READ_TEXTS[name]
    page = tmp_path / "page.html"
    code, out, err = run("trace", text, "--model", "minilm", "--json", "-", "--html", str(page))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["source"]["text"] == text
    assert any(label in token for token in found["source"]["labels"])
    assert text not in page.read_text(encoding="utf-8") or "<" not in text


# Models and files.


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT as it would be downloaded."""
    place = tmp_path_factory.mktemp("models") / "small"
    place.mkdir()
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "vocab_size": 30522, "hidden_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 20, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "hidden_act": "gelu",
    }  # fmt: skip
    (place / "config.json").write_text(json.dumps(config))
    tokenizer = minilm().tokenizer
    assert tokenizer is not None
    tokenizer.save(str(place / "tokenizer.json"))
    shapes = {
        "embeddings.word_embeddings.weight": (30522, 16),
        "embeddings.position_embeddings.weight": (20, 16),
        "embeddings.token_type_embeddings.weight": (2, 16),
    }
    for norm in (
        "embeddings.LayerNorm",
        "encoder.layer.0.attention.output.LayerNorm",
        "encoder.layer.0.output.LayerNorm",
    ):
        shapes |= {f"{norm}.weight": (16,), f"{norm}.bias": (16,)}
    for linear in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"encoder.layer.0.{linear}.weight": (16, 16), f"encoder.layer.0.{linear}.bias": (16,)}
    shapes |= {"encoder.layer.0.intermediate.dense.weight": (24, 16), "encoder.layer.0.intermediate.dense.bias": (24,)}
    shapes |= {"encoder.layer.0.output.dense.weight": (16, 24), "encoder.layer.0.output.dense.bias": (16,)}
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, place / "model.safetensors")
    return place


def edit_config(**changes: Any) -> Callable[[Path], object]:
    def edit(place: Path) -> None:
        config = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps({**config, **changes}))

    return edit


def edit_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def edit(place: Path) -> None:
        file = place / "model.safetensors"
        file.write_bytes(change(file.read_bytes()))

    return edit


def only_a_pickle(place: Path) -> None:
    (place / "model.safetensors").rename(place / "pytorch_model.bin")


def index_that_leaves_the_folder(place: Path) -> None:
    (place / "model.safetensors").unlink()
    index = {"weight_map": {"embeddings.word_embeddings.weight": "../../../../etc/passwd"}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))


def no_positions(place: Path) -> None:
    from safetensors.torch import load_file

    tensors = load_file(place / "model.safetensors")
    del tensors["embeddings.position_embeddings.weight"]
    save_file(tensors, place / "model.safetensors")


BROKEN_FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda p: (p / "config.json").unlink(), "config.json"),
    "a config that is not JSON": (lambda p: (p / "config.json").write_text("{"), "config.json"),
    "a config that is a list": (lambda p: (p / "config.json").write_text("[]"), "config.json"),
    "an unknown family": (edit_config(model_type="mamba"), "mamba"),
    "an activation nobody knows": (edit_config(hidden_act="swoosh"), "swoosh"),
    "a missing size": (edit_config(hidden_size=None), "hidden_size"),
    "a size in words": (edit_config(hidden_size="sixteen"), "hidden_size"),
    "heads that do not divide": (edit_config(num_attention_heads=3), "n_heads (3)"),
    "a config that lies about the width": (edit_config(hidden_size=32), "embeddings.word_embeddings.weight"),
    "a config that asks for the moon": (
        edit_config(hidden_size=2**30, num_attention_heads=2),
        "hidden_size|word_embeddings",
    ),
    "truncated weights": (edit_bytes(lambda b: b[: len(b) // 2]), "model.safetensors"),
    "empty weights": (edit_bytes(lambda b: b""), "model.safetensors"),
    "a header that lies about its length": (
        edit_bytes(lambda b: struct.pack("<Q", 2**60) + b[8:]),
        "model.safetensors",
    ),
    "only a pickle": (only_a_pickle, "pytorch_model.bin"),
    "a missing tensor": (no_positions, "embeddings.position_embeddings.weight"),
    "an index that leaves the folder": (index_that_leaves_the_folder, "passwd|index"),
    "a broken tokenizer": (lambda p: (p / "tokenizer.json").write_text("{}"), "tokenizer.json"),
}


@pytest.mark.parametrize("name", BROKEN_FOLDERS)
def test_a_broken_model_names_the_file_or_the_tensor(
    run: Callable[..., Outcome], folder: Path, tmp_path: Path, name: str
) -> None:
    damage, words = BROKEN_FOLDERS[name]
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    assert run("trace", "hello", "--model", str(place))[0] == 0
    damage(place)
    code, _, err = run("trace", "hello", "--model", str(place))
    assert code == 2
    assert any(word in err for word in words.split("|")), err
    assert_sentence(err, "")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nonsense", "minilm"),
        ("", "minilm"),
        ("../../etc", "no model|config.json"),
        ("a/b/c/d", "no model"),
        ("owner/na me", "no model"),
        ("\x00", "no model"),
    ],
)
def test_a_model_that_is_not_there_says_what_there_is(run: Callable[..., Outcome], model: str, words: str) -> None:
    code, _, err = run("trace", "hello", "--model", model)
    assert code == 2
    assert any(word in err for word in words.split("|")), err
    assert_sentence(err, "")


def test_a_place_that_cannot_be_written_is_named(run: Callable[..., Outcome], tmp_path: Path) -> None:
    code, _, err = run("trace", "hello", "--model", "minilm", "--npz", str(tmp_path / "no" / "folder.npz"))
    assert code == 2 and "folder.npz" in err and "Traceback" not in err


def assert_sentence(err: str, words: str) -> None:
    """One calm sentence or two on standard error: no trace, no class names, something said."""
    assert err.startswith("headlight: ") and words in err
    assert "Traceback" not in err and "Error(" not in err and err.count("\n") == 1
    assert err.rstrip().endswith((".", "]", ")"))


def test_there_are_forty() -> None:
    assert len(REFUSED_TEXTS) + len(READ_TEXTS) + len(BROKEN_FOLDERS) + 6 >= 40
