"""What lies between a visitor and core: the engine, requests, the place on the screen and its URL, and errors in words."""

from __future__ import annotations

import gc
import importlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import streamlit as st
import torch

from app import pack, words
from core.checkpoints import CATALOG
from core.engine import Engine, Request
from core.errors import Refused
from core.trace import Trace

log = logging.getLogger("headlight")

DEFAULT_MODEL = CATALOG[0].id
DEFAULT_REQUEST = Request(DEFAULT_MODEL, (words.EXAMPLE,))
OPENING_LAYER, OPENING_HEAD, OPENING_TOKEN = 3, 1, "it"  # where MiniLM shows, on the example, what attention is for


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def engine() -> Engine:
    """The one engine of this process, for visitors and routes alike.

    Not st.cache_resource: routes run outside of any script, and "clear cache" in a visitor's menu must not drop the models
    of all the others.
    """
    return Engine()


def warm_up() -> None:
    """Load the default model and run the example, so that nobody is the first visitor.

    Streamlit collects garbage after every run; freezing what is loaded by now keeps torch and the model out of it, which
    makes a rerun some thirty times cheaper.
    """
    torch.set_num_threads(max(1, cores() - 1))  # the server needs a core of its own to answer while a sentence runs
    for name in ("pandas", "pyarrow", "app.views.explore"):
        importlib.import_module(name)
    try:
        # The first pass of a process is slow, and the time of the example's is on the screen.
        engine().run(Request(DEFAULT_MODEL, (words.TITLE,)))
        picture(DEFAULT_REQUEST)
    except Refused as refusal:
        log.warning("The default model is not available: %s", refusal)
    gc.collect()
    gc.freeze()


@lru_cache(maxsize=32)
def picture(request: Request) -> pack.Picture:
    """The picture of a request's run, ready to send. Raises Refused."""
    return pack.picture(engine().run(request), request.key)


@dataclass(frozen=True)
class Answer:
    """What there is to show: the last run that worked, and a sentence when the newest did not."""

    request: Request | None
    trace: Trace | None
    picture: pack.Picture | None
    sentence: str | None


def answer(request: Request) -> Answer:
    """Run a request for this visitor. Whatever happens, the last good picture stays."""
    sentence = None
    try:
        result = Answer(request, engine().run(request), picture(request), None)
        st.session_state["last_good"] = request
        return result
    except Refused as refusal:
        sentence = str(refusal)
    except Exception:
        log.exception("A request failed")
        sentence = words.BROKEN
    last: Request | None = st.session_state.get("last_good")
    if last is None:
        return Answer(None, None, None, sentence)
    try:
        return Answer(last, engine().run(last), picture(last), f"{sentence} {words.LAST_PICTURE}")
    except Exception:
        log.exception("The last good request failed too")
        return Answer(None, None, None, sentence)


def on_script_error(error: Exception) -> bool:
    """The last resort: a bug becomes a plain sentence on the screen and a traceback in the server's log."""
    log.error("The script failed", exc_info=error)
    st.warning(words.BROKEN)
    return True


# the place on the screen


@dataclass(frozen=True)
class Place:
    """Which head is on the screen, and which query is locked (None: no query)."""

    site: str
    layer: int
    head: int
    query: int | None

    def params(self) -> dict[str, str]:
        """As it stands in the URL."""
        query = "none" if self.query is None else str(self.query)
        return {"site": self.site, "layer": str(self.layer), "head": str(self.head), "query": query}


def opening_place(header: Mapping[str, Any]) -> Place:
    """Where a picture opens when nobody asked for a place."""
    site = header["sites"][0]
    labels = header["tokens"][site["query"]]
    query = labels.index(OPENING_TOKEN) if OPENING_TOKEN in labels else max(0, len(labels) - 2)
    n_layers, n_heads = len(site["records"]), site["heads"]
    return Place(site["id"], min(OPENING_LAYER, n_layers - 1), min(OPENING_HEAD, n_heads - 1), query)


def asked_place(header: Mapping[str, Any], params: Mapping[str, str]) -> tuple[Place, list[str]]:
    """The place that URL parameters ask for, with a sentence for each one that this picture cannot show."""
    opening, notes = opening_place(header), []
    sites = {site["id"]: site for site in header["sites"]}
    asked = params.get("site", opening.site)
    if asked not in sites:
        notes.append(words.UNKNOWN_SITE.format(asked=asked, model=header["model"], known=", ".join(sites)))
        asked = opening.site
    site = sites[asked]

    def number(what: str, size: int, default: int) -> int:
        text = params.get(what)
        if text is None:
            return min(default, size - 1)
        if not text.isdecimal() or len(text) > 9:
            notes.append(words.UNREADABLE.format(what=what, asked=text, shown=min(default, size - 1)))
            return min(default, size - 1)
        if int(text) >= size:
            shown = min(default, size - 1)
            notes.append(
                words.UNKNOWN_PLACE.format(
                    what=what, asked=text, model=header["model"], shown=shown, low=0, high=size - 1
                )
            )
            return shown
        return int(text)

    layer = number("layer", len(site["records"]), opening.layer)
    head = number("head", site["heads"], opening.head)
    query = None if params.get("query") == "none" else number("query", site["n_query"], opening.query or 0)
    return Place(asked, layer, head, query), notes


def label_of(header: Mapping[str, Any], place: Place) -> str | None:
    """What the locked token of a place reads; None where none is locked."""
    site = next(s for s in header["sites"] if s["id"] == place.site)
    return None if place.query is None else header["tokens"][site["query"]][place.query]


def carried_place(header: Mapping[str, Any], place: Place, label: str | None) -> Place:
    """The place of the picture before, on a new one: the same head if there is one, the same word if it is there."""
    opening = opening_place(header)
    site = next((s for s in header["sites"] if s["id"] == place.site), header["sites"][0])
    layer, head = min(place.layer, len(site["records"]) - 1), min(place.head, site["heads"] - 1)
    labels = header["tokens"][site["query"]]
    query = place.query
    if query is not None and (query >= len(labels) or labels[query] != label):
        query = labels.index(label) if label in labels else min(opening.query or 0, len(labels) - 1)
    return Place(site["id"], layer, head, query)


def told_place(header: Mapping[str, Any], told: object) -> Place | None:
    """The place that the browser reports, or None where it does not fit this picture (it may be of the one before)."""
    if not isinstance(told, Mapping) or told.get("key") != header["key"]:
        return None
    site = next((s for s in header["sites"] if s["id"] == told.get("site")), None)
    if site is None:
        return None
    layer = _whole(told.get("layer"), len(site["records"]))
    head = _whole(told.get("head"), site["heads"])
    query = _whole(told.get("query"), site["n_query"])
    if layer is None or head is None or (query is None and told.get("query") is not None):
        return None
    return Place(site["id"], layer, head, query)


def _whole(value: object, size: int) -> int | None:
    """The whole number 0 ≤ value < size that JSON, which has one kind of number, may have made a float of."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < size else None
