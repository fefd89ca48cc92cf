"""Compression of Streamlit's own files."""

from __future__ import annotations

import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import __file__ as streamlit_file

from app.transport import modules, routes

STATIC = Path(streamlit_file).parent / "static" / "static"


class Gzipped:
    """ASGI middleware: Streamlit's own scripts and styles, compressed once and then kept.

    Streamlit sends them as they are and leaves compression to a proxy, which a laptop or a small host does not have: a
    first visit is 2.9 MB without and 0.9 MB with it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        files = f"{routes.BASE}/static/"
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(files):
            headers = Headers(scope=scope)
            if "gzip" in headers.get("accept-encoding", "") and "range" not in headers:
                body = await run_in_threadpool(_compressed, scope["path"].removeprefix(files))
                if body is not None:
                    kind = mimetypes.guess_type(scope["path"])[0] or "application/octet-stream"
                    headers = {"Content-Encoding": "gzip", "Cache-Control": modules.FOREVER, "Vary": "Accept-Encoding"}
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
