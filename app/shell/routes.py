"""Every route beside the page, and what the operator can ask."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.attention import routes
from app.session import service
from app.shell import registry
from app.transport import modules
from app.transport import routes as transport_routes

STARTED = time.monotonic()


async def metrics(_: Request) -> Response:
    """Counts for the operator, nothing about anybody's text."""
    return JSONResponse({"seconds": round(time.monotonic() - STARTED), **await service.service().status()})


PAGE_ROUTES = [
    *routes.ROUTES,
    Route("/headlight/m/{digest}/{name}", modules.module),
    *(route for room in registry.rooms() for route in room.routes),
]
ROUTES = [
    *transport_routes.placed(PAGE_ROUTES),
    Route("/healthz", transport_routes.healthz),
    Route("/metrics", metrics),
]  # probes know no path
