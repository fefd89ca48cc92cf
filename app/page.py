"""Puts page.js into Streamlit's page, before any other script: light or dark by the URL, steps for Back, Enter in a box."""

from __future__ import annotations

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPT = f"<script>{Path(__file__).with_name('page.js').read_text(encoding='utf-8')}</script>\n"
BEFORE = b"<title>"  # in Streamlit's page, before any script of its own


class Scripted:
    """ASGI middleware: SCRIPT at the top of the page, and of nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith(("/static/", "/headlight/")):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def through(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                plain = headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers
                if plain and message["status"] == 200:
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                page = body.replace(BEFORE, SCRIPT.encode() + BEFORE, 1)
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(page))
                for name in ("etag", "last-modified"):  # they are the file's, which may stay when SCRIPT changes
                    del headers[name]
                await send(start)
                await send({"type": "http.response.body", "body": page})
                return
            await send(message)

        await self.app(scope, receive, through)
