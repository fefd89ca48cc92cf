"""Registers the component that shows a run and mounts it: bytes go in, the place on the screen comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.attention import params as attention_params
from app.attention import picture as attention_picture
from app.attention import place as attention_place
from app.attention import transform, words
from app.kit import cover, scripts, stage, theme
from app.session import examples, room, service
from app.session.models import TITLES
from app.transport import messages, modules
from core.service import Facts

BROWSER = Path(__file__).parent / "browser"
NAMES = (
    "site",
    "layer",
    "head",
    "query",
    *(option.url for option in attention_params.OPTIONS.values()),
)  # ours in the URL
MANNER = ("show", "scale", "bounds")  # options that say how a picture is shown, and not of what
MOST_LEFT = 50  # pictures of a visit whose links are remembered, to know them when a visitor goes back

# What the modules of the browser know from here: words, colours, options and style
scripts.add()
modules.add("attention/browser", BROWSER)
modules.add_constants(
    "attention/browser/constants.js",
    WORDS=lambda: words.COMPONENT | {"sites": words.SITES, "tabs": words.SITE_TABS, "reasons": words.REASONS},
    PALETTES=theme.PALETTES,
    OPTIONS={name: {"url": option.url, "value": option.default} for name, option in attention_params.OPTIONS.items()},
    STYLE=modules.style(BROWSER / "attention.css", scripts.LINK),
)


@dataclass(frozen=True)
class Mounts:
    """The two components of a room that shows a run."""

    picture: Callable[..., Any]
    underway: Callable[..., Any]  # tells the picture before of a run that still goes on, and draws on its place
    opens: Callable[[], None]  # called before the script runs when a visitor asks for what is opened over the picture


def register(entry: str, opens: Callable[[], None]) -> Mounts:
    """The components of a room whose module `entry` exports them as default and as `underway`."""
    stage.ENTRIES["explore"] = entry
    return Mounts(
        modules.component("explore", entry, html=lambda: '<div class="hl"></div>'),
        modules.component("underway", entry, "underway", html=lambda: "<i></i>"),
        opens,
    )


def explore(mounts: Mounts, run: Facts, picture: attention_picture.Picture, link: Mapping[str, str]) -> list[str]:
    """Draw the picture of a run and follow the visitor through it: the place and the options are written to the URL.

    `link` is what a link to the picture says beside them: model, text and target.

    Returns a sentence for each part of the URL that the picture cannot show.
    """
    header, memory = picture.header, st.session_state.setdefault("explore_place", {})
    # All that the session says is read before anything is recorded: at each look the script may end, for a newer message.
    address, arrivals, told, wish = _requested(), _arrivals(), _reported(), _wished(header)
    if wish is not None:
        del st.session_state["explore_wish"]
    asked, is_news = _asked(memory, address, arrivals), _received(memory, told)
    late = None if is_news or told == memory.get("told") else _read(memory.get("former"), told)
    notes: list[str] = []
    if wish is not None or memory.get("header", {}).get("key") != header["key"]:
        # What was chosen in it while it was under way, or else where it opens
        known = _read(header, told) if told != memory.get("told") and wish is None else None
        memory["is_carried"] = wish is None and _is_carried(header, memory, asked)
        memory["former"] = memory.get("header")
        place, options, notes = (*known, []) if known else _arriving(header, memory, asked, wish)
        _open(memory, place, options)
        memory["told"] = told
    elif is_news and arrivals == memory["arrivals"]:
        memory["told"] = told
    elif late is not None:
        # Chosen in the picture before, when this one was on its way: it counts as if it had been known in time
        place, options = late
        if memory["is_carried"]:
            place, options = _carried(memory["former"], place, options, header)
        else:
            place, options = memory["place"], memory["options"] | {name: options[name] for name in MANNER}
        _open(memory, place, options)
        memory["told"] = told
    elif asked != memory["asked"]:
        place, options, notes = _opened(header, asked)
        _open(memory, place, options)
        memory["told"] = told
    written = _address(memory["place"], attention_place.opening_place(header), memory["options"])
    # Until the browser says this address, a message may come that left it before, with one of those that it replaces.
    replaced = [*memory.get("replaced", ()), memory.get("asked"), address][-MOST_LEFT:]
    memory |= {
        "header": header,
        "asked": written,
        "replaced": [] if address == written else replaced,
        "arrivals": arrivals,
    }
    left = memory.setdefault("left", {})
    left.pop(header["key"], None)
    left[header["key"]] = written
    while len(left) > MOST_LEFT:
        left.pop(next(iter(left)))
    _write(written)
    place, options = memory["opened"]
    opened = {"opened": asdict(place), "options": options, "stamp": memory["stamp"], "link": link}
    opened["told"] = memory["opened_told"]
    body = picture.body
    if not header["whole"] and memory.get("seen") != header["key"]:
        records = next(site["records"] for site in header["sites"] if site["id"] == place.site)
        head = transform.first(service.service(), run, records[place.layer], place.head, place.query)
        index, first = service.calls().result(head)
        opened["first"] = [[path, params, len(body) + at, size] for path, params, at, size in index]
        body += first
    _mount(mounts, header | opened | {"cover": cover.sent()}, body)
    return notes


def values() -> dict[str, str]:
    """The place and the options on the screen, as a link says them; {} where no picture was drawn in this visit."""
    memory = st.session_state.get("explore_place", {})
    if "place" not in memory:
        return {}
    return memory["place"].params() | attention_params.option_params(memory["options"])


def _mount(mounts: Mounts, header: dict[str, Any], body: bytes) -> None:
    mounts.picture(
        key="explore",
        data=messages.pack(header, body),
        default={"place": None},
        on_place_change=lambda: None,
        on_inspect_change=mounts.opens,
        on_shapes_change=mounts.opens,
    )


def underway(mounts: Mounts, header: dict[str, Any], link: Mapping[str, str], so_far: DeltaGenerator) -> bool:
    """Let the browser draw a run that still goes on where the picture before is, as soon as the head that is opened is there.

    `header` is that of the picture to come. Not where what is shown is more than one head as it is: that is computed from
    the whole run. Into `so_far` goes what tells the picture before of it; the first one of a visit is drawn where it will be.

    Returns whether it was drawn there, so that explore() has its place only in another run of the script.
    """
    memory = st.session_state.setdefault("explore_place", {})
    address, arrivals, told, wish = _requested(), _arrivals(), _reported(), _wished(header)
    _received(memory, told)
    place, options, _ = _arriving(header, memory, _asked(memory, address, arrivals), wish)
    if options["show"] != "map" or options["kind"] != "head" or options["hide"] or options["words"]:
        return False
    opened = header | {"opened": asdict(place), "options": options, "link": link, "told": memory["count"]}
    opened["cover"] = cover.sent()
    memory["seen"] = header["key"]  # the browser has the head that is opened
    if is_first := "header" not in memory:
        _mount(mounts, opened | {"going": True}, b"")
    else:
        with so_far:
            mounts.underway(key="underway", data=messages.pack(opened, b""))
    return is_first


def _arriving(
    header: Mapping[str, Any], memory: Mapping[str, Any], asked: Mapping[str, str], wish: attention_place.Place | None
) -> tuple[attention_place.Place, dict[str, Any], list[str]]:
    """Where a picture opens that was not on the screen before, how, and a sentence for what of a link it cannot show.

    The first picture of a visit opens where its link says, and so does one that the visitor went back to. A new sentence
    stays at the head, and if it can at the word, that is on the screen; another model has other heads.
    """
    if wish is not None:
        plain = {"kind": "head", "members": [], "pin": None, "hide": [], "words": False}
        return wish, memory.get("options", attention_params.default_options()) | plain, []
    if not _is_carried(header, memory, asked):
        return _opened(header, asked)
    return *_carried(memory["header"], memory["place"], memory["options"], header), []


def _is_carried(header: Mapping[str, Any], memory: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    """Whether a new picture is to be shown as the one before it was, and not as a link says."""
    # A picture that was on the screen with these very words of the link is one gone back to, whatever is on it now.
    return "header" in memory and asked == memory["asked"] and memory.get("left", {}).get(header["key"]) != asked


def _carried(
    before: Mapping[str, Any], place: attention_place.Place, options: Mapping[str, Any], header: Mapping[str, Any]
) -> tuple[attention_place.Place, dict[str, Any]]:
    """Place and options of the picture before (its header is `before`), on a new one."""
    if header["model_id"] == before["model_id"]:
        now = _next_place(before, place, header)
    else:
        now = attention_place.opening_place(header)
    return now, attention_params.carried_options(before, options, place, header, now)


def _open(memory: dict[str, Any], place: attention_place.Place, options: dict[str, Any]) -> None:
    """Have the browser show the picture so: it keeps its own choice only where that is newer than what is known here."""
    memory |= {"opened": (place, options), "stamp": memory.get("stamp", 0) + 1, "opened_told": memory["count"]}
    memory |= {"place": place, "options": options}


def _next_place(
    before: Mapping[str, Any], place: attention_place.Place, header: Mapping[str, Any]
) -> attention_place.Place:
    """The place in a new text of the same model: a head that a visitor chose stays, else the picture opens by rule."""
    label = attention_place.label_of(before, place)
    if not header.get("openings"):
        return attention_place.carried_place(header, place, label)
    if place == attention_place.opening_place(before):  # no one has chosen another one
        return attention_place.opening_place(header)

    def begin(record: int, head: int) -> int:
        return service.calls().result(service.service().opening(header["key"], record, head)).query

    return attention_place.carried_place(header, place, label, begin)


def _opened(
    header: Mapping[str, Any], asked: Mapping[str, str]
) -> tuple[attention_place.Place, dict[str, Any], list[str]]:
    place, notes = attention_place.requested_place(header, asked)
    options, more = attention_params.requested_options(header, place.site, asked)
    if options["pin"] is not None:
        place = replace(place, query=None)  # one token is locked, of the two that a link may name the key
    return place, options, notes + more


def _wished(header: Mapping[str, Any]) -> attention_place.Place | None:
    """The place of the example that the visitor took, once its picture is there."""
    wish: examples.Example | None = st.session_state.get("explore_wish")
    if wish is None or st.session_state.get("text") != wish.text or header["model"] != TITLES[examples.owner_of(wish)]:
        return None
    place = attention_place.example_place(header, wish)
    return None if place.query is None else place


def _reported() -> Any:
    """What the browser said last, numbered by it: what it said before is old news."""
    return (st.session_state.get("explore") or {}).get("place")


def _received(memory: dict[str, Any], told: Any) -> bool:
    """Store the browser's newer selection and its message count in `memory`; return whether the selection was new."""
    count = told.get("told") if isinstance(told, Mapping) else None
    # It counts on over the whole visit, also where the component was away for a while.
    memory["count"] = max(memory.get("count", 0), int(count) if isinstance(count, int | float) else 0)
    news = _read(memory.get("header"), told) if told != memory.get("told") else None
    if news is not None:
        memory["place"], memory["options"] = news
    return news is not None


def _read(header: Mapping[str, Any] | None, told: Any) -> tuple[attention_place.Place, dict[str, Any]] | None:
    """The place and the options that the browser reports of this picture; None where they are not of it."""
    place = None if header is None else attention_place.reported_place(header, told)
    if header is None or place is None:
        return None
    options = attention_params.reported_options(header, place.site, told.get("options"))
    return None if options is None else (place, options)


def _requested() -> dict[str, str]:
    return {name: value for name in NAMES if (value := st.query_params.get(name))}


def _arrivals() -> int:
    return st.session_state.get(room.ARRIVALS, 0)


def _asked(memory: Mapping[str, Any], address: dict[str, str], arrivals: int) -> dict[str, str]:
    """What the address asks for: nothing new where its message left the browser before that had the address written last.

    Such a message says an address of before. So does one of a visitor who went back there, which is an arrival.
    """
    is_late = address in memory.get("replaced", ()) and arrivals == memory["arrivals"]
    return memory["asked"] if is_late else address


def _address(
    place: attention_place.Place, opening: attention_place.Place, options: Mapping[str, Any]
) -> dict[str, str]:
    """Place and options as they stand in the URL, which leaves out what is as it opens."""
    at_opening = opening.params()
    said = {name: value for name, value in place.params().items() if value != at_opening[name]}
    return said | attention_params.option_params(options)


def _write(said: Mapping[str, str]) -> None:
    """Have the URL say that."""
    gone: dict[str, str | list[str]] = {name: [] for name in _requested().keys() - said.keys()}
    if changed := gone | {name: value for name, value in said.items() if st.query_params.get(name) != value}:
        st.query_params.update(changed)  # all at once: each change is a step that Back takes
