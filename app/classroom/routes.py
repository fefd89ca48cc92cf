"""Routes of the classroom: opening, joining, the stream of what changes, votes, and what only the teacher may do."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit import config as streamlit_config

from app.classroom import channel, codes, export, messages, page, pictures, results, sentences, square
from app.classroom.channel import Channel
from app.classroom.school import School
from app.classroom.state import MOST_FOLLOWERS, Asked, Classroom, Move, Outcome, Question, Screen
from app.classroom.steps import StepQuestion, offered
from app.session import service
from app.sizes import seen
from app.transport import admission, metrics, open_answers, rate_limits, routes, visitors
from app.transport import words as transport_words
from core.errors import HeadlightError, ServerBusy, UnknownRun
from core.service import MapTransform

KEY = "Headlight-Key"
ROOT = "/headlight/classroom"

school = School(secrets.token_bytes, time.monotonic)
_channels: dict[str, Channel] = {}


class Denied(Exception):
    """A message that changes nothing: why it is counted, its status, and the sentence."""

    def __init__(self, why: str, status: int, sentence: str, wait: float = 0) -> None:
        super().__init__(sentence)
        self.why, self.status, self.wait = why, status, wait


def guarded(make: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A route whose refusals are answers, counted and without a word of what was sent."""

    @wraps(make)
    async def answer(request: Request) -> Response:
        try:
            return await make(request)
        except Denied as denied:
            return _refused(denied.why, denied.status, str(denied), denied.wait)
        except messages.BadMessage as bad:
            return _refused("message", 413 if isinstance(bad, messages.TooLong) else 400, str(bad))
        except (UnknownRun, IndexError):  # no 404: that says that the class is over
            return _refused("run", 409, sentences.NO_RUN)
        except (HeadlightError, routes.BadParameter) as error:
            metrics.CLASS_REFUSED.labels("message").inc()
            return routes.refusal(error)

    return answer


def _refused(why: str, status: int, sentence: str, wait: float = 0) -> Response:
    metrics.CLASS_REFUSED.labels(why).inc()
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": str(math.ceil(wait))} if wait else {})
    return PlainTextResponse(sentence, status, headers=headers)


# who asks


def _class(request: Request) -> tuple[Classroom, str, bool]:
    """The class, the key, and whether it is the teacher's. One answer to a wrong code and a wrong key: neither says which codes there are."""
    code, key = codes.read(request.path_params["code"]), request.headers.get(KEY, "")
    found = school.find(code) if code else None
    if found is not None and key.isascii():
        if found.is_teacher(key):
            return found, key, True
        if found.is_follower(key):
            return found, key, False
    raise Denied("key", 404, sentences.NO_CLASS)


def _channel(found: Classroom) -> Channel:
    told = _channels.get(found.code)
    if told is None:  # it has just ended
        raise Denied("key", 404, sentences.NO_CLASS)
    return told


def _taught(request: Request) -> Classroom:
    found, _, is_teacher = _class(request)
    if not is_teacher:
        raise Denied("teacher", 403, sentences.ONLY_TEACHER)
    return found


# opening and joining


@rate_limits.costing("classes")
@guarded
async def open_class(request: Request) -> Response:
    """A class of the screen that is sent: its code, its teacher's key, its link below the page that the teacher's browser sees, and
    the square of the link, which no other route gives: one that draws any link would be anybody's."""
    said = {"page": "", **await messages.body(request)}
    screen, at = messages.fields(said, screen=dict, page=str)
    shown = await _screen(screen)
    try:
        found = school.open(shown, visitors.address_of(request.scope))
    except ServerBusy as full:
        raise Denied("full", 503, str(full)) from None
    _channels[found.code] = Channel(found, school.clock, lambda: _channels.pop(found.code, None))
    get = streamlit_config.get_option
    link = square.link(request, at, routes.BASE, get("server.address"), get("server.port"))
    told = {
        "code": found.code,
        "key": found.teacher_key,
        "link": link.of(found.code),
        "address": link.shown,
        "only_here": link.unreachable,
        "square": square.svg(link.of(found.code)).decode(),
    }
    return JSONResponse(told, 201, headers={"Cache-Control": "no-store"})


@guarded
async def join(request: Request) -> Response:
    """Give a key to anyone who has the code. An earlier key of this class is returned, even if the door is closed."""
    messages.fields(await messages.body(request))
    code, key = codes.read(request.path_params["code"]), request.headers.get(KEY, "")
    found = school.find(code) if code else None
    if found is not None and (found.door or found.is_follower(key)):
        return _joined(code, key if found.is_follower(key) else found.join())
    if wait := rate_limits.balances.take(visitors.accounts_of(request.scope), "codes"):
        raise Denied("codes", 429, sentences.WRONG_CODES, wait)
    raise Denied("code", 404, sentences.NO_CLASS)


def _joined(code: str, key: str) -> Response:
    return JSONResponse({"code": code, "key": key}, headers={"Cache-Control": "no-store"})


# following


@guarded
async def events(request: Request) -> Response:
    """What changes, as server-sent events, the newest of each kind first; see channel.py."""
    found, key, is_teacher = _class(request)
    if admission.house.closing:
        raise Denied("closing", 503, transport_words.CLOSING, admission.AGAIN)
    told = _channel(found)
    if is_teacher:
        found.teacher_enters()
    elif not found.enter(key):
        raise Denied("full", 503, sentences.FULL_CLASS.format(n=MOST_FOLLOWERS))
    listener = told.listen(is_teacher, key)

    def left() -> None:
        told.listeners.discard(listener)
        if is_teacher:
            found.teacher_leaves(school.clock())
        else:
            found.leave(key)

    open_answers.here.lasts()
    return channel.Stream(listener.messages(), left)


@guarded
async def vote(request: Request) -> Response:
    """A follower says a place, {"q": question, "t": place}, or answers a step, {"q": question, "r": round, "a": answer}."""
    found, key, is_teacher = _class(request)
    said = await messages.body(request)
    if "a" in said:
        number, round, answer = messages.answer(said)
        outcome = "outside" if is_teacher else found.answer(key, number, round, answer, school.clock())
        if outcome == "closed":
            metrics.CLASS_REFUSED.labels("closed").inc()
            return JSONResponse(found.stage(), 409, headers={"Cache-Control": "no-store"})
    else:
        number, place = messages.vote(said)
        outcome = "outside" if is_teacher else found.vote(key, number, place, school.clock())
    return _voted(outcome)


def _voted(outcome: Outcome) -> Response:
    match outcome:
        case "counted":
            return Response(status_code=204)
        case "closed":
            raise Denied("closed", 400, sentences.NOT_OPEN)
        case "place":
            raise Denied("place", 400, sentences.NO_PLACE)
        case "often":
            raise Denied("often", 429, sentences.TOO_OFTEN, 5)
        case "full":
            raise Denied("full", 503, sentences.FULL_CLASS.format(n=MOST_FOLLOWERS))
        case "outside":  # a key of ours that no one follows with
            raise Denied("key", 404, sentences.NO_CLASS)


@guarded
async def picture(request: Request) -> Response:
    """What the view on the screen is drawn from: of the screen, the question or a round, and of nothing else."""
    found, _, _ = _class(request)
    asked = request.path_params["id"]
    screen = found.screen
    room = screen.packed if asked == screen.picture else None
    if room is None and asked not in found.runs():
        raise Denied("picture", 404, sentences.NO_PICTURE)

    async def make() -> bytes:
        return await pictures.message(asked) if room is None else room

    return await routes.kept(request, ("class", asked), make)  # every phone asks for it at once


# a step of a lesson


@guarded
async def step(request: Request) -> Response:
    """The question of a step, one body for all phones at each of its stages: q. The teacher's has the votes, once they may be seen."""
    found, _, is_teacher = _class(request)
    asked = found.step(routes.number(request, "q", 1, messages.LARGEST))
    if asked is None:
        raise Denied("closed", 409, sentences.NO_STEP)
    if is_teacher:
        return JSONResponse(asked.on_wall(), headers={"Cache-Control": "no-store"})

    async def make() -> dict[str, Any]:
        return asked.asked()

    told = await _channel(found).kept.get((asked.number, asked.round, asked.stage), make)
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


@guarded
async def class_csv(request: Request) -> Response:
    """Every step whose answer was shown, as a table, for the teacher."""
    body = "".join(export.csv_lines(_answered(request)))
    return _file(body, "text/csv; charset=utf-8", sentences.CLASS_FILE + ".csv")


@guarded
async def class_page(request: Request) -> Response:
    """The same as a page to keep."""
    return _file(export.page(_answered(request)), "text/html; charset=utf-8", sentences.CLASS_FILE + ".html")


def _answered(request: Request) -> list[StepQuestion]:
    asked = list(_taught(request).steps.values())
    if not asked:
        raise Denied("closed", 400, sentences.NOTHING_ANSWERED)
    return asked


def _file(body: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(body, media_type=kind, headers=headers)


# what came out


def _round(request: Request, found: Classroom) -> Question:
    asked = found.round(routes.number(request, "q", 1, messages.LARGEST))
    if asked is None:
        raise Denied("closed", 400, sentences.NOT_REVEALED)
    return asked


@guarded
async def likeness(request: Request) -> Response:
    """The class as a head, after the reveal: q."""
    found, _, _ = _class(request)
    asked = _round(request, found)
    if not asked.said:
        raise Denied("closed", 400, sentences.NOBODY_SAID)
    before = found.before(asked.number)

    async def make() -> dict[str, Any]:
        return await results.likeness(service.service(), asked, before if before is not None and before.said else None)

    kept = await _channel(found).kept.get(asked.number, make)  # every phone asks for it at once
    return JSONResponse(kept, headers={"Cache-Control": "no-store"})


@guarded
async def votes(request: Request) -> Response:
    """All counts of a question, after the reveal: q."""
    found, _, _ = _class(request)
    return JSONResponse(results.counts(_round(request, found)), headers={"Cache-Control": "no-store"})


@guarded
async def table(request: Request) -> Response:
    """The same as a file, for the teacher."""
    asked = _round(request, _taught(request))
    of = asked.asked
    run = await service.service().facts(of.run)
    record = next(site for site in run.sites if site.id == of.site).records[of.layer]
    row = await service.service().row(of.run, MapTransform(record, of.head), of.query)
    name = sentences.FILE.format(number=asked.number)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    body = "".join(results.csv_lines(run, asked, row.values))
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)


# teaching


@guarded
async def teach(request: Request) -> Response:
    """One command of the teacher's."""
    found = _taught(request)
    said = await messages.body(request)
    do = said.pop("do", None)
    command = COMMANDS.get(do) if isinstance(do, str) else None
    if command is None:
        raise messages.BadMessage(sentences.NOT_KNOWN.format(what=f"do must be one of {', '.join(COMMANDS)}"))
    answer = await command(found, said)
    return Response(status_code=204) if answer is None else JSONResponse(answer)


async def _show(found: Classroom, said: dict[str, Any]) -> None:
    (screen,) = messages.fields(said, screen=dict)
    found.show(await _screen(screen))


async def _screen(said: dict[str, Any]) -> Screen:
    return await pictures.screen_of(messages.shown(said))


async def _ask(found: Classroom, said: dict[str, Any]) -> dict[str, int]:
    asked: Asked = await pictures.asked_of(messages.question(said))
    return {"q": found.ask(asked)}


async def _step(found: Classroom, said: dict[str, Any]) -> dict[str, int]:
    asked = offered(messages.step(said))
    if asked is None:
        raise Denied("run", 409, sentences.NO_OFFER)
    return {"q": found.ask_step(asked, None if asked.picture is None else await asked.picture())}


def _moves(to: Move) -> Callable[[Classroom, dict[str, Any]], Awaitable[None]]:
    async def move(found: Classroom, said: dict[str, Any]) -> None:
        (number,) = messages.fields(said, q=int)
        if not found.move(number, to):
            raise Denied("closed", 400, sentences.NO_STAGE)

    return move


async def _hide(found: Classroom, said: dict[str, Any]) -> None:
    (on,) = messages.fields(said, on=bool)
    if not found.hide(on):
        raise Denied("closed", 400, sentences.NOT_OPEN)


async def _reveal(found: Classroom, said: dict[str, Any]) -> None:
    (number,) = messages.fields(said, q=int)
    if not found.reveal(number):
        raise Denied("closed", 400, sentences.NOT_OPEN)


async def _back(found: Classroom, said: dict[str, Any]) -> None:
    messages.fields(said)
    found.back()


async def _door(found: Classroom, said: dict[str, Any]) -> None:
    (is_open,) = messages.fields(said, open=bool)
    found.set_door(is_open)


async def _end(found: Classroom, said: dict[str, Any]) -> None:
    messages.fields(said)
    found.end()


COMMANDS: dict[str, Callable[[Classroom, dict[str, Any]], Awaitable[dict[str, int] | None]]] = {
    "screen": _show,
    "ask": _ask,
    "step": _step,
    "votes": _moves("votes"),
    "again": _moves("again"),
    "answer": _moves("answer"),
    "hide": _hide,
    "reveal": _reveal,
    "back": _back,
    "door": _door,
    "end": _end,
}


def begin() -> None:
    """The server begins: codes are of its own part, where it has one. Raises ValueError."""
    school.first = codes.ours()


def close() -> None:
    """The server ends: its streams do too."""
    channel.end_all(_channels.values())


metrics.CLASSES.set_function(lambda: len(school.classes()))
metrics.FOLLOWERS.set_function(lambda: sum(found.of for found in school.classes()))

ROUTES = [
    *page.ROUTES,
    *seen.ROUTES,
    Route(f"{ROOT}/open", open_class, methods=["POST"]),
    Route(f"{ROOT}/{{code}}/join", join, methods=["POST"]),
    Route(f"{ROOT}/{{code}}/events", events),
    Route(f"{ROOT}/{{code}}/vote", vote, methods=["POST"]),
    Route(f"{ROOT}/{{code}}/teach", teach, methods=["POST"]),
    Route(f"{ROOT}/{{code}}/picture/{{id}}", picture),
    Route(f"{ROOT}/{{code}}/step", step),
    Route(f"{ROOT}/{{code}}/class.csv", class_csv),
    Route(f"{ROOT}/{{code}}/class.html", class_page),
    Route(f"{ROOT}/{{code}}/likeness", likeness),
    Route(f"{ROOT}/{{code}}/votes", votes),
    Route(f"{ROOT}/{{code}}/votes.csv", table),
]
