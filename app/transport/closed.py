"""Requests that are never answered: those under a name of another site, and those for Streamlit's own metrics."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.streamlit_edge import hosts
from app.transport import words

PROBES = ("/healthz", "/readyz")  # a platform asks for these by the address of a container
METRICS = "/_stcore/metrics"  # Streamlit's sessions, memory and caches; our operators read /metrics
POLICY_VIOLATION = 1008  # close code of a websocket
MISDIRECTED = 421


class Closed:
    """ASGI middleware in front of everything that answers."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self.app, self.metrics = app, f"{base}{METRICS}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif scope["path"] not in PROBES and not hosts.is_allowed(Headers(scope=scope).get("host")):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            else:
                await PlainTextResponse(words.OTHER_HOST, MISDIRECTED)(scope, receive, send)
        elif scope["type"] == "http" and scope["path"].rstrip("/") == self.metrics:
            await PlainTextResponse(words.NO_MODULE, 404)(scope, receive, send)
        else:
            await self.app(scope, receive, send)
