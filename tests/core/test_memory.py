"""What is free is counted as the system counts it, and whatever would not fit is refused with both numbers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import core
from core import checkpoints, device
from core.errors import TooLarge
from core.read import report
from tests.core.conftest import make_loaded

CPU = torch.device("cpu")
MiB = 1 << 20


def group(folder: Path, **files: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        folder.joinpath(name.replace("__", ".")).write_text(f"{content}\n", encoding="utf-8")
    return folder


def inside(folder: Path, text: str) -> Path:
    own = folder / "own"
    own.write_text(text, encoding="utf-8")
    return own


def test_file_cache_counts_as_free_in_a_container(tmp_path: Path) -> None:
    stat = f"anon {100 * MiB}\nfile {700 * MiB}\ninactive_file {600 * MiB}\nactive_file {100 * MiB}"
    group(tmp_path, memory__max=1000 * MiB, memory__current=900 * MiB, memory__stat=stat)
    assert device.container_free(tmp_path, inside(tmp_path, "0::/\n")) == 700 * MiB


def test_the_first_version_of_control_groups_is_read_as_well(tmp_path: Path) -> None:
    stat = f"inactive_file 1\ntotal_inactive_file {200 * MiB}"
    files = {"memory__limit_in_bytes": 512 * MiB, "memory__usage_in_bytes": 400 * MiB, "memory__stat": stat}
    group(tmp_path / "memory", **files)
    assert device.container_free(tmp_path, tmp_path / "absent") == 312 * MiB


def test_the_tightest_group_above_a_process_counts(tmp_path: Path) -> None:
    group(tmp_path, memory__max="max", memory__current=5 * MiB)
    group(tmp_path / "machine", memory__max=300 * MiB, memory__current=100 * MiB)
    group(tmp_path / "machine" / "job", memory__max=900 * MiB, memory__current=10 * MiB)
    group(tmp_path / "memory" / "old", memory__limit_in_bytes=150 * MiB, memory__usage_in_bytes=0)
    assert device.container_free(tmp_path, inside(tmp_path, "0::/machine/job\n")) == 200 * MiB
    own = inside(tmp_path, "7:cpu:/other\n4:memory:/old\n0::/machine/job\n")
    assert device.container_free(tmp_path, own) == 150 * MiB


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    group(tmp_path, memory__max="max", memory__current=5 * MiB)
    assert device.container_free(tmp_path, tmp_path / "absent") == 1 << 62


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(1 << 50),
        lambda: np.empty(1 << 50),
        lambda: bytearray(1 << 60),
    ],
    ids=["torch", "numpy", "python"],
)
def test_an_allocator_that_fails_becomes_a_sentence_with_both_numbers(
    allocate: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda device: 123 * MiB)
    with pytest.raises(TooLarge) as caught, device.oom_guard(CPU, "This run"):
        allocate()
    said = str(caught.value)
    assert said.startswith("This run needed ") and "123 MiB are free" in said and "smaller model" in said


def test_a_refusal_does_not_keep_the_tensors_of_what_failed() -> None:
    kept: list[weakref.ref[torch.Tensor]] = []

    def fails() -> None:
        tensor = torch.zeros(100)
        kept.append(weakref.ref(tensor))
        torch.empty(1 << 50)

    with pytest.raises(TooLarge) as caught, device.oom_guard(CPU, "This run"):
        fails()
    assert caught.value is not None and kept[0]() is None


def test_the_bytes_that_an_allocator_was_asked_for_are_said() -> None:
    for message, needed in (
        ("CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity of 79.10 GiB", "20,992 MiB"),
        (
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1073741824 bytes. Error code 12",
            "1,024 MiB",
        ),
        (
            "MPS backend out of memory (MPS allocated: 1.00 GB). Tried to allocate 2.00 GiB on private pool.",
            "2,048 MiB",
        ),
        ("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: not enough memory", "more memory"),
    ):
        with pytest.raises(TooLarge, match=f"needed {needed}"), device.oom_guard(CPU, "This run"):
            raise RuntimeError(message)


def test_other_errors_pass_through() -> None:
    with pytest.raises(RuntimeError, match="shapes"), device.oom_guard(CPU, "This run"):
        raise RuntimeError("shapes do not match")


def test_weights_that_do_not_fit_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda device: 30 * MiB)
    with pytest.raises(TooLarge, match=r"weights of this BERT model would need 1\d\d MiB, and 30 MiB are free"):
        checkpoints.load("minilm")


def test_a_map_that_does_not_fit_is_refused_and_a_part_of_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    record = core.trace(make_loaded(position="rotary"), ids=[1] * 2000).attention[0]
    monkeypatch.setattr(device, "free_bytes", lambda device: 20 * MiB)
    for whole in (record.pattern, record.scores, record.raw):
        with pytest.raises(TooLarge, match=r"need \d+ MiB, and 20 MiB are free. Ask for fewer heads"):
            whole()
    assert record.pattern(0, slice(0, 1000)).shape == (1, 1000, 2000)


def test_what_capture_would_keep_is_refused_when_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda device: 1 * MiB)
    q = torch.zeros(1, 4, 40_000, 16)

    class Attends(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(x, x[:, :, :2], x[:, :, :2])

    with pytest.raises(TooLarge, match="attention number 0 keeps would need"), core.capture(module := Attends()):
        module(q.expand(4, -1, -1, -1))


def test_an_archive_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = core.trace(make_loaded(position="rotary"), ids=[1] * 700)
    monkeypatch.setattr(report, "free_bytes", lambda device: 1 * MiB)
    with pytest.raises(TooLarge, match="archive of every head's weights would need"):
        report.write_npz(run, tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()
