"""A visitor's own text: taken, learnt, stopped, continued and let go. It is that visitor's alone, and never in a link."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app.rooms.train import words
from app.transport import rate_limits, routes
from app.transport.routes import answering
from core.errors import Refused
from core.learn.text_training import MOST, Text
from core.service import TextNews, TextTrainer

NEVER_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
UNITS = ("letters", "pieces")
TRAINER = TextTrainer()


@rate_limits.costing("trainings")
@answering
async def take(request: Request) -> Response:
    """The body is the text; from now on it is learnt, in place of any other of this visitor."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST:
            return PlainTextResponse(words.TEXT_TOO_LONG, 413, headers=NEVER_KEPT)
    unit = request.query_params.get("unit", "letters")
    if unit not in UNITS:
        raise routes.BadParameter(words.TEXT_UNIT)
    try:
        text = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return PlainTextResponse(words.TEXT_NO_TEXT, 400, headers=NEVER_KEPT)
    of = await run_in_threadpool(Text, text, "pieces" if unit == "pieces" else "letters")
    TRAINER.begin(rate_limits.visitor(request.scope), of)
    return Response(status_code=204, headers=NEVER_KEPT)


def line(news: TextNews) -> bytes:
    """One piece of news as a line of JSON."""
    return json.dumps(asdict(news), allow_nan=False).encode() + b"\n"


@answering
async def watch(request: Request) -> Response:
    """The news of this visitor's text, line by line, until it rests; nothing where there is none."""
    coming = TRAINER.watch(rate_limits.visitor(request.scope))
    try:
        first = await anext(coming)
    except Refused:
        return Response(status_code=204, headers=NEVER_KEPT)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(coming):
            yield line(first)
            async for news in coming:
                yield line(news)

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=NEVER_KEPT)


@answering
async def stop(request: Request) -> Response:
    """The run ends where its last frame is, and may continue from there."""
    TRAINER.stop(rate_limits.visitor(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def go_on(request: Request) -> Response:
    """A run that was stopped continues."""
    TRAINER.go_on(rate_limits.visitor(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def forget(request: Request) -> Response:
    """The text and all that was learnt from it are gone."""
    TRAINER.forget(rate_limits.visitor(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


ROUTES = [
    Route("/headlight/train/text", take, methods=["POST"]),
    Route("/headlight/train/text", watch),
    *(
        Route(f"/headlight/train/text/{name}", act, methods=["POST"])
        for name, act in (("stop", stop), ("on", go_on), ("forget", forget))
    ),
]
