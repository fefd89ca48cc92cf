"""What Shapes asks for later: the values of a run's tensors, small, and what one product takes here against three."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.rooms.shapes import words
from app.session import service
from app.transport.limits import whole
from app.transport.routes import answering, kept, number
from app.transport.routes import asked as asked_of
from core.errors import HeadlightError
from core.service import TensorPlace, Values

WIDEST, LONGEST = 1 << 17, 1 << 24  # features and tokens of a product that is timed
MOST = 48  # rows and columns of a thumbnail: the first ones, so that each pixel is one number


def described(found: Values) -> dict[str, Any]:
    """rows, columns: how many of all_rows × all_columns; low and high are the extremes of what is there, and values the
    numbers row by row, None where a mask hides one."""
    low, high = found.extremes
    plain = [round(x, 6) if math.isfinite(x) else None for x in found.values.ravel().tolist()]
    rows, columns = found.values.shape
    sizes = {"rows": rows, "columns": columns, "all_rows": found.all_rows, "all_columns": found.all_columns}
    return {**sizes, "low": low, "high": high, "values": plain}


async def values(request: Request) -> Response:
    """The first MOST × MOST numbers of one tensor, one head of it where it has heads: run, stack, layer, site, what, head.

    For the residual stream it is ‖x‖ of every token.
    """
    asked = request.query_params
    try:
        layer, head = (whole(asked.get(name, ""), 0, 1 << 20) for name in ("layer", "head"))
    except ValueError:
        return PlainTextResponse(words.COMPONENT["values_none"], 404)
    run, stack, site, what = (asked.get(name, "") for name in ("run", "stack", "site", "what"))

    async def make() -> bytes:
        found = await service.service().values(run, TensorPlace(stack, layer, site, what, head), MOST)
        return json.dumps(described(found), separators=(",", ":")).encode()

    try:
        return await kept(request, asked_of(request), make)
    except HeadlightError:
        return PlainTextResponse(words.COMPONENT["values_none"], 404)


@answering
async def projected(request: Request) -> Response:
    """One product for q, k and v against three, timed on this machine: width, q (their features) and rows (tokens)."""
    width, own = (number(request, name, 1, WIDEST) for name in ("width", "q"))
    rows = number(request, "rows", 1, LONGEST)
    return JSONResponse(asdict(await service.service().projections(width, (own, own, own), rows)))


ROUTES = [Route("/headlight/shapes/values", values), Route("/headlight/shapes/projections", projected)]
