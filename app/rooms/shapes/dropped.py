"""A config.json that a visitor drops onto the page: what a link says of it, or the sentence on what is wrong with it."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app import languages
from app.kit import numbers
from app.rooms.shapes import words
from app.sizes import pasted
from app.sizes import words as sizes_words
from app.transport import work
from core.errors import HeadlightError

MOST_BYTES = 4 * pasted.MOST_TEXT  # of a text in UTF-8


async def config(request: Request) -> Response:
    """The body is the file, as text; the answer is {"config": …} for a link. It is read as data, and nothing of it is kept."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            return _refused(numbers.filled(sizes_words.PASTE_TOO_LONG, n=len(body)), 413)
    try:
        text = body.decode("utf-8-sig")
        said = await work.done(partial(pasted.to_link, text))
    except UnicodeDecodeError:
        return _refused(words.DROPPED_NO_TEXT, 400)
    except HeadlightError as refusal:
        return _refused(languages.said(refusal), 400)
    return JSONResponse({"config": said}, headers={"Cache-Control": "no-store"})


def _refused(sentence: str, status: int) -> Response:
    return PlainTextResponse(sentence, status, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/headlight/shapes/config", config, methods=["POST"])]
