"""Positions in bytes and plain JSON for the browser: the header of the room, the change of an order, tables and clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np

from app.attention import picture
from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.rooms.positions import choices, export
from app.session import examples
from app.session.models import MODELS
from app.session.screen import Screen
from app.transport import messages
from core.service import (
    ContextExtensions,
    Facts,
    Heads,
    OrderEffect,
    PaperRules,
    RotaryPairs,
    Site,
    StackPositions,
    SwappedMaps,
    WordSwap,
)

HOMES = {"learned": "minilm", "sinusoidal": "translator", "rotary": "storyteller"}  # kind -> a model that ships
AT_ONCE = 50_000  # weights of a site up to which all heads of both runs come with the change; above, maps are fetched one by one


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The room's message for a link."""
    values, notes = kit_params.read(choices.PARAMS, run.facts, said)
    more = {"link": Screen("positions", run.request).said(), "about": export.described(run.facts, date.today())}
    return Message(header(run.facts) | more, values, notes, run.facts)


def header(run: Facts) -> dict[str, Any]:
    """What the room is about: the run as trained."""
    layer, head = choices.opening_head(run)
    return {
        "key": run.key,
        "model": run.spec.title,
        "kind": run.config.kind,
        "position": run.config.position,
        "n_ctx": run.config.n_ctx,
        "d_model": run.config.d_model,
        "stacks": list(choices.stacks_of(run)),
        "tokens": {
            side: None
            if tokens is None
            else {"labels": list(tokens.labels), "fixed": _fixed(tokens), "turns": picture.turns(tokens)}
            for side, tokens in (("source", run.source), ("target", run.target))
        },
        "sites": [_site(run, site) for site in run.sites],
        "opening": {"layer": layer, "head": head},
        "line": choices.line(run),
        "homes": homes(),
        "ordered": {stack: choices.has_order(run, stack) for stack in choices.stacks_of(run)},
        "windowed": None
        if run.config.rotary_base_windowed is None
        else [run.config.is_windowed(layer) for layer in range(max(len(site.records) for site in run.sites))],
    }


def homes() -> dict[str, tuple[str, str]]:
    """A model that is offered here for each kind of positions that one that ships has: its title, and a text for it."""
    return {
        kind: (MODELS[name].title, examples.first_text(MODELS[name])) for kind, name in HOMES.items() if name in MODELS
    }


def _fixed(tokens: Any) -> list[int]:
    movable = set(choices.words_of(tokens))
    return [i for i in range(len(tokens)) if i not in movable]


def _site(run: Facts, site: Site) -> dict[str, Any]:
    return {
        "id": site.id,
        "stack": run.records[site.records[0]].stack,
        "records": list(site.records),
        "heads": site.n_heads,
        "kv_heads": site.n_kv_heads,
        "query": site.query,
        "key": site.key,
        "n_query": site.n_query,
        "n_key": site.n_key,
    }


def has_all(site: Site) -> bool:
    """Whether every weight of both runs comes with the change."""
    return site.weights <= AT_ONCE


def change_message(
    about: dict[str, Any], change: OrderEffect, before: Heads | None, after: Heads | None, places: Sequence[int]
) -> bytes:
    """How far every head moves, float32 [layer, head]; by distance before and after [layer, head, distance], nan where there
    is none; and of small runs every weight before and after, uint16 [layer, head, query, key]. places are those of the words
    of the stack that was edited."""
    body = messages.Body()
    found: dict[str, Any] = about | {
        "rows": change.rows,
        "of": change.of,
        "reach": change.reach,
        "places": list(places),
    }
    found["layers"], found["heads"] = change.moved.shape
    found["moved_at"] = body.add(messages.float32(change.moved))
    for name, values in (("before", change.before), ("after", change.after)):
        found[f"{name}_at"] = None if values is None else body.add(messages.float32(values))
    for name, heads in (("weights", before), ("weights_now", after)):
        found[f"{name}_at"] = None if heads is None else body.add(messages.quantised(heads.weights))
        found["cells"] = 0 if heads is None else int(heads.weights.size)
    return messages.pack(found, body.bytes())


def swap_message(about: dict[str, Any], swap: WordSwap) -> bytes:
    """How far every head is from carried along and from as it was, float32 [layer, head], and its weight on the token before,
    float32 [2, layer, head]."""
    body = messages.Body()
    layers, heads = swap.along.shape
    found = about | {
        "layers": layers,
        "heads": heads,
        "rows": swap.rows,
        "read": swap.read,
        "of": swap.of,
        "weights": swap.weights,
        "apart": float(swap.apart.max()),
        "after_both": swap.after_both,
        "word": asdict(swap.word),
        "place": asdict(swap.place),
        "along_at": body.add(messages.float32(swap.along)),
        "still_at": body.add(messages.float32(swap.still)),
        "back_at": body.add(messages.float32(swap.one_back)),
    }
    return messages.pack(found, body.bytes())


def maps_message(maps: SwappedMaps) -> bytes:
    """One head before and after, float32 [row, key] of these places, and where the mask lets it look, a byte each."""
    body = messages.Body()
    found = {
        "places": list(maps.places),
        "before_at": body.add(messages.float32(maps.before)),
        "after_at": body.add(messages.float32(maps.after)),
        "allowed_at": body.add(maps.allowed.astype("u1")),
    }
    return messages.pack(found, body.bytes())


def rows_message(rows: np.ndarray, first: int) -> bytes:
    """Rows of a table, float32 [position, feature]."""
    return messages.pack(
        {"first": first, "rows": len(rows), "columns": rows.shape[1]}, messages.float32(rows).tobytes()
    )


def clock_message(clock: RotaryPairs) -> dict[str, Any]:
    return {
        "q": clock.q.tolist(),
        "k": clock.k.tolist(),
        "frequencies": clock.frequencies.tolist(),
        "scale": clock.scale,
        "factor": clock.factor,
        "places": list(clock.places),
        "score": clock.score,
        "masked": clock.masked,
    }


def stack_message(known: StackPositions) -> dict[str, Any]:
    """Everything about one stack's positions but the rows of its table."""
    return {
        "stack": known.stack,
        "kind": known.kind,
        "n_ctx": known.n_ctx,
        "parameters": known.parameters,
        "layout": known.layout,
        "closest": known.closest,
        "compared": known.compared,
        "alike": _listed(known.alike),
        "too_long": known.too_long,
        "periods": None if known.frequencies is None else (2 * np.pi / known.frequencies).tolist(),
        "slopes": _listed(known.slopes),
        "bias": None if known.bias is None else [row.tolist() for row in known.bias],
        "buckets": _listed(known.buckets),
    }


def rules(papers: PaperRules) -> dict[str, Any]:
    """For models that have neither ALiBi nor T5's buckets."""
    return {
        "slopes": papers.slopes.tolist(),
        "bias": papers.bias.tolist(),
        "buckets": papers.buckets.tolist(),
        "wide": papers.wide.tolist(),
        "decoder": papers.decoder.tolist(),
        "exact": papers.exact,
        "far": papers.far,
    }


def stretches(found: ContextExtensions) -> dict[str, Any]:
    return {
        "n_ctx": found.n_ctx,
        "base": found.base,
        "d_head": found.d_head,
        "rules": {
            rule: {"frequencies": row.tolist(), "factor": factor}
            for rule, row, factor in zip(found.rules, found.frequencies, found.factors, strict=True)
        },
    }


def _listed(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else [None if number != number else number for number in values.tolist()]  # type: ignore[misc]
