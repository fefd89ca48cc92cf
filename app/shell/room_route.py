"""The message of a room for any link: what the browser draws the room from, without a script of a visitor's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.kit.params import Param
from app.kit.room import Message, Room, Run
from app.session import chosen, resolving, screen, service
from app.session.screen import Screen
from app.shell import registry, words
from app.transport import messages, rate_limits
from app.transport.routes import BadParameter, answering, as_read, packed
from core.errors import Unknown
from core.run.request import Request as RunRequest
from core.service import Facts

NEWEST = {"Cache-Control": "no-store"}  # a message that was kept could be of a run that the server has let go
WAS = "was"  # the key of the run that the link's place was chosen on


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
        if wait := await _cost(there.request, request):
            return rate_limits.too_much("runs", wait)
        run = Run(there.request, await resolving.facts_of(there.request))
        if was := said.get(WAS):
            said = await _carried(room, was, run.facts, said)
    made = await room.message(run, said)
    return as_read(request, await packed(assembled(room, run, said, made)), NEWEST)


def assembled(room: Room, run: Run | None, said: Mapping[str, str], made: Message) -> bytes:
    """The message with what is chosen in it, as kit/browser/selection.js reads it.

    `ruled` are the names whose values a rule chose, `silent` those that a link leaves out while they are empty, and `remade` those of
    which a change takes another message.
    """
    params = [param for param in room.params if param.name in made.values]
    selection = {
        "values": made.values,
        "stamp": 1,
        "reported": 0,
        "of": run.facts.key if run else "",
        "ruled": [param.name for param in params if not isinstance(param.default, str) and not _is_said(param, said)],
        "silent": [param.name for param in params if param.default == ""],
        "remade": list(room.remade_by),
    }
    more = {"chosen": selection, "cover": None, "notes": list(made.notes)}
    return messages.assembled(messages.written(made.header), made.body, more)


def _is_said(param: Param, said: Mapping[str, str]) -> bool:
    return param.name in said and param.name not in said.get(chosen.RULE, "").split(",")


def _linked(query: str) -> Screen:
    """The screen that a link leads to. Raises BadParameter."""
    if not screen.is_link(link := f"?{query}"):
        raise BadParameter(words.LINK_WITHOUT_TEXT)
    try:
        return screen.from_link(link)
    except ValueError as error:
        raise BadParameter(words.LINK_IN_VAIN.format(why=error)) from error


async def _cost(asked: RunRequest, request: Request) -> float:
    """Charge a run that is not there to the visitor's account: the seconds to wait where it has none left."""
    try:
        await service.service().facts(asked.key)
    except Unknown:
        return rate_limits.accounts.take(rate_limits.visitor(request.scope), "runs")
    return 0.0


async def _carried(room: Room, was: str, facts: Facts, said: Mapping[str, str]) -> Mapping[str, str]:
    """What was chosen on another run, on this one. Of a run that is no longer known, all that the link says stays."""
    try:
        before = await service.service().facts(was)
    except Unknown:
        return said
    ruled = frozenset(said.get(chosen.RULE, "").split(",")) - {""}
    names: Sequence[str] = [param.name for param in room.params]
    place = {name: said[name] for name in chosen.SHARED if name in said}
    own = {name: said[name] for name in names if name in said and name not in chosen.SHARED}
    record = chosen.Chosen(place=place, options={room.id: own}, by_rule=ruled, facts=before)
    return chosen.carried(record, facts).values(room.id, chosen.SHARED)


ROUTES = [Route("/headlight/room/{id}", message)]
