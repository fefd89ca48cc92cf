"""Room: what a view declares of itself, and all that the shell reads of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.routing import Route

from app.kit.params import Param
from app.session.resolving import RunOf


@dataclass(frozen=True, kw_only=True)
class Room:
    """One view: what the shell reads of it."""

    id: str  # in links, for ever: the name of the folder, and never a caption
    title: str  # in the bar
    group: str  # of the bar: a key of bar.GROUPS
    line: str  # what one can do there, beside the title
    show: Callable[[], None]  # draws it, in the script of a visitor
    # What links said for it before it had an id, and what each of them means of its parameters beside how it opens.
    old: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    params: Sequence[Param] = ()  # what can be chosen in it, as links say it
    run: RunOf | None = None  # the run that a link to it shows, where what is chosen there changes it
    routes: Sequence[Route] = ()  # below the path that the page is served at
