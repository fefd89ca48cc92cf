"""The run that a screen shows: its link's, as what is chosen in its room changes it. Each room says what its choices mean for the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from app.session import service
from app.session.screen import Screen
from core.edits import Intervention
from core.run.request import Request
from core.service import Facts

# The run that a room shows: of the request of a link, which another model may read by now, and of the link itself.
RunOf = Callable[[Request, Screen], Awaitable[Request]]

_rooms: Mapping[str, RunOf | None] | None = None  # room, as a new or an old link says it -> what its choices mean


def know(rooms: Mapping[str, RunOf | None]) -> None:
    """Told by the registry at the start: for every room, as links say it, the run that it shows. It replaces what was told before.

    None is for a room whose choices leave its run as it is.
    """
    global _rooms
    _rooms = dict(rooms)


async def resolve(there: Screen, model: str = "") -> Request:
    """The run on a screen, as its room shows it: with a painted mask, an order of the words, words that were written.

    `model` reads it in place of the link's own, where it is given. A room that does not exist changes nothing. Raises Refused, and
    ValueError for choices that cannot be read.
    """
    if _rooms is None:
        raise LookupError("the registry has not told the rooms yet")
    request = replace(there.request, model_id=model) if model else there.request
    run_of = _rooms.get(there.room)
    return request if run_of is None else await run_of(request, there)


def edited(request: Request, edits: Sequence[Intervention]) -> Request:
    """The same run with these edits after its own."""
    return replace(request, interventions=(*request.interventions, *edits))


def edited_as_read(request: Request, facts: Facts, edits: Sequence[Intervention]) -> Request:
    """The same of a run that is there: the model reads the same text, also a target that it has written itself."""
    own = request.target_text or (facts.target.text if facts.target is not None else None)
    return edited(replace(request, target_text=own, write=0), edits)


async def facts_of(request: Request) -> Facts:
    """What is known of a run; it is run for that where it was not. Raises Refused."""
    asked = service.service()
    return await asked.facts(await asked.submit(request))
