"""What those see who follow a class in a room about sizes: the sentence of a chart, the chart in their own colours, and its note."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.kit import scripts, stage
from app.kit.theme import PALETTES
from app.transport import messages, modules

BROWSER = Path(__file__).parent / "browser"
ENTRY = "sizes/browser/seen.js"
PLOTLY = "headlight/plotly.js"

scripts.add()
modules.add("sizes/browser", BROWSER)
modules.add_constants("sizes/browser/constants.js", PALETTES=PALETTES, STYLE=scripts.style(BROWSER / "seen.css"))


def keep(view: str, chart: str, said: Mapping[str, Any], link: Mapping[str, str], figure: Callable[..., Any]) -> str:
    """Keep a chart for others, who may ask for it as long as this visitor shows it; the digest of what it says.

    `said` is what its files say about it, all its numbers among them; figure(theme=, scale=) draws it, once a visitor asks.
    """
    digest = hashlib.blake2b(repr((view, chart, said, link)).encode(), digest_size=16).hexdigest()

    def message() -> bytes:
        return messages.pack(
            {
                "key": view,
                "sentence": said["sentence"],
                "note": said["note"],
                "chart": chart,
                "figures": {theme: figure(theme=theme, scale=1.0).to_json() for theme in PALETTES},
                "plotly": PLOTLY,
                "chosen": {"values": {}},
                "cover": None,
                "link": link,
            },
            b"",
        )

    stage.keep(stage.Drawn(view, digest, message, {}, (), None))
    return digest


@cache
def _plotly() -> tuple[bytes, bytes]:
    """Plotly for a browser, as the installed package has it, and the same compressed."""
    spec = importlib.util.find_spec("plotly")
    assert spec is not None and spec.submodule_search_locations
    text = (Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js").read_bytes()
    return text, gzip.compress(text, compresslevel=6)


async def plotly(request: Request) -> Response:
    """Plotly. Streamlit has its own, within scripts that a page without Streamlit does not have."""
    plain, compressed = await run_in_threadpool(_plotly)
    headers = {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(compressed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)


ROUTES = [Route(f"/{PLOTLY}", plotly)]
