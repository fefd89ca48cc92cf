"""What lies between a visitor and core: the engine, requests, the place on the screen and its URL, and errors in words."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import streamlit as st
import torch

from app import examples, offered, pack, tables, underway, words
from core.checkpoints import CATALOG
from core.engine import Engine, Request, Stopped, Ticket
from core.errors import Refused, TextError
from core.trace import Trace

log = logging.getLogger("headlight")

AT_ONCE = 0.8  # seconds that a script waits for a run before it says that it runs
LOOK = 0.1  # seconds between two looks at whether the visitor has done something else meanwhile
DEFAULT_MODEL = CATALOG[0].id
DEFAULT_REQUEST = Request(DEFAULT_MODEL, (words.EXAMPLE,))


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def engine() -> Engine:
    """The one engine of this process, for visitors and routes alike.

    Not st.cache_resource: routes run outside of any script, and "clear cache" in a visitor's menu must not drop the models
    of all the others.
    """
    return Engine(load_model=offered.load, watch=underway.watch)


def warm_up() -> None:
    """Load the default model and run the example, so that nobody is the first visitor.

    Streamlit collects garbage after every run; freezing what is loaded by now keeps torch and the model out of it, which
    makes a rerun some thirty times cheaper.
    """
    torch.set_num_threads(max(1, cores() - 1))  # the server needs a core of its own to answer while a sentence runs
    # Tracing without allocating wants dynamo, whose import is seconds.
    for name in ("pandas", "pyarrow", "torch._dynamo", "app.views.explore", "app.views.shapes"):
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
    run = engine().run(request)
    return pack.picture(run, request.key, underway.take(request))


@dataclass(frozen=True)
class Answer:
    """What there is to show: the last run that worked, and a sentence when the newest did not."""

    request: Request | None
    trace: Trace | None
    picture: pack.Picture | None
    sentence: str | None
    ticket: Ticket | None = None  # of the newest, where it is still under way
    stopped: bool = False  # the visitor cancelled the newest
    unreadable: bool = False  # the model cannot read the newest text


def answer(request: Request, patience: float = AT_ONCE) -> Answer:
    """Run a request for this visitor, and wait for it for so many seconds.

    Whatever happens, the last good picture stays, also while a long one runs.
    """
    sentence, unreadable = None, False
    session = st.session_state
    before: Ticket | None = session.pop("ticket", None)
    if session.get("stopped") == request:
        return _last_good(words.STOPPED, stopped=True)
    session.pop("stopped", None)
    try:
        if before is not None and before.request == request and not before.given_back:
            ticket = before
        else:
            if before is not None:
                before.cancel()  # nobody looks at what it would have shown
            ticket = engine().submit(request)
        session["ticket"] = ticket
        if not ended(ticket, patience):
            return _last_good(None, ticket=ticket)
        session.pop("ticket")
        result = Answer(request, ticket.result(), picture(request), None)
        session["last_good"] = request
        return result
    except Stopped:
        return _last_good(words.STOPPED, stopped=True)
    except Refused as refusal:
        sentence, unreadable = str(refusal), isinstance(refusal, TextError)
    except Exception:
        log.exception("A request failed")
        sentence = words.BROKEN
    return _last_good(sentence, unreadable=unreadable)


def ended(ticket: Ticket, seconds: float) -> bool:
    """Whether a run has ended, after at most this long.

    To look into the session is to let Streamlit break off here for a visitor who has cancelled, or typed something else.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if ticket.wait(min(left, LOOK)):
            return True
        _ = "ticket" in st.session_state
    return ticket.done()


def stop() -> None:
    """The visitor waits no longer for the newest request."""
    ticket: Ticket | None = st.session_state.pop("ticket", None)
    if ticket is not None:
        ticket.cancel()
        st.session_state["stopped"] = ticket.request


def start_again() -> None:
    """The visitor wants what was stopped after all."""
    st.session_state.pop("stopped", None)


def _last_good(
    sentence: str | None, *, ticket: Ticket | None = None, stopped: bool = False, unreadable: bool = False
) -> Answer:
    """What was on the screen before, with what there is to say."""
    last: Request | None = st.session_state.get("last_good")
    if last is None:
        return Answer(None, None, None, sentence, ticket, stopped, unreadable)
    try:
        said = sentence and f"{sentence} {words.LAST_PICTURE}"
        return Answer(last, engine().run(last), picture(last), said, ticket, stopped, unreadable)
    except Exception:
        log.exception("The last good request failed too")
        return Answer(None, None, None, sentence, ticket, stopped, unreadable)


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
    """Where a picture opens when nobody asked for a place: at the head that the model's first example shows."""
    place = example_place(header, examples.shown_for(header["model_id"])[0])
    if place.query is not None:
        return place
    site = next(s for s in header["sites"] if s["id"] == place.site)
    return replace(place, query=max(0, site["n_query"] - 2))


def example_place(header: Mapping[str, Any], example: examples.Example) -> Place:
    """The head and the token that an example is about, in this picture; no query where it has no such token."""
    site = next((s for s in header["sites"] if s["id"] == example.site), header["sites"][0])
    layer, head = min(example.layer, len(site["records"]) - 1), min(example.head, site["heads"] - 1)
    return Place(site["id"], layer, head, example.query_among(header["tokens"][site["query"]]))


def asked_place(header: Mapping[str, Any], params: Mapping[str, str]) -> tuple[Place, list[str]]:
    """The place that URL parameters ask for, with a sentence for each one that this picture cannot show."""
    opening, notes = opening_place(header), []
    sites = {site["id"]: site for site in header["sites"]}
    asked = params.get("site", opening.site)
    if asked not in sites:
        notes.append(
            words.UNKNOWN_SITE.format(asked=tables.quoted(asked), model=header["model"], known=", ".join(sites))
        )
        asked = opening.site
    site = sites[asked]

    def number(what: str, size: int, default: int) -> int:
        text = params.get(what)
        if text is None:
            return min(default, size - 1)
        if not text.isdecimal() or len(text) > 9:
            notes.append(words.UNREADABLE.format(what=what, asked=tables.quoted(text), shown=min(default, size - 1)))
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


# the options beside the place: how the picture is shown


@dataclass(frozen=True)
class Option:
    """One way to show a picture: its name in the URL, what it is where the URL says nothing, and how its text is read."""

    url: str
    default: Any
    read: Callable[[str, Mapping[str, Any]], Any]  # text, site of the header -> value; raises ValueError
    allowed: str  # in words, for a link that asks for something else


def _one_of(url: str, *values: str) -> Option:
    def read(text: str, _: Mapping[str, Any]) -> str:
        if text not in values:
            raise ValueError
        return text

    return Option(url, values[0], read, ", ".join(values))


def _flag(url: str) -> Option:
    def read(text: str, _: Mapping[str, Any]) -> bool:
        return {"true": True, "false": False}[text]  # KeyError is caught beside ValueError

    return Option(url, False, read, "true, false")


def _percent(text: str, _: Mapping[str, Any]) -> int:
    return _below(text, 101, 1)


def _members(text: str, site: Mapping[str, Any]) -> list[list[int]]:
    pairs = [part.split(".") for part in text.split(",")]
    found = [[_below(layer, len(site["records"])), _below(head, site["heads"])] for layer, head in pairs]
    return sorted({tuple(pair): pair for pair in found}.values())


def _key(text: str, site: Mapping[str, Any]) -> int:
    return _below(text, site["n_key"])


def _keys(text: str, site: Mapping[str, Any]) -> list[int]:
    found = sorted({_below(part, site["n_key"]) for part in text.split(",")})
    if len(found) == site["n_key"]:  # a picture of nothing
        raise ValueError
    return found


def _below(text: str, high: int, low: int = 0) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not low <= int(text) < high:
        raise ValueError
    return int(text)


OPTIONS: dict[str, Option] = {
    "show": _one_of("show", "map", "lines", "table"),
    "scale": _one_of("scale", "auto", "linear", "log", "row"),
    "kind": _one_of("kind", "head", "mean", "max", "rollout", "value"),
    "members": Option("heads", [], _members, words.OPTION_HEADS),
    "hide": Option("hide", [], _keys, words.OPTION_HIDE),
    "pin": Option("key", None, _key, words.OPTION_KEY),
    "words": _flag("words"),
    "keep": Option("keep", 80, _percent, words.OPTION_KEEP),
    "metric": _one_of("metric", "maps", "entropy", "distance", "sink", "previous", "induction", "diagonal"),
    "sort": _flag("sort"),
    "projector": _flag("projector"),
    "spotlight": _flag("spotlight"),
    "frozen": _flag("frozen"),
    "theme": _one_of("theme", "auto", "light", "dark"),
}


def default_options() -> dict[str, Any]:
    """Every option as it is where nobody chose."""
    return {name: option.default for name, option in OPTIONS.items()}


def asked_options(header: Mapping[str, Any], site: str, params: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The options that URL parameters ask for, with a sentence for each one that cannot be followed."""
    shown, notes = default_options(), []
    where = next(s for s in header["sites"] if s["id"] == site)
    for name, option in OPTIONS.items():
        text = params.get(option.url)
        if text is None:
            continue
        try:
            shown[name] = option.read(text, where)
        except (ValueError, KeyError):
            asked = tables.quoted(text)
            notes.append(words.UNKNOWN_OPTION.format(what=option.url, asked=asked, allowed=option.allowed))
    return shown, notes


def option_params(options: Mapping[str, Any]) -> dict[str, str]:
    """As they stand in the URL: those that are not as they open."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return ",".join(".".join(map(str, part)) if isinstance(part, list) else str(part) for part in value)
        return str(value)

    return {o.url: text(options[name]) for name, o in OPTIONS.items() if options[name] != o.default}


def told_options(header: Mapping[str, Any], site: str, told: object) -> dict[str, Any] | None:
    """The options that the browser reports, in the URL's own words; None where they do not fit this picture."""
    if not isinstance(told, Mapping) or not all(isinstance(part, str) for pair in told.items() for part in pair):
        return None
    options, notes = asked_options(header, site, told)
    return None if notes else options


def carried_options(
    before: Mapping[str, Any], options: Mapping[str, Any], old: Place, header: Mapping[str, Any], place: Place
) -> dict[str, Any]:
    """The options of the picture before (its header is `before`), on a new one: hidden tokens stay hidden where they are still there.

    Heads that were put together are of their model.
    """
    source = next((s for s in before["sites"] if s["id"] == old.site), None)
    site = next(s for s in header["sites"] if s["id"] == place.site)
    known = options["members"] if before["model_id"] == header["model_id"] else []
    members = [pair for pair in known if pair[0] < len(site["records"]) and pair[1] < site["heads"]]
    was = [] if source is None else before["tokens"][source["key"]]
    now = header["tokens"][site["key"]]

    def there(key: int) -> int | None:
        """Where the same token is, counted from the front or from the end."""
        places = (key, key - len(was) + len(now))
        return next((at for at in places if was and 0 <= at < len(now) and now[at] == was[key]), None)

    hide = sorted({at for key in options["hide"] if (at := there(key)) is not None})
    pin = None if options["pin"] is None else there(options["pin"])
    return {**options, "members": members, "hide": hide if len(hide) < site["n_key"] else [], "pin": pin}


def _whole(value: object, size: int) -> int | None:
    """The whole number 0 ≤ value < size that JSON, which has one kind of number, may have made a float of."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < size else None
