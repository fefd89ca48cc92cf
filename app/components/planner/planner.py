"""Registers the planner component and mounts it: the sentence of a chart, what it would be elsewhere on a slider, its files."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components import v2

from app import memory_words, theme, words
from app.tables import quoted

HERE = Path(__file__).parent
SHARED = HERE.parent / "explore"  # modules of the other component that say nothing of it
BORROWED = [
    "export",
    "export_help",
    "export_image",
    "export_png_help",
    "export_svg_help",
    "export_numbers",
    "export_copy",
    "export_snippet",
    "export_snippet_help",
    "export_busy",
    "export_saved",
    "export_copied",
    "export_failed",
    "project",
    "leave",
    "projector_off",
]
WORDS = {name: words.COMPONENT[name] for name in BORROWED} | memory_words.SCREEN
COLOURS = {
    name: {tone: palette[tone] for tone in ("background", "panel", "ink", "mute", "line")}
    for name, palette in theme.PALETTES.items()
}
MENU = (HERE / "menu.css").read_text(encoding="utf-8")
MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.js"))}
MODULES |= {name: (SHARED / name).read_text(encoding="utf-8") for name in ("dom.js", "mount.js", "scene.js")}
MODULES["words.js"] = "".join(
    f"export const {name} = {json.dumps(value)};\n"
    for name, value in (
        ("WORDS", WORDS),
        ("COLOURS", COLOURS),
        ("STYLE", (HERE / "planner.css").read_text(encoding="utf-8") + MENU),
    )
)
DIGEST = hashlib.sha256("".join(MODULES.values()).encode()).hexdigest()[:16]
LOADER = f"""
const entry = await import(new URL("headlight/planner/{DIGEST}/planner.js", document.baseURI).href);
export default entry.default;
"""
SCALES = (0.8, 3.5)  # what a browser may say of its type, in units of 16 pixels
ON_ITS_WAY = 2.0  # seconds in which a browser gets to know a link that was written

_component = v2.component("planner", html='<div class="hl planner"></div>', js=LOADER)


@dataclass(frozen=True)
class Page:
    """What the visitor's page is like: whether it is projected, and how large its type is, in units of 16 pixels."""

    projector: bool
    scale: float
    told: int | None  # the number of what the browser said last
    note: str = ""  # where the link says something else


def page(view: str) -> Page:
    """The page as the browser told it, or as a link asks for it. The link follows what the browser told."""
    memory = st.session_state.setdefault("planner_page", {"scale": 1.0, "told": {}, "at": -ON_ITS_WAY})
    told = (st.session_state.get(f"planner_{view}") or {}).get("page")
    if isinstance(told, Mapping) and told != memory["told"]:
        memory |= {"told": dict(told), "at": time.monotonic()}
        scale = told.get("scale")
        if isinstance(scale, int | float) and SCALES[0] <= scale <= SCALES[1]:
            memory["scale"] = float(scale)
    asked, note = st.query_params.get("projector"), ""
    if time.monotonic() - memory["at"] < ON_ITS_WAY:
        # What comes now may have left the browser before it had the link that says what it told.
        projector = memory["told"].get("projector") is True
    else:
        projector = asked == "true"
        if asked not in (None, "true", "false"):
            note = memory_words.UNREADABLE.format(name="projector", asked=quoted(asked), shown="false")
    if projector and asked != "true":
        st.query_params["projector"] = "true"
    elif not projector:
        st.query_params.pop("projector", None)
    return Page(projector, memory["scale"], memory["told"].get("told"), note)


def headline(view: str, page: Page, data: Mapping[str, Any]) -> None:
    """Draw the sentence.

    `data` has it, where the sliders stand for it (at: slider -> value), what it would be elsewhere (ahead: slider -> value ->
    sentence), chart and about (plan_export).
    """
    _component(
        key=f"planner_{view}",
        data={**data, "view": view, "projector": page.projector, "told": page.told},
        default={"page": None},
        on_page_change=lambda: None,
    )
