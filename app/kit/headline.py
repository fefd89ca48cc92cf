"""Registers the component above a chart and mounts it: the sentence of a chart, what it would be elsewhere on a slider, its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.kit import cover, scripts, stage
from app.transport import messages, modules

ENTRY = "kit/browser/headline.js"
scripts.add()
SCALES = (0.8, 3.5)  # what a browser may say of its type, in units of 16 pixels

_component = modules.component("planner", ENTRY, html=lambda: '<div class="hl planner"></div>', host=scripts.HOST)


def key(view: str) -> str:
    """Of the component, and of what its browser told, in the session."""
    return f"planner_{view}"


def scale(key: str) -> float:
    """How large the visitor's type is, in units of 16 pixels, as the browser told the component of this key last."""
    told = (st.session_state.get(key) or {}).get("page")
    now = told.get("scale") if isinstance(told, Mapping) else None
    if isinstance(now, int | float) and SCALES[0] <= now <= SCALES[1]:
        st.session_state["type_scale"] = float(now)
    return st.session_state.get("type_scale", 1.0)


def is_projected(key: str) -> bool:
    """Whether the visitor's page is projected, as the browser told with the size of its type."""
    told = (st.session_state.get(key) or {}).get("page")
    if isinstance(told, Mapping) and isinstance(told.get("projected"), bool):
        st.session_state["type_projected"] = told["projected"]
    return st.session_state.get("type_projected", False)


def header(view: str, data: Mapping[str, Any], seen: str = "") -> dict[str, Any]:
    """The message of a component whose choices are in Streamlit's boxes and not in a record of its own; `seen` as in headline()."""
    nothing: dict[str, Any] = {"values": {}}
    if seen:
        nothing["follow"] = {"room": view, "drawn": seen, "base": {}, "most": stage.MOST_BESIDE}
    return {**data, "view": view, "key": view, "chosen": nothing, "cover": cover.sent()}


def headline(view: str, data: Mapping[str, Any], seen: str = "") -> None:
    """Draw the sentence.

    `data` has it, where the sliders stand for it (at: slider -> value), what it would be elsewhere (ahead: slider -> value ->
    sentence), chart and about (plan_export). `seen` is what others see who follow a class (stage.Drawn.digest).
    """
    _component(
        key=key(view),
        data=messages.pack(header(view, data, seen), b""),
        default={"page": None},
        on_page_change=lambda: None,
    )
