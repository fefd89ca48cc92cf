"""Routes beside the page: tiles and rows of attention as bytes, the component's script, health; and compression."""

from __future__ import annotations

import gzip
import mimetypes
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import __file__ as streamlit_file
from streamlit import config as streamlit_config

from app import export_routes, lens, pack, state, underway, words
from app.components.explore.explore import DIGEST, MODULES
from app.components.shapes import values
from core import aggregate
from core.errors import Refused
from core.trace import Trace

STARTED = time.monotonic()
KEPT = {"Cache-Control": "private, max-age=3600"}
FOREVER = "public, max-age=31536000, immutable"  # for names that carry a hash of the content
_turns = threading.BoundedSemaphore(max(1, state.cores() - 1))  # tiles are torch work: leave a core to the server


class _Bad(ValueError):
    """A parameter that does not do; the message says what does."""


def tile(request: Request) -> Response:
    """One region of a picture: run, record, head, q0, q1, k0, k1 (ends excluded), as lens.tile makes it.

    kind, members (record.head,record.head), hide (key,key) and words (true) say what it is a picture of.
    """
    return _bytes(request, _tile)


def row(request: Request) -> Response:
    """One row of a picture: run, record, head, query, and the rest as for a tile, as lens.row makes it."""
    return _bytes(request, _row)


def column(request: Request) -> Response:
    """Who looks at one column of a picture: run, record, head, key, and the rest as for a tile, as lens.column makes it."""
    return _bytes(request, _column)


def heads(request: Request) -> Response:
    """Every weight of a run that is not large: run, as pack.heads makes it."""
    return _message(request, lambda run: _heads(run))


def norms(request: Request) -> Response:
    """What each key writes by each head of a kind of attention: run, site, as pack.norms makes it."""
    return _message(request, lambda run: _norms(run, request.query_params.get("site", "")))


def _message(request: Request, make: Callable[[str], bytes]) -> Response:
    try:
        message = make(request.query_params.get("run", ""))
    except (_Bad, KeyError, Refused) as error:
        return _refusal(error)
    return Response(message, media_type="application/octet-stream", headers=KEPT)


@lru_cache(maxsize=16)  # of at most pack.WHOLE_BYTES and what goes with them
def _heads(run: str) -> bytes:
    trace = state.engine().trace(run)
    if pack.weight_bytes(trace) > pack.WHOLE_BYTES:
        raise _Bad(words.ROUTE_LARGE)
    with _turns:
        return pack.heads(trace)


@lru_cache(maxsize=16)
def _norms(run: str, site: str) -> bytes:
    trace = state.engine().trace(run)
    place = _site(trace, site)
    with _turns:
        return pack.norms(trace, place)


def _site(trace: Trace, site: str) -> pack.Place:
    places = {place.id: place for place in pack.places(trace)}
    if site not in places:
        raise _Bad(words.ROUTE_CHOICE.format(name="site", allowed=", ".join(places), value=site[:20]))
    return places[site]


def layers(request: Request) -> Response:
    """A run that still goes on, layer by layer: run, the record and head that are opened, and a query where one is locked.

    As underway.parts makes it. A run that is small, has ended, or is not known has nothing to come.
    """
    asked = request.query_params
    key = asked.get("run", "")
    run = underway.begun(key)
    if run is None:
        return Response(status_code=204)
    try:
        record = _number(request, "record", 0, len(run.made) - 1)
        site = next(site for site in run.header.result()["sites"] if record in site["records"])
        head = _number(request, "head", 0, site["heads"] - 1)
        query = _number(request, "query", 0, site["n_query"] - 1) if "query" in asked else None
    except _Bad as error:
        return _refusal(error)
    parts = underway.parts(run, record, head, query)
    # Held by nobody on the way: a proxy that collects the answer would keep the layers back until the last.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(parts, media_type="application/octet-stream", headers=headers)


def proof(request: Request) -> Response:
    """The receipt of one record: run, record."""
    try:
        return JSONResponse(_proof(request.query_params.get("run", ""), _number(request, "record", 0, 1 << 20)))
    except (_Bad, KeyError, IndexError, Refused) as error:
        return _refusal(error)


@lru_cache(maxsize=256)
def _proof(run: str, record: int) -> dict[str, float | int | None]:
    attention = state.engine().trace(run).attention[record]
    attention = lens.held(attention)  # not in a turn: it may take a while, in which others want tiles
    with _turns:
        return pack.receipt(attention)


def scores(request: Request) -> Response:
    """q·k of one row, before and after scaling: run, record, head, query, as lens.scores makes it."""
    return _bytes(request, _scores)


def measures(request: Request) -> Response:
    """One number of each kind for every head of a kind of attention: run, site, as lens.metrics makes it."""
    try:
        site = request.query_params.get("site", "")
        return JSONResponse(_measures(request.query_params.get("run", ""), site), headers=KEPT)
    except (_Bad, KeyError, Refused) as error:
        return _refusal(error)


@lru_cache(maxsize=64)
def _measures(run: str, site: str) -> dict[str, Any]:
    trace = state.engine().trace(run)
    place = _site(trace, site)
    with _turns:
        return lens.metrics(trace, place)


@lru_cache(maxsize=2)  # 16 MiB at the most that rollout takes
def _rollout(run: str, record: int) -> torch.Tensor:
    attention = state.engine().trace(run).attention
    chosen = attention[record]
    below = [other for other in attention if other.stack == chosen.stack and other.site == chosen.site]
    with _turns:
        return aggregate.rollout(below, chosen.layer)


def _tile(request: Request, picture: lens.Lens) -> bytes:
    n_query, n_key = len(picture.queries), len(picture.keys)
    q0 = _number(request, "q0", 0, n_query - 1)
    q1 = _number(request, "q1", q0 + 1, n_query)
    k0 = _number(request, "k0", 0, n_key - 1)
    k1 = _number(request, "k1", k0 + 1, n_key)
    return lens.tile(picture, rows=(q0, q1), columns=(k0, k1))


def _row(request: Request, picture: lens.Lens) -> bytes:
    return lens.row(picture, _number(request, "query", 0, len(picture.queries) - 1))


def _column(request: Request, picture: lens.Lens) -> bytes:
    return lens.column(picture, _number(request, "key", 0, len(picture.keys) - 1))


def _scores(request: Request, picture: lens.Lens) -> bytes:
    return lens.scores(picture.attention, picture.head, _number(request, "query", 0, picture.attention.n_query - 1))


def _bytes(request: Request, make: Callable[[Request, lens.Lens], bytes]) -> Response:
    try:
        key = request.query_params.get("run", "")
        picture = _lens(request, key)  # may wait for a run, in which others can have their turn
        with _turns:
            message = make(request, picture)
    except (_Bad, KeyError, Refused) as error:
        return _refusal(error)
    return Response(message, media_type="application/octet-stream", headers=KEPT)


def _lens(request: Request, key: str) -> lens.Lens:
    """What the parameters ask for a picture of."""
    run = state.engine().trace(key)
    attention = run.attention
    index = _number(request, "record", 0, len(attention) - 1)
    record = attention[index]
    head = _number(request, "head", 0, record.n_heads - 1)
    asked = request.query_params
    kind = asked.get("kind", "head")
    if kind not in lens.KINDS:
        raise _Bad(words.ROUTE_CHOICE.format(name="kind", allowed=", ".join(lens.KINDS), value=kind[:20]))
    if asked.get("words", "false") not in ("true", "false"):
        raise _Bad(words.ROUTE_CHOICE.format(name="words", allowed="true, false", value=asked["words"][:20]))
    hide = tuple(sorted({_whole("hide", part, 0, record.n_key - 1) for part in _parts(asked.get("hide"))}))
    if len(hide) == record.n_key:
        raise _Bad(words.ROUTE_HIDES_ALL)
    members = []
    for pair in _parts(asked.get("members")):
        of, _, which = pair.partition(".")
        place = _whole("members", of, 0, len(attention) - 1)
        other = attention[place]
        if (other.stack, other.site) != (record.stack, record.site):
            raise _Bad(words.ROUTE_MEMBERS.format(place=place, record=index))
        members.append((place, _whole("members", which, 0, other.n_heads - 1)))
    if kind == "rollout" and record.site != "attn":
        raise _Bad(words.COMPONENT["rollout_cross"])
    rollout = _rollout(key, index) if kind == "rollout" else None
    if kind == "value":
        lens.written(run, index)  # before somebody's turn
    return lens.Lens(run, index, head, kind, tuple(dict.fromkeys(members)), hide, asked.get("words") == "true", rollout)


def _parts(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _refusal(error: Exception) -> Response:
    if isinstance(error, KeyError | IndexError):
        return PlainTextResponse(words.TILE_UNKNOWN_RUN, 404)
    return PlainTextResponse(str(error), 400)


def _number(request: Request, name: str, low: int, high: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        raise _Bad(words.TILE_MISSING.format(name=name, names="run, record, head, and q0, q1, k0, k1 or query"))
    return _whole(name, value, low, high)


def _whole(name: str, value: str, low: int, high: int) -> int:
    if not (value.isascii() and value.isdecimal()) or len(value) > 9:
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


# Where the page is: the browser asks for everything relative to it (server.baseUrlPath).
BASE = "".join(f"/{part}" for part in streamlit_config.get_option("server.baseUrlPath").split("/") if part)


def placed(routes: Iterable[Route], base: str = BASE) -> list[Route]:
    """The same routes below the path that the page is served at."""
    return [Route(base + route.path, route.endpoint) for route in routes]


PAGE_ROUTES = [
    Route("/headlight/tile", tile),
    Route("/headlight/row", row),
    Route("/headlight/column", column),
    Route("/headlight/heads", heads),
    Route("/headlight/layers", layers),
    Route("/headlight/norms", norms),
    Route("/headlight/scores", scores),
    Route("/headlight/metrics", measures),
    Route("/headlight/proof", proof),
    Route(f"/headlight/{DIGEST}/{{name}}", module),
    *export_routes.ROUTES,
    *values.ROUTES,
]
ROUTES = [*placed(PAGE_ROUTES), Route("/healthz", healthz), Route("/metrics", metrics)]  # probes know no path

STATIC = Path(streamlit_file).parent / "static" / "static"


class Gzipped:
    """ASGI middleware: Streamlit's own scripts and styles, compressed once and then kept.

    Streamlit sends them as they are and leaves compression to a proxy, which a laptop or a small host does not have: a
    first visit is 2.9 MB without and 0.9 MB with it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        files = f"{BASE}/static/"
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(files):
            headers = Headers(scope=scope)
            if "gzip" in headers.get("accept-encoding", "") and "range" not in headers:
                body = await run_in_threadpool(_compressed, scope["path"].removeprefix(files))
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
