"""Every route beside the page, and what the operator can ask."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.attention import routes, turns
from app.classroom import routes as classroom
from app.kit import writers
from app.session import service
from app.shell import link_preview, registry, room_route
from app.transport import admission, modules
from app.transport import metrics as counted
from app.transport import routes as transport_routes


async def metrics(_: Request) -> Response:
    """Counts for the operator in Prometheus' format, nothing about anybody's text."""
    body = counted.text(await service.service().status(), admission.house.inside)
    return Response(body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def readyz(_: Request) -> Response:
    """Whether a new visitor may be sent here: 503 while all places are taken, and from when the server is asked to end."""
    house = admission.house
    state = "closing" if house.closing else "full" if house.full else "ready"
    return JSONResponse({"status": state, "visitors": house.inside}, 200 if state == "ready" else 503)


PAGE_ROUTES = [
    *routes.ROUTES,
    *turns.ROUTES,
    *classroom.ROUTES,
    *link_preview.ROUTES,
    *room_route.ROUTES,
    Route("/headlight/m/{digest}/{name}", modules.module),
    Route("/headlight/writer/{name}", writers.writer),
    *(route for room in registry.rooms() for route in room.routes),
]
ROUTES = [
    *transport_routes.placed(PAGE_ROUTES),
    *([Route(transport_routes.BASE, transport_routes.to_page)] if transport_routes.BASE else []),
    Route("/healthz", transport_routes.healthz),
    Route("/readyz", readyz),
    Route("/metrics", metrics),
]  # probes know no path
