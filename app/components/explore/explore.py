"""Registers the Explore component and mounts it: bytes go in, the place on the screen comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components import v2
from streamlit.delta_generator import DeltaGenerator

from app import examples, lens, pack, state, theme, words
from app.offered import TITLES
from core.trace import Trace

HERE = Path(__file__).parent
NAMES = ("site", "layer", "head", "query", *(option.url for option in state.OPTIONS.values()))  # ours in the URL
MOST_LEFT = 50  # pictures of a visit whose links are remembered, to know them when somebody goes back

# Streamlit sends a component's script and style with every message of it. So what it gets is one line, and the real
# modules, with their style, words and colours, are fetched once and kept by the browser for as long as they stay the same.
CONSTANTS = {
    "WORDS": words.COMPONENT | {"sites": words.SITES, "tabs": words.SITE_TABS, "reasons": words.REASONS},
    "PALETTES": theme.PALETTES,
    "OPTIONS": {name: {"url": option.url, "value": option.default} for name, option in state.OPTIONS.items()},
    "STYLE": (HERE / "explore.css").read_text(encoding="utf-8"),
}
MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.js"))}
MODULES["constants.js"] = "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in CONSTANTS.items())
DIGEST = hashlib.sha256("".join(MODULES.values()).encode()).hexdigest()[:16]
# Every module is asked for at once, so that their imports of each other wait for nothing. More than one line, because
# Streamlit takes a single line with a slash in it for the name of a file.
LOADER = f"""
const get = (name) => import(new URL(`headlight/{DIGEST}/${{name}}`, document.baseURI).href);
const [entry] = await Promise.all({json.dumps(["explore.js", *(name for name in MODULES if name != "explore.js")])}.map(get));
export default entry.%s;
"""

_component = v2.component("explore", html='<div class="hl"></div>', js=LOADER % "default")
_underway = v2.component("underway", html="<i></i>", js=LOADER % "underway")  # draws on the other one's place


def explore(run: Trace, picture: pack.Picture, link: Mapping[str, str]) -> list[str]:
    """Draw the picture of a run and follow the visitor through it: the place and the options are written to the URL.

    `link` is what a link to the picture says beside them: model, text and target.

    Returns a sentence for each part of the URL that the picture cannot show.
    """
    header, memory = picture.header, st.session_state.setdefault("explore_place", {})
    asked, told = _asked(), _told()
    is_news = _heard(memory)
    notes: list[str] = []
    wished = _wished(header) is not None
    if wished or memory.get("header", {}).get("key") != header["key"]:
        # What was chosen in it while it was under way, or else where it opens
        known = _read(header, told) if told != memory.get("told") and not wished else None
        place, options, notes = (*known, []) if known else _arriving(header, memory)
        memory |= {"opened": (place, options), "told": told, "stamp": memory.get("stamp", 0) + 1}
        memory |= {"place": place, "options": options}
        if wished:
            del st.session_state["explore_wish"]
    elif is_news:
        memory |= {"told": told}
    elif asked != memory["asked"]:
        place, options, notes = _opened(header, asked)
        memory |= {"opened": (place, options), "stamp": memory["stamp"] + 1, "place": place, "options": options}
    _write(memory["place"], state.opening_place(header), memory["options"])
    memory |= {"header": header, "asked": _asked(), "label": state.label_of(header, memory["place"])}
    left = memory.setdefault("left", {})
    left.pop(header["key"], None)
    left[header["key"]] = memory["asked"]
    while len(left) > MOST_LEFT:
        left.pop(next(iter(left)))
    place, options = memory["opened"]
    opened = {"opened": asdict(place), "options": options, "stamp": memory["stamp"], "link": link}
    body = picture.body
    if not header["whole"] and memory.get("seen") != header["key"]:
        records = next(site["records"] for site in header["sites"] if site["id"] == place.site)
        index, first = lens.first(run, records[place.layer], place.head, place.query)
        opened["first"] = [[path, params, len(body) + at, size] for path, params, at, size in index]
        body += first
    _mount(header | opened, body)
    return notes


def _mount(header: dict[str, Any], body: bytes) -> None:
    _component(
        key="explore",
        data=pack.pack(header, body),
        default={"place": None},
        on_place_change=lambda: None,
        on_inspect_change=lambda: None,
    )


def underway(header: dict[str, Any], link: Mapping[str, str], so_far: DeltaGenerator) -> bool:
    """Let the browser draw a run that still goes on where the picture before is, as soon as the head that is opened is there.

    `header` is that of the picture to come. Not where what is shown is more than one head as it is: that is worked out from
    the whole run. Into `so_far` goes what tells the picture before of it; the first one of a visit is drawn where it will be.

    Returns whether it was drawn there, so that explore() has its place only in another run of the script.
    """
    memory = st.session_state.setdefault("explore_place", {})
    _heard(memory)
    place, options, _ = _arriving(header, memory)
    if options["show"] != "map" or options["kind"] != "head" or options["hide"] or options["words"]:
        return False
    opened = header | {"opened": asdict(place), "options": options, "link": link, "told": _told_count()}
    memory["seen"] = header["key"]  # the browser has the head that is opened
    if is_first := "header" not in memory:
        _mount(opened | {"going": True}, b"")
    else:
        with so_far:
            _underway(key="underway", data=pack.pack(opened, b""))
    return is_first


def _arriving(header: Mapping[str, Any], memory: Mapping[str, Any]) -> tuple[state.Place, dict[str, Any], list[str]]:
    """Where a picture opens that was not on the screen before, how, and a sentence for what of a link it cannot show.

    The first picture of a visit opens where its link says, and so does one that the visitor went back to. A new sentence
    stays at the head, and if it can at the word, that is on the screen; another model has other heads.
    """
    if (wish := _wished(header)) is not None:
        plain = {"kind": "head", "members": [], "pin": None, "hide": [], "words": False}
        return wish, memory.get("options", state.default_options()) | plain, []
    # A picture that was on the screen with these very words of the link is one gone back to, whatever is on it now.
    asked = _asked()
    if "header" not in memory or asked != memory["asked"] or memory.get("left", {}).get(header["key"]) == asked:
        return _opened(header, asked)
    if header["model_id"] == memory["header"]["model_id"]:
        place = state.carried_place(header, memory["place"], memory["label"])
    else:
        place = state.opening_place(header)
    return place, state.carried_options(memory["header"], memory["options"], memory["place"], header, place), []


def _opened(header: Mapping[str, Any], asked: Mapping[str, str]) -> tuple[state.Place, dict[str, Any], list[str]]:
    place, notes = state.asked_place(header, asked)
    options, more = state.asked_options(header, place.site, asked)
    if options["pin"] is not None:
        place = replace(place, query=None)  # one token is locked, of the two that a link may name the key
    return place, options, notes + more


def _wished(header: Mapping[str, Any]) -> state.Place | None:
    """The place of the example that the visitor took, once its picture is there."""
    wish: examples.Example | None = st.session_state.get("explore_wish")
    if wish is None or st.session_state.get("text") != wish.text or header["model"] != TITLES[examples.owner_of(wish)]:
        return None
    place = state.example_place(header, wish)
    return None if place.query is None else place


def _told() -> Any:
    """What the browser said last, numbered by it: what it said before is old news."""
    return (st.session_state.get("explore") or {}).get("place")


def _told_count() -> int:
    """How much the browser had said when this script began: a run that it shows early must know all of it."""
    told = _told()
    count = told.get("told") if isinstance(told, Mapping) else None
    return count if isinstance(count, int) else 0


def _heard(memory: dict[str, Any]) -> bool:
    """Whether the browser has news of the picture before; they are in `memory` then."""
    told = _told()
    news = _read(memory.get("header"), told) if told != memory.get("told") else None
    if news is not None:
        place, options = news
        memory |= {"place": place, "options": options, "label": state.label_of(memory["header"], place)}
    return news is not None


def _read(header: Mapping[str, Any] | None, told: Any) -> tuple[state.Place, dict[str, Any]] | None:
    """The place and the options that the browser reports of this picture; None where they are not of it."""
    place = None if header is None else state.told_place(header, told)
    if header is None or place is None:
        return None
    options = state.told_options(header, place.site, told.get("options"))
    return None if options is None else (place, options)


def _asked() -> dict[str, str]:
    return {name: value for name in NAMES if (value := st.query_params.get(name))}


def _write(place: state.Place, opening: state.Place, options: Mapping[str, Any]) -> None:
    """Put place and options into the URL, leaving out what is as it opens."""
    at_opening = opening.params()
    said = {name: value for name, value in place.params().items() if value != at_opening[name]}
    said |= state.option_params(options)
    gone: dict[str, str | list[str]] = {name: [] for name in _asked().keys() - said.keys()}
    if changed := gone | {name: value for name, value in said.items() if st.query_params.get(name) != value}:
        st.query_params.update(changed)  # all at once: each change is a step that Back takes
