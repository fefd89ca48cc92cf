"""A visitor's own lesson: its text is read and its faults are said; on a machine of one's own its steps are also run, and it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.kit import numbers
from app.rooms.lessons.written import steps, table, words
from app.rooms.lessons.written.decide import decide, faults_of, trial
from app.rooms.lessons.written.faults import Fault, Unfit
from app.rooms.lessons.written.file import MOST_STEPS, read_whole
from app.rooms.lessons.written.folder import MOST_BYTES
from app.rooms.lessons.written.own import desk
from app.session import found, service
from app.transport import limits, visitors, work
from app.transport.routes import answering, whole
from core.errors import HeadlightError

NEVER_KEPT = {"Cache-Control": "no-store"}
LONGEST = 60  # signs of the name of a file that an address has


class Unread(Exception):
    """A body that is no lesson's text: the sentence, and the status of the answer."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def reading(make: Callable[[Request, str], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A route whose body is the text of a lesson. Nothing of it is kept but where the route says so."""

    async def answer(request: Request) -> Response:
        try:
            return await make(request, await _text(request))
        except Unread as error:
            return PlainTextResponse(str(error), error.status, headers=NEVER_KEPT)

    return answering(answer)


async def _text(request: Request) -> str:
    """Raises Unread."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            n = limits.read(request.headers.get("content-length", ""))
            if n is None:  # it comes in pieces, and how many is not known
                raise Unread(words.LARGE_FILE.format(most=MOST_BYTES), 413)
            raise Unread(words.LARGE.format(n=numbers.whole(n), most=numbers.whole(MOST_BYTES)), 413)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread(words.OWN_NO_TEXT, 400) from None


def owned(make: Callable[[Request, str], Awaitable[Response]]) -> Callable[[Request, str], Awaitable[Response]]:
    """A route for the person whose machine this is alone: a lesson asks for many runs."""

    async def answer(request: Request, text: str) -> Response:
        if not found.is_owner(request.headers):
            return PlainTextResponse(words.OWN_ELSEWHERE, 403, headers=NEVER_KEPT)
        if not visitors.name_of(request.scope):
            return PlainTextResponse(words.OWN_NO_COOKIE, 403, headers=NEVER_KEPT)
        return await make(request, text)

    return answer


def told(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [{"line": fault.line, "said": str(fault)} for fault in faults]


@reading
async def check(_: Request, text: str) -> Response:
    """The faults that a reading finds, and each step, with faults or without."""
    lesson, sketches = await work.done(partial(read_whole, text))
    faults, hints = (lesson, ()) if isinstance(lesson, list) else ([], lesson.hints)
    return _said({"faults": told(faults), "hints": told(hints), "steps": [asdict(one) for one in sketches]})


@reading
@owned
async def rehearse(request: Request, text: str) -> Response:
    """One step decided by its runs: what is right, what each answer is told, and the numbers of the words that it shows."""
    lesson, _ = await work.done(partial(read_whole, text))
    if isinstance(lesson, list):
        return _said({"faults": told(lesson)})
    at = whole("at", request.query_params.get("at", "0"), 0, MOST_STEPS - 1)
    if at >= len(lesson.steps):
        return _said({"faults": []})
    try:
        decided = await decide(lesson, at, service.service())
    except Unfit as unfit:
        if isinstance(unfit.__cause__, HeadlightError):  # of the service, which may be busy
            raise unfit.__cause__ from None
        return _said({"faults": told([unfit.fault])})
    truth = steps.truth_of(lesson.steps[at], decided)
    return _said(
        {
            "faults": told(faults_of(lesson.steps[at], decided)),
            "truth": truth.json(),
            "language": lesson.language,
            "pictures": [asdict(one) for one in decided.pictures],
        }
    )


@reading
@owned
async def bring(request: Request, text: str) -> Response:
    """Read, run once and, without a fault, listed for this visitor from now on: the name of its first step. `name`: of its file."""
    lesson, _ = await work.done(partial(read_whole, text))
    if isinstance(lesson, list):
        return _said({"faults": told(lesson)})
    if faults := await trial(lesson, service.service()):
        return _said({"faults": told(faults)})
    stem = PurePosixPath(request.query_params.get("name", "")[:LONGEST]).stem
    name = table.named(table.OWN, stem)
    desk.put(visitors.name_of(request.scope), name.removeprefix(table.OWN).removeprefix("-"), lesson)
    return _said({"faults": [], "hints": told(lesson.hints), "step": f"{name}.1"})


def _said(what: dict[str, Any]) -> Response:
    return JSONResponse(what, headers=NEVER_KEPT)


ROUTES = [
    Route("/headlight/lessons/check", check, methods=["POST"]),
    Route("/headlight/lessons/rehearsal", rehearse, methods=["POST"]),
    Route("/headlight/lessons/own", bring, methods=["POST"]),
]
