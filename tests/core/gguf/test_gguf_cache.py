"""The cache of unpacked GGUF files: whole or not there, bounded, shared, and done without where a disk is full."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from core import device
from core.checkpoints import Loaded, load
from core.checkpoints.gguf import cache, model, read_header
from core.errors import CheckpointError, TooLarge
from tests.core.gguf.written import llama
from tests.core.published import reference
from tests.core.test_parity import distance


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("HEADLIGHT_CACHE", str(place))
    monkeypatch.setattr(cache, "SPARE_BYTES", 0)
    return place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return llama(
        reference("llama gqa").folder, tmp_path / "model.gguf", values={"tokenizer.chat_template": "{{ 1 }}\r\n"}
    )


def folders(base: Path) -> list[str]:
    return sorted(path.name for path in base.iterdir() if path.name != cache.DIGESTS) if base.is_dir() else []


def another(tmp_path: Path, number: int) -> Path:
    """A file with other bytes."""
    return llama(reference("llama gqa").folder, tmp_path / f"{number}.gguf", values={"general.name": str(number)})


def same(one: Loaded, other: Loaded) -> bool:
    theirs = reference("llama gqa").runs[0]
    with torch.inference_mode():
        a, b = (each.model(theirs.source) for each in (one, other))
    return distance(a, b) == 0 and distance(a[0], theirs.out) < 1e-4


def unreadable(*_: Any) -> Any:
    raise AssertionError("the file was unpacked again")


def test_the_second_time_it_is_mapped(base: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(file)
    (folder,) = folders(base)
    assert folder == f"{cache.digest_of([file])}-{cache.FORMAT_VERSION}"
    monkeypatch.setattr(model, "read_model", unreadable)
    second = load(file)
    assert same(first, second)
    assert first.chat_template is not None and first.chat_template.text == "{{ 1 }}\r\n"
    assert first.chat_template == second.chat_template
    assert (
        first.no_tokenizer == second.no_tokenizer == "It has no vocabulary, so it reads token numbers only: ids=[...]."
    )
    weights = [each.model.get_parameter("decoder.blocks.0.mlp.up.weight") for each in (first, second)]
    maps = Path("/proc/self/maps")
    if maps.exists():  # both lie in the one file that every process shares
        spans = [
            line.split()
            for line in maps.read_text().splitlines()
            if line.endswith("model.safetensors") and folder in line
        ]
        ends = [[int(end, 16) for end in span[0].split("-")] for span in spans]
        assert all(any(low <= weight.data_ptr() < high for low, high in ends) for weight in weights)


def test_a_file_that_changed_is_another_one(base: Path, file: Path, tmp_path: Path) -> None:
    load(file)
    shutil.copy(llama(reference("llama mha").folder, tmp_path / "other.gguf"), file)
    assert load(file).config.n_kv_heads == 6
    assert len(folders(base)) == 2


def test_a_digest_is_remembered_until_a_file_changes(base: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = file.stat().st_mtime - 100
    os.utime(file, (long_ago, long_ago))
    monkeypatch.setattr(cache, "STABLE_SECONDS", -1.0)
    digest = cache.digest_of([file])
    with monkeypatch.context() as changed:
        changed.setattr(cache.hashlib, "file_digest", unreadable)
        assert cache.digest_of([file]) == digest
    with file.open("r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"!")
    os.utime(file, (long_ago, long_ago))  # as a copy with its times does
    assert cache.digest_of([file]) != digest


def test_on_a_full_disk_it_works_from_memory(base: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = load(file)
    shutil.rmtree(base)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as changed:
        changed.setattr(cache.os, "fsync", full)
        assert same(load(file), kept)
    assert folders(base) == []  # and leaves no half
    with monkeypatch.context() as changed:
        changed.setattr(cache, "SPARE_BYTES", 1 << 60)
        assert same(load(file), kept)
    monkeypatch.setattr(cache.Path, "mkdir", full)
    assert same(load(file), kept)


def test_without_a_cache_it_works_from_memory(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_CACHE", "off")
    assert load(file).config.n_heads == 6
    assert cache.place() is None
    monkeypatch.setenv("HEADLIGHT_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.place() == tmp_path / "headlight" / "gguf"


def test_those_used_longest_ago_go_first(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [another(tmp_path, n) for n in range(3)]
    names = [f"{cache.digest_of([file])}-{cache.FORMAT_VERSION}" for file in files]
    load(files[0])
    size = sum(path.stat().st_size for path in (base / names[0]).iterdir())
    monkeypatch.setattr(cache, "MAX_BYTES", int(2.5 * size))
    load(files[1])
    for age, name in ((10, names[0]), (20, names[1])):
        used = (base / name).stat().st_mtime - age
        os.utime(base / name, (used, used))
    load(files[2])
    assert folders(base) == sorted([names[0], names[2]])
    monkeypatch.setattr(cache, "MAX_BYTES", 1000)  # less than one model
    load(files[1])
    assert folders(base) == sorted([names[0], names[2]])


def test_a_folder_that_is_not_whole_is_made_again(base: Path, file: Path) -> None:
    load(file)
    weights = base / folders(base)[0] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    load(file)
    assert cache.find(cache.digest_of([file])) is not None


def test_a_process_that_was_faster_is_taken_at_its_word(base: Path, file: Path) -> None:
    read = model.read_model([file])
    digest = cache.digest_of([file])
    assert cache.keep(digest, read) == cache.keep(digest, read) == base / f"{digest}-{cache.FORMAT_VERSION}"
    assert len(folders(base)) == 1


def test_parts_that_were_left_go(base: Path, file: Path) -> None:
    for name, age in (("part-old", 2 * cache.ABANDONED_SECONDS), ("part-new", 0)):
        (base / name).mkdir(parents=True)
        made = (base / name).stat().st_mtime - age
        os.utime(base / name, (made, made))
    load(file)
    assert "part-old" not in folders(base) and "part-new" in folders(base)


def test_numbers_that_are_not_finite_are_refused_and_not_kept(base: Path, file: Path) -> None:
    last = read_header(file).tensors[-1]
    with file.open("r+b") as opened:
        opened.seek(last.start)
        opened.write(b"\0\0\xc0\x7f")
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"model\.gguf: the tensor .* holds numbers that are not finite"):
            load(file)
    assert folders(base) == []


@pytest.mark.parametrize("name", ["llama gqa", "llama mqa, tied"])
def test_the_head_lies_in_the_cache_as_a_processor_wants_it(
    name: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is mapped, and not turned round again; and it is the same tensor as without a cache."""
    path = llama(reference(name).folder, tmp_path / "other.gguf")
    load(path)
    mapped = load(path).model
    monkeypatch.setenv("HEADLIGHT_CACHE", "off")
    plain = load(path).model
    heads = [model.get_parameter("head.unembed.weight") for model in (mapped, plain)]
    assert torch.equal(*heads) and all(head.t().is_contiguous() for head in heads)
    for key, value in plain.state_dict().items():
        assert torch.equal(mapped.state_dict()[key], value), key
    half = load(path, dtype=torch.bfloat16).model
    assert torch.equal(half.get_parameter("head.unembed.weight"), heads[1].bfloat16())


def test_a_file_of_others_is_not_read_by_columns(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(reference("llama gqa").folder, folder)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt", "by_columns": "lm_head.weight"})
    theirs = reference("llama gqa").runs[0]
    with torch.inference_mode():
        assert distance(load(folder).model(theirs.source)[0], theirs.out) < 1e-4


def test_what_opening_does_is_told(base: Path, file: Path) -> None:
    told: list[tuple[str, int, int]] = []
    load(file, progress=lambda said, done, total: told.append((said, done, total)))
    read = [(done, total) for said, done, total in told if said == cache.READ.format(name=file.name)]
    unpacked = [(done, total) for said, done, total in told if said == cache.UNPACKED.format(name=file.name)]
    assert read[-1] == (file.stat().st_size, file.stat().st_size)
    assert [done for done, _ in unpacked] == sorted({done for done, _ in unpacked}) and unpacked[-1][0] == unpacked[-1][
        1
    ]
    assert len(told) == len(read) + len(unpacked)


def test_what_does_not_fit_into_memory_is_not_unpacked(base: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SMALL", 0)
    monkeypatch.setattr(device, "free_bytes", lambda _: 7)
    with pytest.raises(TooLarge, match=r"weights of this .* model would need"):
        load(file)
    assert folders(base) == []
