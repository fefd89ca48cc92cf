"""The cards of the roofline with figures that a visitor has typed over them, and how a link says so: "rtx-4090:1008:200"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.kit import numbers
from app.kit.numbers import quoted
from app.rooms.compute import words
from core.plan import DEVICES, Device

FIELDS = ("gigabytes_per_second", "teraflops")
MOST = 1e6  # GB/s and TFLOP/s: a thousand times what there is
LONGEST = 2000  # characters of a link


def slug(device: Device) -> str:
    """The name of a card as a link has it."""
    return device.name.lower().replace(" ", "-")


def changed(device: Device, figures: Mapping[str, Any]) -> Device:
    """The card with other figures, which its source then says. Raises ValueError where one is no rate."""
    new: dict[str, float] = {}
    for name in FIELDS:
        value = figures.get(name, getattr(device, name))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST:
            raise ValueError(numbers.filled(words.CARDS_WRONG, card=device.name, most=int(MOST)))
        new[name] = int(value) if value == int(value) else value
    published = next(card for card in DEVICES if card.name == device.name)
    if all(new[name] == getattr(published, name) for name in FIELDS):
        return published
    return replace(published, **new, source=words.CARDS_CHANGED.format(source=published.source))  # type: ignore[arg-type]


def read(text: str) -> tuple[list[Device], list[str]]:
    """All cards, with the figures of a link; and a sentence for each part of it that says nothing."""
    found, wrong = {slug(device): device for device in DEVICES}, []
    parts = [part for part in text[:LONGEST].split(",") if part]
    for part in parts:
        name, *figures = part.split(":")
        try:
            rates: dict[str, float] = dict(zip(FIELDS, map(float, figures), strict=True))
            found[name] = changed(found[name], rates)
        except (KeyError, ValueError):
            wrong.append(words.CARDS_UNREADABLE.format(asked=quoted(part)))
    return list(found.values()), wrong


def written(cards: Sequence[Device]) -> str:
    """What a link says of them: nothing of those that are as published."""
    mine = [card for card in cards if card not in DEVICES]
    return ",".join(f"{slug(card)}:{card.gigabytes_per_second:g}:{card.teraflops:g}" for card in mine)
