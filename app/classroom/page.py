"""The page of a follower, the same for every code: nothing is looked up until a visitor sends one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from app import languages
from app.classroom.component import FOLLOW
from app.kit import stage
from app.streamlit_edge.page import PLAIN
from app.transport import edited, modules, routes, security_headers

PAGE = Path(__file__).with_name("page.html")
ABOVE = "{{ABOVE}}"


async def follow(request: Request) -> Response:
    """The page; the browser reads the code from its address. Headlight's own page is so many steps above it, whatever path a proxy has
    put before both."""
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": security_headers.policy((), ()),
        "Content-Encoding": PLAIN,
        "Vary": "Accept-Language",
    }
    asked: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    steps = asked.count(b"/") - routes.BASE.count("/") - 1
    return HTMLResponse(text(languages.current()).replace(ABOVE, "../" * steps or "./"), headers=headers)


@edited.cached_by
def text(language: str) -> str:
    """Its HTML, with ABOVE where the way to Headlight's own page stands. The addresses in it are ours: hashes and names of files."""
    views = {view: f"headlight/m/{modules.address(entry)}" for view, entry in stage.ENTRIES.items()}
    page = PAGE.read_text(encoding="utf-8").replace('lang="en"', f'lang="{language}"', 1)
    return filled(page, f"headlight/m/{modules.address(FOLLOW)}", views)


def filled(page: str, script: str, views: Mapping[str, str]) -> str:
    """The page with its script, and where each view's module is."""
    given = {"SCRIPT": script, "VIEWS": json.dumps(dict(views), sort_keys=True)}
    for name, value in given.items():
        page = page.replace("{{" + name + "}}", escape(value))
    return page


# In capitals as well: a square of capitals alone has 25 modules along a side, and else 29.
ROUTES = [Route(f"/{letter}{rest}", follow) for letter in "rR" for rest in ("", "/", "/{code}", "/{code}/")]
