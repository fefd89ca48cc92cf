"""Routes of a training: its news as they come, an example as each frame sees it, and the model of a frame as a file."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app.session import service
from app.transport import fair, messages, routes
from app.transport.routes import answering
from core.interventions import to_text
from core.live import STEPS, TWINS, Spec, described, example
from core.service import Looked, News

NEVER_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def spec_of(request: Request) -> Spec:
    """The description that parameters give: task, twin, seed, from. Raises Refused or BadParameter."""
    asked = request.query_params
    seed, fork = (routes.whole(name, asked.get(name, "0"), 0, 1 << 20) for name in ("seed", "from"))
    return Spec(asked.get("task", "copy"), asked.get("twin", "none"), seed, STEPS, fork)


def line(news: News) -> bytes:
    """One piece of news as a line of JSON; a loss that is no number is null."""
    points = [[p.step, p.loss if math.isfinite(p.loss) else None, p.accuracy] for p in news.points]
    frames = [asdict(frame) for frame in news.frames]
    said = {"state": news.state, "place": news.place, "seconds": news.seconds, "why": news.why}
    return json.dumps({**said, "points": points, "frames": frames}, allow_nan=False, default=str).encode() + b"\n"


@fair.costing("trainings")
@answering
async def run(request: Request) -> Response:
    """The news of a training, line by line, from its beginning until it ends. Who closes the answer watches no longer."""
    coming = service.service().train(spec_of(request))
    first = await anext(coming)  # a queue that is full is refused before anything is sent

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(coming):
            yield line(first)
            async for news in coming:
                yield line(news)

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=NEVER_KEPT)


@answering
async def pause(request: Request) -> Response:
    """Keep a training where it is for whoever watches it next, once nobody watches it."""
    await service.service().pause_training(spec_of(request))
    return Response(status_code=204, headers=NEVER_KEPT)


@answering
async def looks(request: Request) -> Response:
    """An example as the next frames behind the step `after` see it: a message of maps as bytes, 255 for a weight of 1."""
    spec, typed = spec_of(request), request.query_params.get("example", "")
    after = routes.whole("after", request.query_params.get("after", "0"), 0, 1 << 20) - 1
    of, twin = example(spec, typed), TWINS[spec.twin]
    found = await service.service().looks(spec, typed, after)
    header = {
        "tokens": list(of.tokens),
        "answer": of.answer,
        "first": of.first,
        "unseen": of.is_unseen,
        "model": described(spec).title,
        "edits": to_text(twin.edits) if twin.residual else None,
        "frames": [frame_text(look) for look in found],
    }
    body = messages.joined(*(messages.quantised(look.pattern, 255) for look in found))
    return Response(messages.pack(header, body), media_type="application/octet-stream", headers=NEVER_KEPT)


def frame_text(look: Looked) -> dict[str, object]:
    """One frame's numbers, and the shape of its maps [layer, head, query, key]."""

    def rounded(x: np.ndarray) -> list[list[float]]:
        return [[round(float(w), 4) for w in row] for row in x]

    numbers = {"step": look.step, "p": [round(p, 5) for p in look.p], "best": list(look.best), "own": look.own}
    return {**numbers, "finds": rounded(look.finds), "ahead": rounded(look.ahead), "shape": list(look.pattern.shape)}


@answering
async def model(request: Request) -> Response:
    """The model of one frame: config, weights, tokenizer, recipe and card in one archive."""
    spec, step = spec_of(request), routes.number(request, "step", 0, 1 << 20)
    name = f"headlight-{spec.task}-{spec.twin}-{step}"
    headers = {**NEVER_KEPT, "Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(await service.service().trained(spec, step), media_type="application/zip", headers=headers)


ROUTES = [
    Route("/headlight/train/run", run),
    Route("/headlight/train/pause", pause, methods=["POST"]),
    Route("/headlight/train/looks", looks),
    Route("/headlight/train/model", model),
]
