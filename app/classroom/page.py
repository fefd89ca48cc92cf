"""The page of a follower, the same for every code: nothing is looked up until a visitor sends one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from app.classroom.component import FOLLOW
from app.kit import stage
from app.streamlit_edge.page import PLAIN
from app.transport import edited, modules, routes, security_headers

PAGE = Path(__file__).with_name("page.html")


async def follow(_: Request) -> Response:
    """The page; the browser reads the code from its address."""
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": security_headers.policy((), ()),
        "Content-Encoding": PLAIN,
    }
    return HTMLResponse(text(), headers=headers)


@edited.cached
def text() -> str:
    """Its HTML. The addresses in it are ours: hashes and names of files."""
    views = {view: f"headlight/m/{modules.address(entry)}" for view, entry in stage.ENTRIES.items()}
    return filled(PAGE.read_text(encoding="utf-8"), routes.BASE, f"headlight/m/{modules.address(FOLLOW)}", views)


def filled(page: str, base: str, script: str, views: Mapping[str, str]) -> str:
    """The page with where it stands, its script, and where each view's module is."""
    given = {"BASE": f"{base}/", "SCRIPT": script, "VIEWS": json.dumps(dict(views), sort_keys=True)}
    for name, value in given.items():
        page = page.replace("{{" + name + "}}", escape(value))
    return page


# In capitals as well: a square of capitals alone has 25 modules along a side, and else 29.
ROUTES = [Route(f"/{letter}{rest}", follow) for letter in "rR" for rest in ("", "/", "/{code}")]
