"""GGUF files on a disk: packed types, models in several parts, plans without the numbers, and what other programs have downloaded."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from core import plan
from core.checkpoints import load
from core.checkpoints.gguf import models_in
from core.checkpoints.gguf.model import unpacked
from core.checkpoints.local_models import FOLDER_VARIABLES, list_models, local_models, usual_folders
from core.errors import CheckpointError
from tests.core.gguf.written import arrays_of, config_of, llama, llama_values, write
from tests.core.published import reference

Types = gguf.GGMLQuantizationType
# Types that the package packs as well, so that a test can write them.
PACKED = (Types.F16, Types.BF16, Types.Q8_0, Types.Q4_0, Types.Q4_1, Types.Q5_0, Types.Q5_1)
ONLY_UNPACKED = (
    Types.Q2_K,
    Types.Q3_K,
    Types.Q4_K,
    Types.Q5_K,
    Types.Q6_K,
    Types.IQ4_NL,
    Types.IQ4_XS,
    Types.TQ1_0,
    Types.TQ2_0,
)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_CACHE", "off")


def one_layer(tmp_path: Path, kind: Types, width: int = 256) -> Path:
    """A Llama of one layer whose MLP has a type of its own."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    dice = np.random.default_rng(0)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    for key, value in {
        "block_count": 1,
        "context_length": 9,
        "embedding_length": width,
        "feed_forward_length": 4,
    }.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_uint32("llama.attention.head_count", 2)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    plain = {"token_embd": (7, width), "output_norm": (width,), "blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,)}
    plain |= {f"blk.0.attn_{part}": (width, width) for part in ("q", "k", "v", "output")}
    for name, shape in (plain | {"blk.0.ffn_down": (width, 4), "blk.0.ffn_gate": (4, width)}).items():
        writer.add_tensor(f"{name}.weight", dice.normal(size=shape).astype(np.float32))
    if kind in PACKED:
        data = gguf.quants.quantize(dice.normal(size=(4, width)).astype(np.float32), kind)
    else:
        data = dice.integers(0, 60, (4, width // block * size), dtype=np.uint8)  # scales stay finite and small
    writer.add_tensor("blk.0.ffn_up.weight", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("kind", (*PACKED, *ONLY_UNPACKED), ids=lambda kind: kind.name)
def test_packed_numbers_are_those_of_the_package(kind: Types, tmp_path: Path) -> None:
    file = one_layer(tmp_path, kind)
    (packed,) = [t for t in gguf.GGUFReader(file).tensors if t.name == "blk.0.ffn_up.weight"]
    theirs = torch.from_numpy(np.array(gguf.quants.dequantize(packed.data, packed.tensor_type)))
    assert torch.equal(load(file).model.get_parameter("decoder.blocks.0.mlp.up.weight"), theirs.reshape(4, 256))


def test_a_type_that_is_not_unpacked_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match=r"'blk\.0\.ffn_up\.weight' has the type Q8_K, which is not unpacked here\. Unpacked are F32",
    ):
        load(one_layer(tmp_path, Types.Q8_K))
    assert unpacked(Types.IQ1_M) and not unpacked(Types.I32)


def split(tmp_path: Path) -> list[Path]:
    """A Llama in three parts, as llama-gguf-split writes it: the metadata are in the first."""
    folder = reference("llama gqa").folder
    whole = llama(folder, tmp_path / "whole.gguf")
    arrays = {t.name: torch.from_numpy(np.array(t.data)) for t in gguf.GGUFReader(whole).tensors}
    names = list(arrays)
    whole.unlink()
    parts = []
    for number, some in enumerate((names[:10], names[10:11], names[11:]), 1):
        values = llama_values(config_of(folder)) if number == 1 else {}
        values |= {"split.count": 3, "split.no": number - 1}
        path = tmp_path / f"tiny-{number:05}-of-00003.gguf"
        parts.append(write(path, "llama", values, {name: arrays[name] for name in some}))
    return parts


def test_a_model_in_parts_opens_as_one(tmp_path: Path) -> None:
    parts = split(tmp_path)
    theirs = reference("llama gqa").runs[0]
    for place in (tmp_path, parts[0], parts[2]):
        loaded = load(place)
        with torch.inference_mode():
            assert (loaded.model(theirs.source)[0] - theirs.out).abs().max() < 1e-4
    assert load(parts[1]).spec.title == "tiny"
    parts[1].unlink()
    with pytest.raises(CheckpointError, match=r"one of 3 parts, and tiny-00002-of-00003\.gguf is not beside it"):
        load(tmp_path)
    parts[0].unlink()
    with pytest.raises(
        CheckpointError, match=r"tiny-00001-of-00003\.gguf, tiny-00002-of-00003\.gguf are not beside it"
    ):
        load(parts[2])


def test_names_of_files_that_are_models() -> None:
    names = ["a.gguf", "b-00002-of-00002.gguf", "b-00001-of-00002.gguf", "mmproj-a.gguf", "a-lora.gguf", "x.txt"]
    assert models_in(names) == ["a.gguf", "b-00001-of-00002.gguf"]


def test_a_plan_needs_no_numbers(tmp_path: Path) -> None:
    file = llama(reference("llama gqa").folder, tmp_path / "model.gguf")
    assert plan(str(file), source_len=8).config == load(file).config
    assert plan(str(tmp_path), source_len=8).config == load(file).config


def ollama(place: Path, name: tuple[str, str, str], file: Path) -> Path:
    blob = place / "blobs" / f"sha256-{'ab' * 32}{len(name[1])}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(file.read_bytes())
    manifest = place / "manifests" / "registry.ollama.ai" / Path(*name)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": blob.name.replace("-", ":"), "size": 1}]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": [{"mediaType": "text", "digest": "x"}, *layers]}))
    return blob


def test_what_other_programs_have_downloaded(tmp_path: Path) -> None:
    folders = usual_folders(tmp_path)
    assert local_models(folders) == ()
    (ollama_place,), (studio, _), (hub,) = folders["Ollama"], folders["LM Studio"], folders["Hub"]
    file = llama(reference("llama gqa").folder, tmp_path / "tiny-Q8_0.gguf")
    other = write(
        tmp_path / "mamba.gguf",
        "mamba",
        {},
        arrays_of(reference("llama gqa").folder, "llama", config_of(reference("llama gqa").folder)),
    )
    blob = ollama(ollama_place, ("library", "tiny", "1b"), file)
    ollama(ollama_place, ("someone", "mambas", "latest"), other)
    (studio / "lab" / "tiny-GGUF").mkdir(parents=True)
    (studio / "lab" / "tiny-GGUF" / "tiny-Q8_0.gguf").write_bytes(file.read_bytes())
    (studio / "lab" / "tiny-GGUF" / "outside.gguf").symlink_to(file)  # leads out of the folder
    commit = hub / "models--lab--tiny" / "snapshots" / ("0" * 40)
    commit.mkdir(parents=True)
    (hub / "models--lab--tiny" / "blobs").mkdir()
    for name in ("config.json", "model.safetensors"):
        kept = hub / "models--lab--tiny" / "blobs" / name
        kept.write_bytes((reference("llama gqa").folder / name).read_bytes())
        (commit / name).symlink_to(kept)
    broken = hub / "models--lab--half" / "snapshots" / ("1" * 40)
    broken.mkdir(parents=True)
    (broken / "config.json").write_text('{"model_type": "mamba"}')

    found = local_models(folders)
    assert [(each.program, each.name, bool(each.why_not)) for each in found] == [
        ("Hub", "lab/half", True),
        ("Hub", "lab/tiny", False),
        ("LM Studio", "lab/tiny-GGUF/tiny-Q8_0", False),
        ("Ollama", "someone/mambas:latest", True),
        ("Ollama", "tiny:1b", False),
    ]
    assert "architecture 'mamba' is not supported" in found[3].why_not
    assert (found[4].path, found[4].n_bytes) == (str(blob), file.stat().st_size)
    for each in found:
        if not each.why_not:
            assert load(each.path).config.n_heads == 6


def test_a_manifest_that_is_damaged_is_a_row_that_says_so(tmp_path: Path) -> None:
    place = tmp_path / ".ollama" / "models"
    file = llama(reference("llama gqa").folder, tmp_path / "model.gguf")
    blob = ollama(place, ("library", "tiny", "1b"), file)
    manifest = place / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "1b"

    def said() -> str:
        (found,) = local_models(usual_folders(tmp_path))
        assert (found.name, found.program, found.path, found.n_bytes) == ("tiny:1b", "Ollama", "", 0)
        return found.why_not

    model = '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "%s"}]}'
    for text, sentence in {
        "{": "manifest is damaged: it is not valid JSON",
        "[]": "manifest is damaged: it is not valid JSON",
        '{"layers": 3}': "names no weights",
        '{"layers": [3, {"mediaType": 5}]}': "names no weights",
        model % "sha256:../../x": "names its weights by 'sha256:../../x', not by a SHA-256",
        model % "md5:00": "not by a SHA-256",
        model % "sha256:00": r"blobs/sha256-00… is missing",
    }.items():
        manifest.write_text(text)
        assert sentence in said(), text
    manifest.write_bytes(b" " * (1 << 20) + b"{}")
    assert "larger than 1 MB" in said()
    ollama(place, ("library", "tiny", "1b"), file)
    blob.unlink()
    blob.symlink_to(file)  # leads out of the folder
    assert "is missing" in said()
    (manifest.parent / ".DS_Store").write_bytes(b"x")  # no model
    said()


def test_what_other_programs_have_is_looked_into_as_far_as_opening_it_would(tmp_path: Path) -> None:
    place = tmp_path / ".ollama" / "models"
    folder = reference("llama gqa").folder
    config = config_of(folder)
    values, arrays = llama_values(config), arrays_of(folder, "llama", config)
    whole = write(tmp_path / "a.gguf", "llama", values, arrays)
    fewer = {name: tensor for name, tensor in arrays.items() if name != "blk.1.ffn_up.weight"}
    half = write(tmp_path / "b.gguf", "llama", values, fewer)
    ollama(place, ("library", "whole", "1b"), whole)
    ollama(place, ("library", "half-of-it", "1b"), half)
    lost, found = local_models(usual_folders(tmp_path))
    assert "hold no tensor" in lost.why_not and lost.n_params == 0
    assert found.why_not == "" and "It has no vocabulary" in found.no_text
    assert found.n_params == sum(tensor.numel() for tensor in arrays.values())
    names = list_models(usual_folders(tmp_path))  # without a look into any
    assert [(each.name, each.why_not, each.n_params) for each in names] == [
        ("half-of-it:1b", "", 0),
        ("whole:1b", "", 0),
    ]


def test_programs_that_were_told_of_another_folder_are_looked_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for names in FOLDER_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert usual_folders() == usual_folders(tmp_path / "home")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "large"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert usual_folders()["Ollama"] == (tmp_path / "large",) and usual_folders()["Hub"] == (tmp_path / "hub",)
    assert usual_folders(tmp_path)["Hub"][0].is_relative_to(
        tmp_path / ".cache"
    )  # of a home that is named, whatever is told


# parts of a model that do not belong together


def test_parts_that_are_not_of_one_model_are_refused(tmp_path: Path) -> None:
    folder = reference("llama gqa").folder
    config = config_of(folder)
    values, arrays = llama_values(config), arrays_of(folder, "llama", config)
    names = list(arrays)

    def part(number: int, some: list[str], **said: object) -> Path:
        own = {key.replace("__", "."): value for key, value in said.items()}
        about = {**values, "general.name": "Tiny"} if number == 1 else {}
        about |= {"split.count": 2, "split.no": number - 1, "split.tensors.count": len(names)} | own
        return write(tmp_path / f"m-{number:05}-of-00002.gguf", "llama", about, {name: arrays[name] for name in some})

    part(1, names[:10])
    second = part(2, names[10:])
    assert load(second).config.n_heads == 6  # by the name of its second part
    for more, sentence in (
        ({"split__no": 0}, r"called part 2 of 2, but its split\.no is 0, where 1 belongs: it is part of another model"),
        ({"split__count": 3}, r"its split\.count is 3, where 2 belongs"),
        ({"general__name": "Other"}, r"its general\.name is 'Other', and m-00001-of-00002\.gguf that it is 'Tiny'"),
    ):
        part(2, names[10:], **more)
        with pytest.raises(CheckpointError, match=sentence):
            load(second)
    part(2, names[9:])
    with pytest.raises(
        CheckpointError, match=r"m-00002-of-00002\.gguf and m-00001-of-00002\.gguf both hold the tensor"
    ):
        load(tmp_path)
    part(2, names[11:])
    with pytest.raises(
        CheckpointError, match=rf"speaks of {len(names)} tensors in 2 parts, and these hold {len(names) - 1}"
    ):
        load(tmp_path)
    alone = (tmp_path / "m-00001-of-00002.gguf").rename(tmp_path / "model.gguf")
    with pytest.raises(CheckpointError, match=r"is one of 2 parts, and was renamed.*model-00001-of-00002\.gguf"):
        load(alone)
    second.rename(tmp_path / "m-00003-of-00002.gguf")
    with pytest.raises(CheckpointError, match="is no part of a split model: parts are numbered"):
        load(tmp_path / "m-00003-of-00002.gguf")
