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

from app import examples, lens, pack, state, theme, words
from app.offered import TITLES
from core.trace import Trace

HERE = Path(__file__).parent
NAMES = ("site", "layer", "head", "query", *(option.url for option in state.OPTIONS.values()))  # ours in the URL

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
export default entry.default;
"""

_component = v2.component("explore", html='<div class="hl"></div>', js=LOADER)


def explore(run: Trace, picture: pack.Picture, link: Mapping[str, str]) -> list[str]:
    """Draw the picture of a run and follow the visitor through it: the place and the options are written to the URL.

    `link` is what a link to the picture says beside them: model, text and target.

    Returns a sentence for each part of the URL that the picture cannot show.
    """
    header, memory = picture.header, st.session_state.setdefault("explore_place", {})
    asked = _asked()
    # Numbered by the browser: what it said before is old news.
    told = (st.session_state.get("explore") or {}).get("place")
    news = _news(memory.get("header"), told) if told != memory.get("told") else None
    if news is not None:
        place, options = news  # of the picture that is on the screen, which may be the one before
        memory |= {"place": place, "options": options, "label": state.label_of(memory["header"], place)}
    notes: list[str] = []
    wish = _wished(header)
    if wish is not None:
        options = {
            **memory.get("options", state.default_options()),
            "kind": "head",
            "members": [],
            "pin": None,
            "hide": [],
            "words": False,
        }
        memory |= {"opened": (wish, options), "told": told, "stamp": memory.get("stamp", 0) + 1}
        memory |= {"place": wish, "options": options}
    elif memory.get("header", {}).get("key") != header["key"]:
        # The first picture of a visit opens where its link says, and so does one that the visitor went back to. A new
        # sentence stays at the head, and if it can at the word, that is on the screen; another model has other heads.
        if memory and asked == memory["asked"]:
            if header["model_id"] == memory["header"]["model_id"]:
                place = state.carried_place(header, memory["place"], memory["label"])
            else:
                place = state.opening_place(header)
            options = state.carried_options(memory["header"], memory["options"], memory["place"], header, place)
        else:
            place, options, notes = _opened(header, asked)
        memory |= {"opened": (place, options), "told": told, "stamp": memory.get("stamp", 0) + 1}
        memory |= {"place": place, "options": options}
    elif news is not None:
        memory |= {"told": told}
    elif asked != memory["asked"]:
        place, options, notes = _opened(header, asked)
        memory |= {"opened": (place, options), "stamp": memory["stamp"] + 1, "place": place, "options": options}
    _write(memory["place"], state.opening_place(header), memory["options"])
    memory |= {"header": header, "asked": _asked(), "label": state.label_of(header, memory["place"])}
    place, options = memory["opened"]
    opened = {"opened": asdict(place), "options": options, "stamp": memory["stamp"], "link": link}
    body = picture.body
    if not header["whole"]:
        records = next(site["records"] for site in header["sites"] if site["id"] == place.site)
        index, first = lens.first(run, records[place.layer], place.head, place.query)
        opened["first"] = [[path, params, len(body) + at, size] for path, params, at, size in index]
        body += first
    _component(
        key="explore",
        data=pack.pack(header | opened, body),
        default={"place": None},
        on_place_change=lambda: None,
        on_inspect_change=lambda: None,
    )
    return notes


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
    if place.query is None:
        return None
    del st.session_state["explore_wish"]
    return place


def _news(header: Mapping[str, Any] | None, told: Any) -> tuple[state.Place, dict[str, Any]] | None:
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
