"""The route behind the Export menu: the numbers of what is on the screen, and what a picture of it says about itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app import languages
from app.attention import export
from app.attention import selection as attention_selection
from app.export import files, offline
from app.rooms.explore.component import OFFLINE
from app.session import service
from app.shell import style
from app.transport import edited, work
from app.transport.routes import answering
from core.service import Facts

FORMATS = ("about", "csv", "npz", "json", "page")
LONGEST_ALT = 2000  # characters; the browser says what the picture shows


@answering
async def exported(request: Request) -> Response:
    """What is on the screen as a file.

    format: about (JSON: title, caption, snippet, file name), csv, npz, json, or page (the page that works offline, without
    its data). The rest says what is on the screen: run, site, layer, head, kind, heads, hide, words, scale and q0, q1, k0, k1 in
    the words of the URL, and alt, what the picture shows in words.
    """
    params = request.query_params
    kind = attention_selection.one_of(params, "format", FORMATS)
    if kind == "page":
        return PlainTextResponse(page(languages.current()), headers={"Cache-Control": "no-cache"})
    run = await service.service().facts(params.get("run", ""))
    selection = attention_selection.selected(run, params)
    about = described(run, selection, date.today())
    alt = " ".join(params.get("alt", "")[:LONGEST_ALT].split())
    if kind == "about":
        return JSONResponse(about)
    attachment = {"Content-Disposition": f'attachment; filename="{about["name"]}.{kind}"'}
    most = files.NPZ_CELLS if kind == "npz" else files.CSV_CELLS
    found = await attention_selection.numbers(service.service(), run, selection, most)
    found = replace(found, writes=await attention_selection.writes(service.service(), run, selection))
    if kind == "csv":
        lines = files.csv_lines(found, (about["caption"], alt, about["snippet"]), selection.unit)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=attachment)
    if kind == "json":
        make = partial(files.as_json, found, about["caption"], alt, about["snippet"], selection.unit)
        body = await work.done(make)
        return Response(body, media_type="application/json", headers=attachment)
    make = partial(files.npz, found, about["caption"], alt, about["snippet"], selection.unit)
    body = await work.done(make)
    return Response(body, media_type="application/octet-stream", headers=attachment)


def described(run: Facts, selection: attention_selection.Selection, today: date) -> dict[str, str]:
    """What every export says about itself, and a name for its file."""
    return {
        "title": export.title(run, selection),
        "caption": export.caption(run, selection, today),
        "snippet": export.snippet(run, selection),
        "name": export.file_name(run, selection),
    }


@edited.cached_by
def page(language: str) -> str:
    """The page that works offline, without its data."""
    return offline.page(OFFLINE, style.page_style())


ROUTES = [Route("/headlight/export", exported)]
