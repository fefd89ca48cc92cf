"""Registers the browser's part of Explore."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from app.attention import component
from app.session.session_state import Key
from app.transport import modules

modules.add("rooms/explore/browser", Path(__file__).parent / "browser")
ENTRY = "rooms/explore/browser/explore.js"
# What was asked to be opened over the picture, "shapes" or "inspect", and of what
OPENED: Key[tuple[str, Mapping[str, Any]]] = Key("opened_dialog")


def note_opened() -> None:
    """Note what the visitor asked to have opened over the picture.

    Streamlit tells it to one run of the script alone. That run may end before its first line, when what else is chosen begins
    the next; but what is called on a change is called before it can end.
    """
    told = st.session_state.get("explore_stage") or {}
    if isinstance(asked := told.get("inspect"), Mapping):
        OPENED.put(("inspect", asked))
    if isinstance(told.get("shapes"), Mapping):
        OPENED.put(("shapes", {}))


EXPLORE = component.register(ENTRY, note_opened)
OFFLINE = "rooms/explore/browser/standalone.js"  # draws the same on a page that asks no server
