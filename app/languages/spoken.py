"""ASGI middleware: every request is answered in the language that its address names, or that its browser asks for."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app import languages


class Spoken:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the scripts of a visit know its language by themselves
            await self.app(scope, receive, send)
            return
        with languages.speaking(of_request(scope)):
            await self.app(scope, receive, send)


def of_request(scope: Scope) -> str:
    """By lang=, where the address says it, else by Accept-Language."""
    query: bytes = scope.get("query_string", b"")
    said = ""
    if b"lang=" in query:
        with suppress(ValueError):
            said = parse_qs(query.decode("ascii", "replace"), max_num_fields=100).get(languages.PARAM, [""])[0]
    return languages.chosen(said, Headers(scope=scope).get("accept-language", ""))
