"""Where models run: what the operator's two variables mean, and what is said to a wrong one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from core import device as devices
from core.device import default_budget, pick_device, pick_dtype, total_bytes
from core.errors import ConfigError

Machine = Callable[..., None]
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """machine(cards, bf16): a machine with so many cards."""

    def make(cards: int, bf16: bool = True) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: bf16)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)

    return make


def test_without_a_word_the_best_device_is_taken(machine: Machine) -> None:
    for said in ({}, {"HEADLIGHT_DEVICE": ""}, {"HEADLIGHT_DEVICE": " Auto "}):
        machine(0)
        assert pick_device(said) == CPU
        machine(2)
        assert pick_device(said) == CUDA


def test_the_operator_s_word_counts(machine: Machine) -> None:
    machine(2)
    assert pick_device({"HEADLIGHT_DEVICE": "cpu"}) == CPU
    assert pick_device({"HEADLIGHT_DEVICE": "cuda:1"}) == torch.device("cuda:1")


@pytest.mark.parametrize(
    ("cards", "word", "sentence"),
    [
        (0, "cuda", "HEADLIGHT_DEVICE is 'cuda', but this machine offers auto or cpu."),
        (1, "cuda:1", "HEADLIGHT_DEVICE is 'cuda:1', but this machine offers auto, cuda, cuda:0 or cpu."),
        (1, "gpu", "HEADLIGHT_DEVICE is 'gpu', but this machine offers auto, cuda, cuda:0 or cpu."),
    ],
)
def test_a_device_that_is_not_there(machine: Machine, cards: int, word: str, sentence: str) -> None:
    machine(cards)
    with pytest.raises(ConfigError) as error:
        pick_device({"HEADLIGHT_DEVICE": word})
    assert str(error.value) == sentence


def test_half_precision_is_for_cards_that_have_it(machine: Machine) -> None:
    machine(1)
    assert pick_dtype(CUDA, {}) == torch.bfloat16
    assert pick_dtype(CPU, {}) == torch.float32
    assert pick_dtype(CUDA, {"HEADLIGHT_DTYPE": "float32"}) == torch.float32
    assert pick_dtype(CPU, {"HEADLIGHT_DTYPE": "float16"}) == torch.float16
    machine(1, bf16=False)
    assert pick_dtype(CUDA, {}) == torch.float32
    with pytest.raises(ConfigError, match=r"which this card cannot multiply. Choose auto, float32 or float16"):
        pick_dtype(CUDA, {"HEADLIGHT_DTYPE": "bfloat16"})


def test_a_format_that_is_none() -> None:
    with pytest.raises(ConfigError) as error:
        pick_dtype(CPU, {"HEADLIGHT_DTYPE": "int4"})
    assert str(error.value) == "HEADLIGHT_DTYPE is 'int4', but it must be auto, float32, bfloat16 or float16."


def test_budgets_are_shares_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "total_bytes", lambda device: 64 << 30)
    assert (default_budget(CUDA).models, default_budget(CUDA).traces) == (32 << 30, 16 << 30)
    assert (default_budget(CPU).models, default_budget(CPU).traces) == (8 << 30, 8 << 30)


def test_a_container_s_limit_is_the_machine_s(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = total_bytes(CPU)
    read = devices.Path.read_text

    def limited(path: Path, *args: Any, **named: Any) -> str:
        return "1048576\n" if str(path) == "/sys/fs/cgroup/memory.max" else read(path, *args, **named)

    monkeypatch.setattr(devices.Path, "read_text", limited)
    assert total_bytes(CPU) == 1 << 20 < whole


def test_double_precision_is_the_processor_s_alone() -> None:
    """Apple's cards have no float64: what is worked out in it is brought to the processor first, or asks highest_precision()."""
    core = Path(devices.__file__).parent
    for path in sorted(core.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                on, name = ast.unparse(node.func.value), node.func.attr
                doubled = name == "double" or (name == "to" and any("float64" in ast.unparse(a) for a in node.args))
                assert not doubled or on.endswith(".cpu()"), f"{path.name}:{node.lineno}: {ast.unparse(node)}"
    assert devices.highest_precision(torch.device("mps")) == torch.float32
    assert devices.highest_precision(CPU) == torch.float64
