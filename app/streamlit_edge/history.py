"""The address of the page as Python reads it, and what Python wants it to say; the browser's side of it is history.js in this folder's scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx

VIEW = "view"
SAID = "headlight"  # in what the browser is told: the view that is meant, and what changes in its address
NOTED = "arrival_noted"  # in the session: the number that the browser gave the last arrival
ARRIVED = "arrived"  # in what the browser sends: the number of an arrival, by a link or the way back

Changes = Mapping[str, str | None]  # None takes a name out


def read_on() -> None:
    """Have every message from now on carry the address as it is then, and confirm the last arrival. First thing in a script.

    Streamlit 1.67 sends what it was told last, and reads the page's own address where that was nothing. Without this a script reads
    the address that it wrote itself, and not what was chosen since.
    """
    if st.session_state.get(NOTED):
        _say(st.query_params.get(VIEW), {})
    else:
        _tell("")


def write(changes: Changes) -> None:
    """Have the address say this from now on, for this script and for the browser.

    Where the visitor has left the view by then the browser leaves its address alone.
    """
    view = st.query_params.get(VIEW)
    if assume(changes):
        _say(view, changes)


def assume(changes: Changes) -> bool:
    """Take the address to say this, in this script alone. Returns False if it says so already."""
    context = get_script_run_ctx()
    if context is None:
        return False
    said = parse_qs(context.query_string, keep_blank_values=True)
    if all(said.get(name) == (None if text is None else [text]) for name, text in changes.items()):
        return False
    for name, text in changes.items():
        if text is None:
            said.pop(name, None)
        else:
            said[name] = [text]
    context.query_string = urlencode(said, doseq=True)
    with context.session_state.query_params() as known:
        known.populate_from_query_string(context.query_string)
    return True


def _say(view: str | None, changes: Changes) -> None:
    said = {"view": view, "changes": dict(changes), "arrived": st.session_state.get(NOTED, "")}
    _tell(urlencode({SAID: json.dumps(said)}))
    _tell("")


def _tell(query: str) -> None:
    context = get_script_run_ctx()
    if context is None:
        return
    message = ForwardMsg()
    message.page_info_changed.query_string = query
    context.enqueue(message)
