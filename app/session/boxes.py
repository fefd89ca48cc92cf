"""The boxes of the request, sentence, model, target and step: what they hold, and how a script puts something else into one.

A box that the script fills is a new one for the browser, which shows what it opens with. Were it the same one with another value,
the browser would miss that value wherever the script runs again before it is drawn, and would send the old one back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

PREFIX: Final = "box_"
NOT_THERE: Final = object()


@dataclass(frozen=True)
class _Box:
    """The box of one name that is on the screen: its number, and what it opened with."""

    number: int
    opened: Any


def held(name: str) -> Any:
    """What a box holds by now, also where it is not on the screen; None where it was never filled."""
    found = st.session_state.get(key(name), NOT_THERE)
    return st.session_state.get(name) if found is NOT_THERE else found


def drawn(name: str) -> Any:
    """The value of a box when it was last drawn. In a callback this is the value before the change."""
    return st.session_state.get(name)


def is_filled(name: str) -> bool:
    """Whether a box was ever filled."""
    return name in st.session_state


def opened(name: str) -> Any:
    """What the box on the screen opened with: the same as long as it is the same box."""
    return _box(name).opened


def key(name: str) -> str:
    """The name of the widget."""
    return _key(name, _box(name))


def fill(name: str, value: Any) -> None:
    """Have a box hold this from the next drawing on. One that comes back to the screen holds what it held."""
    box = _box(name)
    if st.session_state.get(_key(name, box), box.opened) != value:
        st.session_state[_of(name)] = _Box(box.number + 1, value)
    st.session_state[name] = value


def keep(name: str, value: Any) -> None:
    """What the box on the screen says: it is there as well where the box is not."""
    st.session_state[name] = value


def _key(name: str, box: _Box) -> str:
    return f"{PREFIX}{name}_{box.number}"


def _of(name: str) -> str:
    return f"{PREFIX}{name}"


def _box(name: str) -> _Box:
    return st.session_state.get(_of(name)) or _Box(0, None)
