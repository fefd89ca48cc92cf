"""The route behind the Export menu: the numbers of what is on the screen, and what a picture of it says about itself."""

from __future__ import annotations

import base64
import hashlib
import threading
from datetime import date
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app import export, state, theme, words
from app.components.explore.explore import MODULES
from core.errors import Refused
from core.trace import Trace

FORMATS = ("about", "csv", "npz", "page")
LONGEST_ALT = 2000  # characters; the browser says what the picture shows
_turn = threading.Lock()  # one table at a time: it is torch work, and the picture of others comes first
STANDALONE = Path(__file__).parent / "components" / "standalone"


def exported(request: Request) -> Response:
    """What is on the screen as a file.

    format: about (JSON: title, caption, snippet, file name), csv, npz, or page (the page that works offline, without its
    data). The rest says what is on the screen: run, site, layer, head, kind, heads, hide, words, scale and q0, q1, k0, k1 in
    the words of the URL, and alt, what the picture shows in words.
    """
    params = request.query_params
    try:
        kind = export.one_of(params, "format", FORMATS)
        if kind == "page":
            return PlainTextResponse(page(), headers={"Cache-Control": "no-cache"})
        run = state.engine().trace(params.get("run", ""))
        selection = export.selected(run, params)
        about = described(run, selection, date.today())
        alt = " ".join(params.get("alt", "")[:LONGEST_ALT].split())
        if kind == "about":
            return JSONResponse(about)
        attachment = {"Content-Disposition": f'attachment; filename="{about["name"]}.{kind}"'}
        most = export.CSV_CELLS if kind == "csv" else export.NPZ_CELLS
        with _turn:
            found = export.numbers(run, selection, most)
    except KeyError:
        return PlainTextResponse(words.TILE_UNKNOWN_RUN, 404)
    except Refused as refusal:
        return PlainTextResponse(str(refusal), 400)
    if kind == "csv":
        lines = export.csv_lines(found, (about["caption"], alt, about["snippet"]), selection.unit)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=attachment)
    body = export.npz(found, about["caption"], alt, about["snippet"], selection.unit)
    return Response(body, media_type="application/octet-stream", headers=attachment)


def described(run: Trace, selection: export.Selection, today: date) -> dict[str, str]:
    """What every export says about itself, and a name for its file."""
    return {
        "title": export.title(run, selection),
        "caption": export.caption(run, selection, today),
        "snippet": export.snippet(run, selection),
        "name": export.file_name(run, selection),
    }


@cache
def page() -> str:
    """The page that works offline: everything but its data, which the browser puts in.

    Its policy allows this one script, by its hash, and no request whatever.
    """
    own = ("standalone.js", (STANDALONE / "standalone.js").read_text(encoding="utf-8"))
    script = export.bundle((*MODULES.items(), own), "standalone.js")
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the script would end the element that holds it")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = (STANDALONE / "page.html").read_text(encoding="utf-8").replace("{{SCRIPT-HASH}}", f"sha256-{digest}")
    return text.replace("{{PAGE-STYLE}}", theme.PAGE_STYLE.strip()).replace("{{SCRIPT}}", script)


ROUTES = [Route("/headlight/export", exported)]
