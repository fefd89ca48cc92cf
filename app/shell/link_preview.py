"""A link as others read it before any script runs: title, description, a picture, and oEmbed (oembed.com) for pages that show it."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from app.shell import words
from app.transport import security_headers

PICTURE = Path(__file__).with_name("preview.png")  # as social networks crop it; scripts/pictures.py draws it
SIZE = (1200, 630)
HOST = re.compile(r"[A-Za-z0-9.:\[\]-]+")
FRAME = (1000, 700)  # pixels of a frame that says nothing else
LEAST = 320  # pixels that a frame needs along a side, whatever it is asked to have at most


def head(scope: Scope) -> str:
    """Elements that take the place of <title> in the page, for who reads no script. Nothing of what a link says is in them."""
    found = {
        "og:type": "website",
        "og:site_name": words.TITLE,
        "og:title": words.PREVIEW_TITLE,
        "og:description": words.PREVIEW,
        "twitter:card": "summary_large_image",
    }
    lines = [f"<title>{escape(words.PREVIEW_TITLE)}</title>", _meta("name", "description", words.PREVIEW)]
    top = _top(scope)
    if top is not None:
        found |= {
            "og:image": f"{top}headlight/preview.png",
            "og:image:width": str(SIZE[0]),
            "og:image:height": str(SIZE[1]),
            "og:image:alt": words.PREVIEW_ALT,
        }
    lines += [_meta("name" if name.startswith("twitter") else "property", name, text) for name, text in found.items()]
    if top is not None and security_headers.ancestors():
        shown = f"{top}?{scope['query_string'].decode('latin-1')}"
        asked = escape(f"{top}headlight/oembed?{urlencode({'url': shown})}")
        title = escape(words.PREVIEW_TITLE)
        lines.append(f'<link rel="alternate" type="application/json+oembed" href="{asked}" title="{title}">')
        lines.append(_meta("name", "headlight-frames", "allowed"))
    return "\n".join(lines)


def _meta(kind: str, name: str, text: str) -> str:
    return f'<meta {kind}="{name}" content="{escape(text)}">'


def _top(scope: Scope) -> str | None:
    """The address at which the page is, with a slash at its end; None where the browser names a host that is none."""
    at = URL(scope=scope)
    if not HOST.fullmatch(at.netloc):
        return None
    return f"{at.scheme}://{at.netloc}{at.path.rsplit('/', 1)[0]}/"


async def picture(_: Request) -> Response:
    """The picture of every link."""
    return FileResponse(PICTURE, media_type="image/png", headers={"Cache-Control": "public, max-age=86400"})


async def oembed(request: Request) -> Response:
    """The frame for a link of this server, as oEmbed 1.0 says it: type rich. 404 for any other link, 501 for XML."""
    asked = request.query_params
    if asked.get("format", "json") != "json":
        return PlainTextResponse(words.OEMBED_JSON, 501)
    here, there = request.url, urlsplit(asked.get("url", ""))
    place = here.path.rsplit("/", 2)[0] + "/"  # without headlight/oembed
    if there.scheme not in ("http", "https") or there.netloc != here.netloc or there.path.rstrip("/") + "/" != place:
        return PlainTextResponse(words.OEMBED_OTHER.format(host=here.netloc), 404)
    if not security_headers.ancestors():
        return PlainTextResponse(words.OEMBED_NONE, 404)
    width, height = (
        min(size, max(LEAST, int(most))) if (most := asked.get(name, "")).isdecimal() and len(most) < 6 else size
        for name, size in zip(("maxwidth", "maxheight"), FRAME, strict=True)
    )
    said = {name: text for name, text in parse_qsl(there.query) if name != "embed"}
    shown = f"{there.scheme}://{there.netloc}{place}?{urlencode({'embed': 'true', **said})}"
    html = (
        f'<iframe src="{escape(shown)}" width="{width}" height="{height}" title="{escape(words.FRAME_TITLE)}"></iframe>'
    )
    return JSONResponse(
        {
            "version": "1.0",
            "type": "rich",
            "provider_name": words.TITLE,
            "title": words.PREVIEW_TITLE,
            "html": html,
            "width": width,
            "height": height,
            "cache_age": 86400,
        }
    )


ROUTES = [Route("/headlight/preview.png", picture), Route("/headlight/oembed", oembed)]
