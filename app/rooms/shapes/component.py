"""Registers the Shapes component and mounts it: a diagram goes in, the place on the screen comes back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components import v2

from app.kit import scripts, theme
from app.rooms.shapes import words
from app.transport import modules

ENTRY = "rooms/shapes/browser/shapes.js"
BROWSER = Path(__file__).parent / "browser"
NAMES = ("tensor", "at", "unfold", "as", "break", "with_head")  # ours in the URL

PALETTES = {
    name: palette | theme.AXES[name] | {"pos": palette["ink"], "kv_head": theme.AXES[name]["head"]}
    for name, palette in theme.PALETTES.items()
}
scripts.add()
modules.add("rooms/shapes/browser", BROWSER)
modules.add_constants(
    "rooms/shapes/browser/constants.js",
    WORDS=words.COMPONENT
    | {"axes": words.AXES, "counts": words.COUNTS, "sections": words.SECTIONS, "stacks": words.STACKS},
    PALETTES=PALETTES,
    STYLE=(BROWSER / "shapes.css").read_text(encoding="utf-8") + scripts.MENU,
)
_component = v2.component("shapes", html='<div class="hl shapes"></div>', js=modules.loader(ENTRY))


def shapes(data: Mapping[str, Any]) -> None:
    """Draw a diagram and follow the visitor through it: which tensor, which layer, and how it is shown are in the URL."""
    memory = st.session_state.setdefault("shapes_place", {"stamp": 0})
    asked = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    told = _reported((st.session_state.get("shapes_diagram") or {}).get("place"))
    if told is not None and told != memory.get("told"):
        memory |= {"told": told, "place": told["said"]}
    elif asked != memory.get("asked"):  # a link, or the browser's own Back
        memory |= {"place": asked, "opened": asked, "stamp": memory["stamp"] + 1}
    said = memory.setdefault("place", {})
    for name in asked.keys() - said.keys():
        st.query_params.pop(name)
    if changed := {name: value for name, value in said.items() if st.query_params.get(name) != value}:
        st.query_params.update(changed)
    memory["asked"] = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    _component(
        key="shapes_diagram",
        data={**data, "opened": memory.get("opened", {}), "stamp": memory["stamp"]},
        default={"place": None},
        on_place_change=lambda: None,
    )


def _reported(place: object) -> dict[str, Any] | None:
    """What the browser reports, with nothing in it that is not ours."""
    if not isinstance(place, Mapping) or not isinstance(place.get("said"), Mapping):
        return None
    said = {name: value for name, value in place["said"].items() if name in NAMES and isinstance(value, str)}
    return {"told": place.get("told"), "said": {name: value[:80] for name, value in said.items()}}
