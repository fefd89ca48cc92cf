"""Registers the Shapes component and mounts it: a diagram goes in, the place on the screen comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components import v2

from app import shape_words as words
from app import theme
from app.components.planner import planner

HERE = Path(__file__).parent
SHARED = HERE.parent / "explore"  # modules of the other component that say nothing of it
NAMES = ("tensor", "at", "unfold", "as", "break", "with_head", "projector")  # ours in the URL

PALETTES = {
    name: palette | theme.AXES[name] | {"pos": palette["ink"], "kv_head": theme.AXES[name]["head"]}
    for name, palette in theme.PALETTES.items()
}
CONSTANTS = {
    "WORDS": words.COMPONENT
    | {
        "axes": words.AXES,
        "counts": words.COUNTS,
        "sections": words.SECTIONS,
        "stacks": words.STACKS,
    },
    "PALETTES": PALETTES,
    "STYLE": (HERE / "shapes.css").read_text(encoding="utf-8") + planner.MENU,
}
MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.js"))}
MODULES |= planner.MODULES | {"colours.js": (SHARED / "colours.js").read_text(encoding="utf-8")}
MODULES["constants.js"] = "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in CONSTANTS.items())
DIGEST = hashlib.sha256("".join(MODULES.values()).encode()).hexdigest()[:16]
LOADER = f"""
const get = (name) => import(new URL(`headlight/shapes/{DIGEST}/${{name}}`, document.baseURI).href);
const [entry] = await Promise.all({json.dumps(["shapes.js", *(name for name in MODULES if name != "shapes.js")])}.map(get));
export default entry.default;
"""

_component = v2.component("shapes", html='<div class="hl shapes"></div>', js=LOADER)


def shapes(data: Mapping[str, Any]) -> None:
    """Draw a diagram and follow the visitor through it: which tensor, which layer, and how it is shown are in the URL."""
    memory = st.session_state.setdefault("shapes_place", {"stamp": 0})
    asked = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    told = _told((st.session_state.get("shapes_diagram") or {}).get("place"))
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


def _told(place: object) -> dict[str, Any] | None:
    """What the browser reports, with nothing in it that is not ours."""
    if not isinstance(place, Mapping) or not isinstance(place.get("said"), Mapping):
        return None
    said = {name: value for name, value in place["said"].items() if name in NAMES and isinstance(value, str)}
    return {"told": place.get("told"), "said": {name: value[:80] for name, value in said.items()}}
