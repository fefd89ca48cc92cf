"""A visitor's own text: taken, learnt, stopped, continued and let go. It is that visitor's alone, and never in a link."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app.rooms.train import words
from app.session import own_texts, service
from app.transport import open_answers, rate_limits, routes, visitors, work
from app.transport.routes import answering
from core.checkpoints import Loaded
from core.errors import CheckpointError, HeadlightError
from core.learn import text_training
from core.learn.text_training import MOST, Text
from core.service import LocalService, TextTrainer, TextTrainingUpdate

NEVER_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
UNITS = ("letters", "pieces")


def opens_here() -> bool:
    """Whether other rooms may run such models: where these run in this process, in whose memory they are."""
    return isinstance(service.service(), LocalService)


def _let_go(key: str) -> None:
    there = service.service()
    if isinstance(there, LocalService):
        there.engine.forget(text_training.described(key).id)


TRAINER = TextTrainer(on_release=_let_go)


class Models:
    """The models of texts, for other rooms."""

    def is_of(self, key: str, visitor: str) -> bool:
        return TRAINER.is_of(key, visitor)

    def opened(self, key: str, **options: Any) -> Loaded:
        try:
            found = TRAINER.model_of(key)
        except HeadlightError as gone:
            raise CheckpointError(str(gone)) from None
        return text_training.opened(found.of, found.state, key, **options)


own_texts.register(Models())


@rate_limits.costing("trainings")
@answering
async def take(request: Request) -> Response:
    """The body is the text; from now on it is learnt, in place of any other of this visitor."""
    visitor = visitors.own_name(request.scope)
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
    of = await work.done(partial(Text, text, "pieces" if unit == "pieces" else "letters"))
    TRAINER.begin(visitor, of)
    return Response(status_code=204, headers=NEVER_KEPT)


def line(news: TextTrainingUpdate) -> bytes:
    """One piece of news as a line of JSON, with the model's name among models where it can be opened."""
    said = asdict(news)
    key = said.pop("key")
    said["model"] = text_training.described(key).title if key and opens_here() else ""
    return json.dumps(said, allow_nan=False).encode() + b"\n"


@answering
async def watch(request: Request) -> Response:
    """The news of this visitor's text, line by line, until it rests; nothing where there is none."""
    coming = TRAINER.watch(visitors.own_name(request.scope))
    try:
        first = await anext(coming)
    except HeadlightError:
        return Response(status_code=204, headers=NEVER_KEPT)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(coming):
            yield line(first)
            async for news in coming:
                yield line(news)

    open_answers.here.lasts()
    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=NEVER_KEPT)


@answering
async def stop(request: Request) -> Response:
    """The run ends where its last frame is, and may continue from there."""
    TRAINER.stop(visitors.own_name(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def go_on(request: Request) -> Response:
    """A run that was stopped continues."""
    TRAINER.resume(visitors.own_name(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def forget(request: Request) -> Response:
    """The text and all that was learnt from it are gone."""
    TRAINER.forget(visitors.own_name(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def keep(request: Request) -> Response:
    """The page of a visitor's text is still open: what was learnt is not forgotten meanwhile."""
    TRAINER.keep(visitors.own_name(request.scope))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def model(request: Request) -> Response:
    """The model of this visitor's text as a zip that core.load reads unpacked."""
    found = TRAINER.model(visitors.own_name(request.scope))
    made = await work.done(partial(text_training.archive, found.of, found.state, found.loss))
    name = f"headlight-text-step-{found.state.step}.zip"
    headers = {**NEVER_KEPT, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(made, media_type="application/zip", headers=headers)


ROUTES = [
    Route("/headlight/train/text", take, methods=["POST"]),
    Route("/headlight/train/text", watch),
    *(
        Route(f"/headlight/train/text/{name}", act, methods=["POST"])
        for name, act in (("stop", stop), ("on", go_on), ("forget", forget), ("keep", keep))
    ),
    Route("/headlight/train/text/model", model),
]
