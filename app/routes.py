"""Routes beside the page: tiles and rows of attention as bytes, the component's script, health; and compression."""

from __future__ import annotations

import gzip
import mimetypes
import threading
import time
from functools import lru_cache
from pathlib import Path

import streamlit
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app import export_routes, pack, state, words
from app.components.explore.explore import DIGEST, MODULES
from core.attention import AttentionRecord
from core.errors import Refused

STARTED = time.monotonic()
FOREVER = "public, max-age=31536000, immutable"  # for names that carry a hash of the content
_turns = threading.BoundedSemaphore(max(1, state.cores() - 1))  # tiles are torch work: leave a core to the server


class _Bad(ValueError):
    """A parameter that does not do; the message says what does."""


def tile(request: Request) -> Response:
    """One region of one head: run, record, head, q0, q1, k0, k1 (ends excluded), as pack.tile makes it."""
    return _bytes(request, _tile)


def row(request: Request) -> Response:
    """Where one query looks: run, record, head, query, as pack.row makes it."""
    return _bytes(request, _row)


def proof(request: Request) -> Response:
    """The receipt of one record: run, record."""
    try:
        return JSONResponse(_proof(request.query_params.get("run", ""), _number(request, "record", 0, 1 << 20)))
    except (_Bad, KeyError, IndexError, Refused) as error:
        return _refusal(error)


@lru_cache(maxsize=256)
def _proof(run: str, record: int) -> dict[str, float | int | None]:
    attention = state.engine().trace(run).attention
    with _turns:
        return pack.receipt(attention[record])


def _tile(request: Request, record: AttentionRecord, head: int) -> bytes:
    q0 = _number(request, "q0", 0, record.n_query - 1)
    q1 = _number(request, "q1", q0 + 1, record.n_query)
    k0 = _number(request, "k0", 0, record.n_key - 1)
    k1 = _number(request, "k1", k0 + 1, record.n_key)
    return pack.tile(record, head, rows=(q0, q1), columns=(k0, k1))


def _row(request: Request, record: AttentionRecord, head: int) -> bytes:
    return pack.row(record, head, _number(request, "query", 0, record.n_query - 1))


def _bytes(request: Request, make) -> Response:
    try:
        attention = state.engine().trace(request.query_params.get("run", "")).attention
        record = attention[_number(request, "record", 0, len(attention) - 1)]
        head = _number(request, "head", 0, record.n_heads - 1)
        with _turns:
            message = make(request, record, head)
    except (_Bad, KeyError, Refused) as error:
        return _refusal(error)
    return Response(message, media_type="application/octet-stream", headers={"Cache-Control": "private, max-age=3600"})


def _refusal(error: Exception) -> Response:
    if isinstance(error, KeyError | IndexError):
        return PlainTextResponse(words.TILE_UNKNOWN_RUN, 404)
    return PlainTextResponse(str(error), 400)


def _number(request: Request, name: str, low: int, high: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        raise _Bad(words.TILE_MISSING.format(name=name, names="run, record, head, and q0, q1, k0, k1 or query"))
    if not value.isdecimal() or len(value) > 9:
        raise _Bad(words.TILE_NOT_A_NUMBER.format(name=name, value=value[:20]))
    if not low <= int(value) <= high:
        raise _Bad(words.TILE_OUT_OF_RANGE.format(name=name, value=int(value), low=low, high=high))
    return int(value)


async def module(request: Request) -> Response:
    """One module of the Explore component. Its address carries a hash of them all, so browsers may keep it."""
    source = MODULES.get(request.path_params["name"])
    if source is None:
        return PlainTextResponse(words.NO_MODULE, 404)
    headers = {"Cache-Control": FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(source, media_type="text/javascript", headers=headers)


async def healthz(_: Request) -> Response:
    """Answers as soon as the port is open, which is after the warm-up."""
    return JSONResponse({"status": "ok"})


def metrics(_: Request) -> Response:
    """Counts for the operator, nothing about anybody's text."""
    return JSONResponse({"seconds": round(time.monotonic() - STARTED), **state.engine().status()})


ROUTES = [
    Route("/headlight/tile", tile),
    Route("/headlight/row", row),
    Route("/headlight/proof", proof),
    Route(f"/headlight/{DIGEST}/{{name}}", module),
    *export_routes.ROUTES,
    Route("/healthz", healthz),
    Route("/metrics", metrics),
]

STATIC = Path(streamlit.__file__).parent / "static" / "static"


class Gzipped:
    """ASGI middleware: Streamlit's own scripts and styles, compressed once and then kept.

    Streamlit sends them as they are and leaves compression to a proxy, which a laptop or a small host does not have: a
    first visit is 2.9 MB without and 0.9 MB with it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith("/static/"):
            headers = Headers(scope=scope)
            if "gzip" in headers.get("accept-encoding", "") and "range" not in headers:
                body = await run_in_threadpool(_compressed, scope["path"].removeprefix("/static/"))
                if body is not None:
                    kind = mimetypes.guess_type(scope["path"])[0] or "application/octet-stream"
                    headers = {"Content-Encoding": "gzip", "Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
                    await Response(body, media_type=kind, headers=headers)(scope, receive, send)
                    return
        await self.app(scope, receive, send)


@lru_cache(maxsize=512)
def _compressed(name: str) -> bytes | None:
    """One file of STATIC, compressed; None where there is no such script or style."""
    try:
        path = (STATIC / name).resolve()
        if path.suffix not in (".js", ".css") or not path.is_relative_to(STATIC.resolve()) or not path.is_file():
            return None
        return gzip.compress(path.read_bytes(), compresslevel=6)
    except (OSError, ValueError):  # ValueError: a name with a null byte
        return None
