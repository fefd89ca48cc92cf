"""Room: what a view declares of itself, and all that the shell reads of it; and the message that its picture is drawn from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import Route

from app.kit.params import Param
from app.session.resolving import RunOf
from core.run.request import Request
from core.service import Facts


@dataclass(frozen=True)
class Run:
    """A run that a room shows, and the request that it is of."""

    request: Request
    facts: Facts


@dataclass(frozen=True)
class Message:
    """Data from which the browser draws a room: a header, raw numbers, and the text of each parameter.

    `notes` has one sentence for each value of a link that the room does not have. `shown` is the argument that the parameters are read with.
    """

    header: Mapping[str, Any]
    values: Mapping[str, str]
    notes: Sequence[str] = ()
    shown: Any = None
    body: bytes = b""


# Arguments: the run, or None where the room shows no run of the visitor; and the parameters of a link
MessageOf = Callable[[Any, Mapping[str, str]], Awaitable[Message]]


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
    message: MessageOf | None = None  # for the browser; None for a room without a stage
    # Whether the message of a link is of a run, so that the link needs a text
    of_run: Callable[[Mapping[str, str]], bool] = lambda _: True
    routes: Sequence[Route] = ()  # below the path that the page is served at
