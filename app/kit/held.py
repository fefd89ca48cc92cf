"""Rooms inside of a room: one that shows others registers here, and names and draws them without importing any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app import languages
from app.kit.room import Room
from app.session import room as session_room

_holders: set[str] = set()
_rooms: Mapping[str, Room] = {}  # by id, in the order of the bar


def register(room: str) -> None:
    """This room shows others: their parameters stay in the address beside its own."""
    _holders.add(room)


def know(rooms: Sequence[Room]) -> None:
    """Told by the registry at the start. It replaces what was told before."""
    global _rooms
    _rooms = {room.id: room for room in rooms}  # at once: `make dev` tells it while other scripts read it


def holds(room: str) -> bool:
    """Whether a room shows others."""
    return room in _holders


def names() -> dict[str, str]:
    """{room: its title}"""
    return {room.id: languages.translated(room.title) for room in _rooms.values()}


def show(room: str) -> None:
    """Draw a room inside of the one on the screen. Raises KeyError for one that does not exist."""
    session_room.hold(room)
    _rooms[room].show()
