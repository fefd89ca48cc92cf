"""The message of a room for any link: what the browser draws the room from, without a script of a visitor's."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.kit import stage
from app.kit.room import Message, Room, Run
from app.kit.stage import Followed
from app.session import chosen, resolving, screen, service
from app.session.screen import Screen
from app.shell import registry, words
from app.transport import messages
from app.transport.routes import BadParameter, answering, as_read, packed
from core.errors import UnknownRun
from core.service import Facts

NEWEST = {"Cache-Control": "no-store"}  # a message that was kept could be of a run that the server has let go


@answering
async def message(request: Request) -> Response:
    """Room `id` as its link says: /headlight/room/<id>?<link>.

    With was=<key of a run>, the place in the link was chosen on that run, and is looked for in the link's own. A run that is not there
    yet counts as one of the visitor's.
    """
    room = next((one for one in registry.rooms() if one.id == request.path_params["id"]), None)
    if room is None or room.message is None:
        return PlainTextResponse(words.NO_STAGE, 404, headers=NEWEST)
    run, said = None, request.query_params
    if room.of_run(said):
        there = _linked(request.url.query)
        run = Run(there.request, await resolving.facts_of(there.request))
        if was := said.get(chosen.WAS):
            said = await _carried(room, was, run.facts, said)
    made = await room.message(run, said)
    return as_read(request, await packed(assembled(room, run, said, made, request.query_params)), NEWEST)


def assembled(room: Room, run: Run | None, said: Mapping[str, str], made: Message, asked: Mapping[str, str]) -> bytes:
    """The message with what is chosen in it, as kit/browser/selection.js reads it: of what the link says (`asked`), carried to the run."""
    params = [param for param in room.params if param.name in made.values]
    known = chosen.read(said, made.values)
    followed = Followed(
        dict(made.values),
        stage.ruled(params, made.values, known.values, known.by_rule),
        stage.read_of(params, asked),
        list(made.notes),
        made.shown,
        run.facts.key if run else "",
        screen.spelled_out(run.request) if run else {},
    )
    more = {
        "chosen": stage.selection(room.id, params, followed, run is not None),
        "cover": None,
        "notes": followed.notes,
    }
    return messages.assembled(messages.written(made.header), made.body, more)


def _linked(query: str) -> Screen:
    """The screen that a link leads to. Raises BadParameter."""
    if not screen.is_link(link := f"?{query}"):
        raise BadParameter(words.LINK_WITHOUT_TEXT)
    try:
        return screen.from_link(link)
    except ValueError as error:
        raise BadParameter(words.LINK_IN_VAIN.format(why=error)) from error


async def _carried(room: Room, was: str, facts: Facts, said: Mapping[str, str]) -> Mapping[str, str]:
    """A selection of another run, carried over to this one; without a place if that run is no longer known."""
    try:
        before = await service.service().facts(was)
    except UnknownRun:
        before = None
    names = [param.name for param in room.params]
    found = chosen.carried(chosen.read(said, names), before, facts, chosen.of_text(room.id))
    return {**found.values, chosen.RULE: ",".join(found.by_rule)}


ROUTES = [Route("/headlight/room/{id}", message)]
