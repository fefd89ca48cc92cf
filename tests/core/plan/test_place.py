"""Places: what a card, a machine or a number of bytes leaves to a model."""

from __future__ import annotations

import sys

import pytest
import torch

from core.device import total_bytes
from core.errors import ConfigError
from core.plan import DEVICES, MemoryBudget, of_bytes, on_card, on_machine

MiB = 1 << 20


def test_a_card_gives_what_neither_its_driver_nor_a_context_takes() -> None:
    place = on_card("rtx-4090")
    assert place.name == "RTX 4090"
    assert (place.total, place.kept, place.context) == (24_564 * MiB, 357 * MiB, 300 * MiB)
    assert place.budget == 23_907 * MiB  # "24 GB" is neither 24 · 10⁹ nor 24 · 2³⁰
    for device in DEVICES:
        assert on_card(device, 4) == on_card(device.name).with_cards(4)
        assert on_card(device).budget == device.memory - device.context_mebibytes * MiB > 0


def test_only_cards_with_cuda_have_a_context_here() -> None:
    assert {device.name for device in DEVICES if not device.context_mebibytes} == {
        "MI300X",
        "M3 Max",
        "M4 Max",
        "M2 Ultra",
    }
    assert {device.name for device in DEVICES if device.unified} == {"M3 Max", "M4 Max", "M2 Ultra"}


def test_a_machine_gives_what_is_free_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["core.plan.verdict"], "free_bytes", lambda device: 3000 * MiB)
    place = on_machine()
    assert (place.budget, place.context, place.device) == (3000 * MiB, 0, None)
    assert place.total == max(total_bytes(torch.device("cpu")), 3000 * MiB) == place.kept + place.budget
    monkeypatch.setattr(sys.modules["core.plan.verdict"], "free_bytes", lambda device: 1 << 60)  # more than the machine says that it has
    assert (on_machine().kept, on_machine().budget) == (0, 1 << 60)


def test_bytes_of_ones_own() -> None:
    assert of_bytes(5, "mine") == MemoryBudget("mine", 5, 0, 0)
    assert of_bytes(5, "mine").budget == 5


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"there is no card 'abacus' here: choose one of T4, L4"):
        on_card("abacus")
    with pytest.raises(ConfigError, match=r"cards \(0\) must be at least 1"):
        on_card("T4", 0)
    with pytest.raises(ConfigError, match=r"total \(-1\) must not be negative"):
        of_bytes(-1, "none")
