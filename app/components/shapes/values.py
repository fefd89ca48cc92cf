"""Thumbnails: the values of a run's tensors, small, for the Shapes view, and the routes that send them."""

from __future__ import annotations

from typing import Any

import torch
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app import shape_words as words
from app import state
from app.components.shapes.shapes import MODULES
from core.attention import AttentionRecord
from core.errors import Refused
from core.trace import Trace

MOST = 48  # rows and columns of a thumbnail: the first ones, so that each pixel is one number
OF_A_HEAD = ("q", "k", "scores", "mask", "weights", "z")
FOREVER = "public, max-age=31536000, immutable"


def thumbnail(run: Trace, stack: str, layer: int, site: str, what: str, head: int) -> dict[str, Any]:
    """The first MOST × MOST numbers of one tensor, one head of it where it has heads, as they are.

    rows, columns: how many of all_rows × all_columns; low and high are the extremes of what is there, and values the
    numbers row by row, None where a mask hides one. For the residual stream it is ‖x‖ of every token. Raises KeyError
    for a tensor that the run does not have.
    """
    if what in OF_A_HEAD:
        name = "cross_attn" if site == "cross" else "attn"
        records = [r for r in run.attention if (r.stack, r.layer, r.site) == (stack, layer, name)]
        if not records or not 0 <= head < records[0].n_heads:
            raise KeyError(what)
        values, shape = _of_head(records[0], what, head)
    elif what == "position":
        table = next((record.table() for record in run.positions if record.stack == stack), None)
        if table is None:
            raise KeyError(what)
        values, shape = table[:MOST, :MOST], table.shape
    else:
        outside = {"embed": f"{stack}.embed.hook_embed", "final": f"{stack}.hook_final"}
        norms = run.resid[outside.get(what, f"{stack}.blocks.{layer}.hook_{what}")]
        values, shape = norms[None, : 4 * MOST], (1, len(norms))
    values = values.float().cpu()
    finite = values[torch.isfinite(values)]
    low, high = (finite.min().item(), finite.max().item()) if finite.numel() else (0.0, 0.0)
    plain = [round(x, 6) if x == x and abs(x) != float("inf") else None for x in values.flatten().tolist()]
    rows, columns = values.shape
    sizes = {"rows": rows, "columns": columns, "all_rows": shape[-2], "all_columns": shape[-1]}
    return {**sizes, "low": low, "high": high, "values": plain}


def _of_head(record: AttentionRecord, what: str, head: int) -> tuple[torch.Tensor, tuple[int, ...]]:
    queries, keys = range(min(MOST, record.n_query)), range(min(MOST, record.n_key))
    square = (record.n_query, record.n_key)
    shared = head // (record.n_heads // record.n_kv_heads)
    if what == "q":
        return record.q[head][:MOST, :MOST], tuple(record.q[head].shape)
    if what == "k":
        return record.k[shared][:MOST, :MOST], tuple(record.k[shared].shape)
    if what == "scores":
        return record.scores(head, queries, keys)[0], square
    if what == "mask":
        return record.mask(queries, keys, head=head), square
    if what == "weights":
        return record.pattern(head, queries, keys)[0], square
    v = record.v[shared].float()
    return (record.pattern(head, queries)[0] @ v)[:, :MOST], (record.n_query, v.shape[1])


def values(request: Request) -> Response:
    """A thumbnail: run, stack, layer, site, what, head, as thumbnail() makes it."""
    asked = request.query_params
    try:
        numbers = [asked.get(name, "") for name in ("layer", "head")]
        if not all(text.isascii() and text.isdecimal() and len(text) < 6 for text in numbers):
            raise KeyError
        layer, head = map(int, numbers)
        run = state.engine().trace(asked.get("run", ""))
        made = thumbnail(run, asked.get("stack", ""), layer, asked.get("site", ""), asked.get("what", ""), head)
    except (KeyError, Refused):
        return PlainTextResponse(words.COMPONENT["values_none"], 404)
    return JSONResponse(made, headers={"Cache-Control": "private, max-age=3600"})


async def module(request: Request) -> Response:
    """One module of this component, or of the planner, whose modules it has as well. Its address carries a hash of them all, so browsers may keep it."""
    source = MODULES.get(request.path_params["name"])
    if source is None:
        return PlainTextResponse(words.NO_MODULE, 404)
    headers = {"Cache-Control": FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(source, media_type="text/javascript", headers=headers)


ROUTES = [
    Route("/headlight/shapes/values", values),
    Route("/headlight/shapes/{digest}/{name}", module),
    Route("/headlight/planner/{digest}/{name}", module),
]
