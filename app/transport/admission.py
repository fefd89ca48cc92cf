"""How many visitors there are, how many there may be, and what the next one sees instead: a page that tries again by itself."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from html import escape

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app import languages
from app.transport import metrics, words

MOST = "HEADLIGHT_MAX_VISITORS"
DEFAULT = 1000
AGAIN = 10  # seconds until the page tries again
SOCKET = "/_stcore/stream"  # one is open for as long as a visitor's page is
UPLOADS = "/_stcore/upload_file/"  # Streamlit's: files of 200 MB, any number of them, into this process's memory
# A reload at a moment when nothing listens, or when a proxy answers for us, would leave the browser on a page that never tries again.
SCRIPT = (
    "setInterval(async () => {"
    'const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);'
    "if (answer?.ok) location.reload();"
    f"}}, {AGAIN * 1000})"
)
HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = f"default-src 'none'; script-src 'sha256-{HASH}'; connect-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
STYLE = (
    "body{font:1.25rem/1.5 system-ui,sans-serif;max-width:36rem;margin:20vh auto;padding:0 1rem;"
    "color-scheme:light dark;background:Canvas;color:CanvasText}"  # the reader's own: nothing of the application is here
)


@dataclass
class House:
    """Of one server: who is in, how many fit, and whether it is about to close."""

    most: int = DEFAULT
    inside: int = 0
    closing: bool = False

    @property
    def full(self) -> bool:
        return self.inside >= self.most


house = House()


def most(value: str | None = None) -> int:
    """From HEADLIGHT_MAX_VISITORS. Raises ValueError for what is no whole number from 1."""
    found = os.environ.get(MOST, str(DEFAULT)) if value is None else value
    if not (found.isascii() and found.isdecimal() and len(found) < 10 and int(found) > 0):
        raise ValueError(words.NO_MOST.format(name=MOST, value=found[:40]))
    return int(found)


class Doors:
    """ASGI middleware: counts the visitors, and lets no one new in while the house is full or about to close.

    No room takes files, so no one may leave one here.
    """

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self.app, self.base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shut = house.full or house.closing
        if scope["type"] == "websocket" and scope["path"] == f"{self.base}{SOCKET}":
            if shut:
                metrics.TURNED_AWAY.inc()
                await send({"type": "websocket.close", "code": 1013})
                return
            house.inside += 1
            try:
                await self.app(scope, receive, send)
            finally:
                house.inside -= 1
        elif scope["type"] == "http" and scope["path"].startswith(f"{self.base}{UPLOADS}"):
            await PlainTextResponse(words.NO_FILES, 404)(scope, receive, send)
        elif shut and is_page(scope, self.base):
            metrics.TURNED_AWAY.inc()
            await waiting()(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def is_page(scope: Scope, base: str = "") -> bool:
    """Whether a browser asks for the page, and not for a part of it."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    if f"{scope['path']}/".lower().startswith(f"{base}/r/".lower()):  # who follows a class takes no place
        return False
    if scope["path"].startswith((f"{base}/static/", f"{base}/headlight/", f"{base}/_stcore/")):
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


def waiting() -> HTMLResponse:
    """What a visitor sees when all places are taken, or the server is about to end. The address, and so a link's sentence, stays."""
    said = words.CLOSING if house.closing else words.FULL.format(n=languages.decimal(f"{house.inside:,}"))
    headers = {"Retry-After": str(AGAIN), "Cache-Control": "no-store", "Content-Security-Policy": POLICY}
    return HTMLResponse(page(said), 503, headers=headers)


def page(said: str) -> str:
    """A sentence as a page of its own, which makes way for Headlight once that answers."""
    return (
        f'<!doctype html><html lang="{languages.current()}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<noscript><meta http-equiv="refresh" content="{AGAIN}"></noscript><title>{escape(words.WAITING_TITLE)}</title>'
        f'<style>{STYLE}</style></head><body role="status"><h1>{escape(words.WAITING_TITLE)}</h1><p>{escape(said)}</p>'
        f"<p>{escape(words.TRIES_AGAIN.format(seconds=AGAIN))}</p><script>{SCRIPT}</script></body></html>"
    )
