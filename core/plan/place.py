"""Place: where a model is to be held, and how many bytes of it a model may take: a card, this machine, or a number of bytes."""

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
    """Bytes of one card, or of a machine. `cards` such cards hold a model together, each a part of it.

    total    all of its memory
    kept     what the driver of a card takes, or on a machine what is in use
    context  what a program takes on a card before it has a tensor (core.plan.devices: NVIDIA's alone is known)
    device   the card, where it is one of DEVICES
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
        """Bytes that a model may take of one card."""
        return self.total - self.kept - self.context

    def with_cards(self, cards: int) -> Place:
        """So many of the same card. Raises ConfigError for less than 1."""
        return replace(self, cards=cards)


def on_card(device: Device | str, cards: int = 1) -> Place:
    """A card, or several alike, by its record or its name in DEVICES. Raises ConfigError for a name that is not there."""
    found = device_named(device) if isinstance(device, str) else device
    if found is None:
        raise ConfigError(f"there is no card {device!r} here: choose one of {', '.join(one.name for one in DEVICES)}")
    return Place(
        found.name, found.mebibytes * MiB, found.kept_mebibytes * MiB, found.context_mebibytes * MiB, cards, found
    )


def on_machine() -> Place:
    """The memory of this machine, as far as its container allows, and of that what is free now."""
    here = torch.device("cpu")
    free = max(0, free_bytes(here))
    total = max(total_bytes(here), free)
    return Place(HERE, total, total - free, 0)


def of_bytes(n: int, name: str) -> Place:
    """A budget of one's own: n bytes, all of them for a model. Raises ConfigError for less than none."""
    return Place(name, n, 0, 0)
