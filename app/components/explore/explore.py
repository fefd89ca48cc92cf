"""Registers the Explore component and mounts it: bytes go in, the place on the screen comes back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import streamlit as st

from app import pack, state, theme, words

HERE = Path(__file__).parent
SCRIPT = (HERE / "explore.js").read_bytes()
STYLE = (HERE / "explore.css").read_text()
SCRIPT_NAME = f"explore.{hashlib.sha256(SCRIPT).hexdigest()[:16]}.js"

# Streamlit sends a component's script with every message of it. This line is the script; the real one is fetched once,
# compressed, and kept by the browser for as long as its content is the same.
# (Two lines: Streamlit takes a single line with a slash in it for the name of a file.)
LOADER = f'// explore\nexport default (await import(new URL("headlight/{SCRIPT_NAME}", document.baseURI).href)).default;\n'

_component = st.components.v2.component("explore", html='<div class="hl"></div>', css=STYLE, js=LOADER)


def explore(picture: pack.Picture) -> list[str]:
    """Draw a picture and follow the visitor through it: the place is written to the URL.

    Returns a sentence for each part of the URL's place that the picture cannot show.
    """
    header, memory = picture.header, st.session_state.setdefault("explore_place", {})
    params = {name: st.query_params[name] for name in ("site", "layer", "head", "query") if name in st.query_params}
    told = state.told_place(header, (st.session_state.get("explore") or {}).get("place"))
    notes: list[str] = []
    if memory.get("key") != header["key"]:
        # A new picture. The first of a visit opens where the link says; later ones stay at the head that is on the screen.
        place, complaints = state.asked_place(header, params)
        notes = [] if memory else complaints
        memory |= {"key": header["key"], "opened": place, "place": place, "told": told, "stamp": memory.get("stamp", 0) + 1}
    elif told is not None and told != memory["told"]:
        memory |= {"told": told, "place": told}
    elif params != memory["params"]:
        # The URL moved without us: the visitor went back or forward.
        place, notes = state.asked_place(header, params)
        memory |= {"opened": place, "place": place, "stamp": memory["stamp"] + 1}
    _write(memory["place"], state.opening_place(header))
    memory["params"] = {name: st.query_params[name] for name in ("site", "layer", "head", "query") if name in st.query_params}
    opened = memory["opened"]
    message = pack.pack(
        header
        | {
            "words": words.COMPONENT | {"sites": words.SITES, "tabs": words.SITE_TABS, "reasons": words.REASONS},
            "palettes": theme.PALETTES,
            "opened": {"site": opened.site, "layer": opened.layer, "head": opened.head, "query": opened.query},
            "stamp": memory["stamp"],
        },
        picture.body,
    )
    _component(key="explore", data=message, default={"place": None}, on_place_change=lambda: None)
    return notes


def _write(place: state.Place, opening: state.Place) -> None:
    """Put the place into the URL, leaving out what is as it opens."""
    at_opening = opening.params()
    for name, value in place.params().items():
        if value == at_opening[name]:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value
