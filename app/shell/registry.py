"""The rooms there are. A room is a folder under app/rooms with a ROOM, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import resolve_name

from app import languages
from app.kit import held
from app.kit.room import Room
from app.session import resolving
from app.transport import edited

ROOMS: tuple[str, ...] = (  # the folders, in the order of the bar; a visit begins in the first
    "explore",
    "step",
    "masks",
    "positions",
    "generate",
    "whatif",
    "train",
    "shapes",
    "memory",
    "compute",
    "lessons",
)


@edited.cached
def rooms() -> tuple[Room, ...]:
    """The rooms in the order of the bar. Raises ValueError where a folder and what it declares do not fit.

    What lies below the rooms and needs to know of them is told here: no room asks for another.
    """
    folder = resolve_name("..rooms", __package__)
    edited.forget_changed(folder)
    found: list[Room] = []
    for name in ROOMS:
        with languages.speaking(
            languages.ENGLISH
        ):  # what a module makes of words while it is imported is for all visitors
            room = getattr(import_module(f"{folder}.{name}"), "ROOM", None)
        if not isinstance(room, Room) or room.id != name:
            raise ValueError(f"app/rooms/{name}/__init__.py needs a ROOM whose id is {name!r}")
        found.append(room)
    held.know(found)
    resolving.know({said: room.run for room in found for said in (room.id, *room.old)})
    return tuple(found)


def redirects() -> dict[str, str]:
    """What old links say of a room -> its id."""
    return {said: room.id for room in rooms() for said in room.old}


def old_states() -> dict[str, Mapping[str, str]]:
    """What old links say of a room -> what they mean of its parameters, where that is not how it opens."""
    return {said: state for room in rooms() for said, state in room.old.items() if state}


def params_elsewhere(room: str) -> set[str]:
    """The names in the address that only other rooms have."""
    known = params()
    return {name for names in known.values() for name in names} - {*known.get(room, ())}


def params() -> dict[str, list[str]]:
    """The names in the address that are a room's own: {room: names}."""
    every = [param.name for room in rooms() for param in room.params]
    return {room.id: every if held.holds(room.id) else [param.name for param in room.params] for room in rooms()}
