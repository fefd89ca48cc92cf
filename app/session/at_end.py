"""What a session holds once a script came to its end: a script that the visitor's next message broke off has shown nothing."""

from __future__ import annotations

from typing import Any, TypeVar

import streamlit as st

from app.session.session_state import Key

T = TypeVar("T")
LATER: Key[dict[str, Any]] = Key("at_end")  # {name in the session: what it will hold}


def begin() -> None:
    """A script begins: what one before it did not bring to its end is as if it had not been."""
    LATER.put({})


def put(key: Key[T], value: T) -> None:
    """Have a name hold this once this script is at its end; until then, and for the next script if it never gets there, what it holds."""
    LATER.put({**(LATER.get() or {}), key.name: value})


def get(key: Key[T], otherwise: T) -> T:
    """What a name will hold, as far as this script has come; else what it holds, or the other where it holds nothing."""
    later = LATER.get() or {}
    if key.name in later:
        return later[key.name]
    now = key.get()
    return otherwise if now is None else now


def reached() -> None:
    """Last thing in a script: all that it has shown is there."""
    for name, value in (LATER.get() or {}).items():
        st.session_state[name] = value
    LATER.put({})
