"""The rooms there are. A room is a folder under app/rooms with a ROOM, and one line here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from starlette.routing import Route

from app.kit.params import Param
from app.transport import edited
from core.edits import Intervention
from core.learn.watched_training import Spec
from core.service import Facts, News

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


@dataclass(frozen=True, kw_only=True)
class Room:
    """One view: what the shell reads of it."""

    id: str  # in links, for ever: the name of the folder, and never a caption
    title: str  # in the bar
    group: str  # of the bar: a key of bar.GROUPS
    line: str  # what one can do there, beside the title
    show: Callable[[], None]  # draws it, in the script of a visitor
    old: tuple[str, ...] = ()  # what links said for it before it had an id
    old_state: Mapping[str, str] = field(default_factory=dict)  # and what such a link means of its parameters
    titles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # parameter of a link -> {id: title}
    params: Sequence[Param] = ()  # what can be chosen in it, as links say it
    edits: Callable[[Facts, Mapping[str, str]], Awaitable[Sequence[Intervention]]] | None = (
        None  # of the run, that a link's choices ask for: what is on the screen is the run with these
    )
    # "text" or "target" of its run, where a link's choices put words behind it
    wrote: Callable[[Facts, Mapping[str, str]], Awaitable[Mapping[str, str]]] | None = None
    steps: int = 0  # of which the bar says how many were looked at; 0: it has none
    holds_rooms: bool = False  # whether it shows other rooms, with their parameters in the address
    kept: Callable[[Spec], News | None] | None = (
        None  # what a training came to that ended before, where the room has it
    )
    routes: Sequence[Route] = ()  # below the path that the page is served at


@edited.cached
def rooms() -> tuple[Room, ...]:
    """The rooms in the order of the bar. Raises ValueError where a folder and what it declares do not fit."""
    edited.forget_changed("app.rooms")
    found: list[Room] = []
    for name in ROOMS:
        room = getattr(import_module(f"app.rooms.{name}"), "ROOM", None)
        if not isinstance(room, Room) or room.id != name:
            raise ValueError(f"app/rooms/{name}/__init__.py needs a ROOM whose id is {name!r}")
        found.append(room)
    return tuple(found)


def redirects() -> dict[str, str]:
    """What old links say of a room -> its id."""
    return {said: room.id for room in rooms() for said in room.old}


def old_states() -> dict[str, Mapping[str, str]]:
    """What old links say of a room -> what they mean of its parameters, where that is not how it opens."""
    return {said: room.old_state for room in rooms() if room.old_state for said in room.old}


def titles() -> dict[str, Mapping[str, str]]:
    """What a link may name by an id, in any room: parameter -> {id: title}."""
    return {name: known for room in rooms() for name, known in room.titles.items()}


def params() -> dict[str, list[str]]:
    """The names in the address that are a room's own: {room: names}."""
    every = [param.name for room in rooms() for param in room.params]
    return {room.id: every if room.holds_rooms else [param.name for param in room.params] for room in rooms()}
