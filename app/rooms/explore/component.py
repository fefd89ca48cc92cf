"""Registers the browser's part of Explore."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from app.attention import component
from app.transport import modules

modules.add("rooms/explore/browser", Path(__file__).parent / "browser")
ENTRY = "rooms/explore/browser/explore.js"
OPENED = (
    "opened_dialog"  # in the session: what was asked to be opened over the picture, "shapes" or "inspect", and of what
)


def note_opened() -> None:
    """Note what the visitor asked to have opened over the picture.

    Streamlit tells it to one run of the script alone. That run may end before its first line, when what else is chosen begins
    the next; but what is called on a change is called before it can end.
    """
    told = st.session_state.get("explore") or {}
    if isinstance(asked := told.get("inspect"), Mapping):
        st.session_state[OPENED] = ("inspect", asked)
    if isinstance(told.get("shapes"), Mapping):
        st.session_state[OPENED] = ("shapes", {})


EXPLORE = component.register(ENTRY, note_opened)
OFFLINE = "rooms/explore/browser/standalone.js"  # draws the same on a page that asks no server
