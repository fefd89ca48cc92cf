"""The headers that tell a browser what a page of ours may do: nothing from elsewhere, and in the frames that the operator named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.transport import words

EMBED = "HEADLIGHT_EMBED"
ORIGIN = re.compile(r"https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?", re.IGNORECASE)
EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    # An address says what is on screen, sentence and all: no other site is to read it.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in (
            "accelerometer",
            "camera",
            "display-capture",
            "geolocation",
            "gyroscope",
            "hid",
            "magnetometer",
            "microphone",
            "midi",
            "payment",
            "serial",
            "usb",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Of an answer that is no page: should a browser be made to show it as one, it may do nothing.
NO_PAGE = "default-src 'none'; frame-ancestors 'none'; sandbox"


def ancestors(value: str | None = None) -> tuple[str, ...]:
    """The sites that may show Headlight in a frame, from HEADLIGHT_EMBED: origins with spaces between them.

    Raises ValueError for what is no origin, since a browser would ignore it without a word.
    """
    found = (os.environ.get(EMBED, "") if value is None else value).split()
    for origin in found:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(words.NO_ORIGIN.format(name=EMBED, value=origin[:80]))
    return tuple(found)


def policy(inline: Iterable[str], embedding: Iterable[str]) -> str:
    """The Content-Security-Policy of the page, as strict as Streamlit allows.

    `inline` are the hashes of the scripts that stand in the page ("sha256-…"), `embedding` the origins of ancestors().
    What is looser than 'self', and why:

    - script-src blob: — Streamlit makes an address of that kind from a component's few lines of script.
    - style-src 'unsafe-inline' — Streamlit's styles are written by its scripts, and ours are attributes.
    - img-src and font-src data:, img-src blob: — icons of Streamlit and Plotly; a picture that is exported is drawn from one.
    - worker-src blob: — Streamlit's editor of tables.
    """
    rules = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", "blob:", *(f"'{digest}'" for digest in inline)]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "frame-src": "'none'",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(["'self'", *embedding]),
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


class Safe:
    """ASGI middleware: EVERYWHERE on each answer, and NO_PAGE on those below the given paths."""

    def __init__(self, app: ASGIApp, no_pages: Iterable[str] = ()) -> None:
        self.app = app
        self.no_pages = tuple(no_pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in EVERYWHERE.items():
                    headers[name] = value
                if scope["path"].startswith(self.no_pages):
                    headers["Content-Security-Policy"] = NO_PAGE
            await send(message)

        await self.app(scope, receive, with_headers)
