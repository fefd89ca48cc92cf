"""What routes share: their parameters, answers and refusals, and where the page is."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import aclosing
from datetime import date
from functools import wraps
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from streamlit import config as streamlit_config
from streamlit.url_util import make_url_path

from app import languages
from app.transport import build, limits, words
from core.errors import HeadlightError, ServerBusy, UnknownRun
from core.service import AnswerCache

OCTETS = "application/octet-stream"
QUICK = 1  # of what a visitor waits for while it is made
GZIP = 16 + zlib.MAX_WBITS  # zlib's word for gzip with the largest window
LEVEL = 6  # of what gzip may take; numbers do not get much smaller with more
ANSWER_BYTES = 48 << 20
ANSWERS = AnswerCache(ANSWER_BYTES, len)  # packed, by what was asked
KEPT = {"Cache-Control": "private, max-age=3600"}
VARY = "Accept-Encoding, Accept-Language"


class BadParameter(ValueError):
    """A parameter that cannot be followed; the message says what is allowed."""


def answering(make: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A route whose refusals are answers as well. Routes await, so that however many wait, no thread of the server does."""

    @wraps(make)
    async def answer(request: Request) -> Response:
        try:
            return await make(request)
        except (BadParameter, IndexError, HeadlightError) as error:
            return refusal(error)

    return answer


def cached_route(make: Callable[[Request], Awaitable[bytes]]) -> Callable[[Request], Awaitable[Response]]:
    """A route whose address says all about its answer: a class that asks for it at once has it computed and packed once."""

    @answering
    @wraps(make)
    async def answer(request: Request) -> Response:
        return await kept(request, asked(request), lambda: make(request))

    return answer


def asked(request: Request) -> Hashable:
    """Cache key of a request: path, query, language, and date, since files are dated."""
    return request.url.path, request.url.query, languages.current(), date.today()


async def kept(request: Request, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> Response:
    """The answer of this key, made and packed once for all who ask, which the browser may keep for an hour."""

    async def make_packed() -> bytes:
        return await packed(await make())

    return as_read(request, await ANSWERS.get(key, make_packed), KEPT)


async def packed(body: bytes) -> bytes:
    """By gzip, in a thread, so that the event loop goes on."""
    return await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)


def as_read(request: Request, packed: bytes, headers: Mapping[str, str]) -> Response:
    """What is packed by gzip already, in the form that the one who asks can read."""
    headers = {**headers, "Vary": VARY}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type=OCTETS, headers=headers)
    return Response(packed, media_type=OCTETS, headers={**headers, "Content-Encoding": "gzip"})


def stream(request: Request, parts: AsyncGenerator[bytes], headers: Mapping[str, str]) -> Response:
    """Parts as they come, each packed by gzip so that it can be read when it is there, where the one who asks reads gzip."""
    headers = {**headers, "Vary": VARY}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return StreamingResponse(parts, media_type=OCTETS, headers=headers)
    return StreamingResponse(_packed_parts(parts), media_type=OCTETS, headers={**headers, "Content-Encoding": "gzip"})


async def _packed_parts(parts: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(QUICK, zlib.DEFLATED, GZIP)

    def packed_part(part: bytes) -> bytes:
        return packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)

    async with aclosing(parts):
        async for part in parts:
            yield await asyncio.to_thread(packed_part, part)
    yield packer.flush()


def message(body: bytes) -> Response:
    """Bytes that the browser may keep for an hour."""
    return Response(body, media_type=OCTETS, headers=KEPT)


def parts(text: str | None) -> list[str]:
    return text.split(",") if text else []


def refusal(error: Exception) -> Response:
    if isinstance(error, IndexError | UnknownRun):
        return PlainTextResponse(words.TILE_UNKNOWN_RUN, 404)
    # The browser asks again after 503, and keeps what 400 says: of that it would get no other answer.
    return PlainTextResponse(languages.said(error), 503 if isinstance(error, ServerBusy) else 400)


def number(request: Request, name: str, low: int, high: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        raise BadParameter(words.TILE_MISSING.format(name=name, names="run, record, head, and q0, q1, k0, k1 or query"))
    return whole(name, value, low, high)


def whole(name: str, value: str, low: int, high: int) -> int:
    found = limits.read(value)
    if found is None:
        raise BadParameter(words.TILE_NOT_A_NUMBER.format(name=name, value=value[:20]))
    if not low <= found <= high:
        raise BadParameter(words.TILE_OUT_OF_RANGE.format(name=name, value=found, low=low, high=high))
    return found


async def healthz(_: Request) -> Response:
    """Answers as soon as the port is open, which is after the warm-up. Says which build this is."""
    return JSONResponse({"status": "ok", **build.build()})


# Where the page is in this process (server.baseUrlPath), as Streamlit reads it. A browser may see another path, and another host: a proxy
# can put a path before it or take one away. So nothing that a browser gets begins with this: all of it is relative to the page.
BASE = make_url_path(streamlit_config.get_option("server.baseUrlPath"), "").rstrip("/")


def placed(routes: Iterable[Route], base: str = BASE) -> list[Route]:
    """The same routes below the path that the page is served at."""
    return [Route(base + route.path, route.endpoint, methods=route.methods) for route in routes]


SAFE = "!$&'()*+,;=:@~"  # what browsers leave as it is in a path


async def to_page(request: Request) -> Response:
    """From the page's path without a slash at its end to the page. Starlette would name the host and the scheme that it sees itself."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"./{quote(BASE.rpartition('/')[2], safe=SAFE)}/{query}", 307)
