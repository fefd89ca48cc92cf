"""Place: the memory that a model may use: that of GPUs, of this machine, or a number of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ..device import total_bytes
from ..errors import ConfigError
from ..memory import MiB, free_bytes
from .devices import DEVICES, Device, device_named

HERE = "this machine"


@dataclass(frozen=True)
class Place:
    """Bytes of one GPU, or of a machine. A model is split over `cards` such GPUs.

    total    all of its memory
    kept     reserved by the driver of a GPU, or in use on a machine
    context  taken on a GPU by a program without tensors (core.plan.devices: known only for NVIDIA)
    device   the GPU, if it is one of DEVICES
    """

    name: str
    total: int
    kept: int
    context: int
    cards: int = 1
    device: Device | None = None

    def __post_init__(self) -> None:
        if self.cards < 1:
            raise ConfigError(f"cards ({self.cards}) must be at least 1")
        for name in ("total", "kept", "context"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} ({getattr(self, name)}) must not be negative: it is in bytes")

    @property
    def budget(self) -> int:
        """Bytes that a model may use on one GPU."""
        return self.total - self.kept - self.context

    def with_cards(self, cards: int) -> Place:
        """The same with `cards` GPUs. Raises ConfigError for less than 1."""
        return replace(self, cards=cards)


def on_card(device: Device | str, cards: int = 1) -> Place:
    """One or several GPUs of a kind, by the Device or its name. Raises ConfigError for an unknown name."""
    known = device_named(device) if isinstance(device, str) else device
    if known is None:
        raise ConfigError(f"there is no card {device!r} here: choose one of {', '.join(item.name for item in DEVICES)}")
    return Place(
        known.name, known.mebibytes * MiB, known.kept_mebibytes * MiB, known.context_mebibytes * MiB, cards, known
    )


def on_machine() -> Place:
    """The total and free memory of this machine, within the limits of its container."""
    here = torch.device("cpu")
    free = max(0, free_bytes(here))
    total = max(total_bytes(here), free)
    return Place(HERE, total, total - free, 0)


def of_bytes(n: int, name: str) -> Place:
    """A budget of n bytes. Raises ConfigError for negative numbers."""
    return Place(name, n, 0, 0)
