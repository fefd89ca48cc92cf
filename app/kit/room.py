"""Room: what a view declares of itself, and all that the shell reads of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.routing import Route

from app.kit.params import Param
from core.edits import Intervention
from core.learn.watched_training import Spec
from core.service import Facts, News


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
