"""Routes of a training: its news as they come, an example as each frame sees it, and the model of a frame as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app.rooms.train import records, words
from app.session import service
from app.transport import messages, open_answers, rate_limits, routes
from app.transport.routes import answering
from core.learn.recorded_runs import milestones
from core.learn.watched_training import STEPS, Spec, example
from core.service import FrameFacts, TrainingUpdate

NEVER_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def spec_of(request: Request) -> Spec:
    """The description that parameters give: task, twin, seed, from. Raises Refused or BadParameter."""
    asked = request.query_params
    seed, fork = (routes.whole(name, asked.get(name, "0"), 0, 1 << 20) for name in ("seed", "from"))
    return Spec(asked.get("task", "copy"), asked.get("twin", "none"), seed, STEPS, fork)


def line(news: TrainingUpdate, all_frames: Sequence[FrameFacts] = ()) -> bytes:
    """One piece of news as a line of JSON; with its moments that of a run which has ended, from all its frames."""
    said = {"state": news.state, "place": news.place, "seconds": news.seconds, "why": news.why}
    come: dict[str, Any] = {"points": records.points_text(news.points), "frames": [asdict(one) for one in news.frames]}
    if news.state == "ended":
        come["moments"] = [asdict(one) for one in milestones(all_frames)]
    return json.dumps({**said, **come}, allow_nan=False, default=str).encode() + b"\n"


@rate_limits.costing("trainings")
@answering
async def run(request: Request) -> Response:
    """The news of a training, line by line, from its beginning until it ends. Who closes the answer watches no longer."""
    coming = service.service().train(spec_of(request))
    first = await anext(coming)  # a queue that is full is refused before anything is sent

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(coming):
            frames = list(first.frames)
            yield line(first, frames)
            async for news in coming:
                frames += news.frames
                yield line(news, frames)

    open_answers.here.lasts()
    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=NEVER_KEPT)


@answering
async def now(request: Request) -> Response:
    """What there is of a training, as one line: no one watches by it, so one that waits goes on waiting."""
    news = await service.service().training(spec_of(request))
    return Response(line(news, news.frames), headers=NEVER_KEPT)


@answering
async def pause(request: Request) -> Response:
    """Keep a training where it is for anyone who watches it next, once no one watches it."""
    await service.service().pause_training(spec_of(request))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def looks(request: Request) -> Response:
    """An example as the next frames after the step `after` see it: a message of maps as bytes, 255 for a weight of 1."""
    spec, typed = spec_of(request), request.query_params.get("example", "")
    after = routes.whole("after", request.query_params.get("after", "0"), 0, 1 << 20) - 1
    found = await service.service().looks(spec, typed, after)
    header = records.looks_header(spec, example(spec, typed), found)
    return Response(
        messages.pack(header, records.looks_body(found)), media_type="application/octet-stream", headers=NEVER_KEPT
    )


@answering
async def finished(request: Request) -> Response:
    """A run that ended before and is kept, with its looks at the task's example: see records.py."""
    spec = spec_of(request)
    if spec != Spec(spec.task, spec.twin) or not records.path_of(spec).is_file():
        raise routes.BadParameter(words.NO_RECORD)
    return routes.as_read(request, records.opened(spec), routes.KEPT)


@answering
async def model(request: Request) -> Response:
    """The model of one frame: config, weights, tokenizer, recipe and card in one archive."""
    spec, step = spec_of(request), routes.number(request, "step", 0, 1 << 20)
    name = f"headlight-{spec.task}-{spec.twin}-{step}"
    headers = {**NEVER_KEPT, "Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(await service.service().trained(spec, step), media_type="application/zip", headers=headers)


ROUTES = [
    Route("/headlight/train/run", run),
    Route("/headlight/train/now", now),
    Route("/headlight/train/finished", finished),
    Route("/headlight/train/pause", pause, methods=["POST"]),
    Route("/headlight/train/looks", looks),
    Route("/headlight/train/model", model),
]
