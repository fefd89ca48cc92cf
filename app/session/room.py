"""Which room is on a visitor's screen: the one that the address names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.streamlit_edge import history

STATE, BAR, PARAM = "room", "bar", history.VIEW  # in the session, of the bar's component, in the address
HELD = "held_room"  # in the session: a room that shows others, and which one


@dataclass(frozen=True)
class Shown:
    """The room on the screen, and what the address said that it is."""

    id: str
    said: str | None


def follow(rooms: Sequence[str], redirects: Mapping[str, str]) -> tuple[str, str]:
    """The room to show, and what the address asks for where no such room is ("" otherwise). The first room is where a visit begins."""
    said = st.query_params.get(PARAM)
    asked = said or rooms[0]  # "?view=" says none
    named = redirects.get(asked, asked)
    is_known = named in rooms
    shown = Shown(named if is_known else rooms[0], said)
    st.session_state[STATE] = shown
    history.write({PARAM: shown.id})
    return shown.id, "" if is_known else asked


def shown() -> str:
    """The room on the screen; "" before there is one."""
    now: Shown | None = st.session_state.get(STATE)
    return now.id if now is not None else ""


def go(room: str) -> None:
    """Show another room; for a callback."""
    history.write({PARAM: room})


def hold(room: str) -> None:
    """The room on the screen shows another one inside of it, from now on this one."""
    st.session_state[HELD] = (shown(), room)


def is_left(room: str) -> bool:
    """Whether another room was chosen by now; for what runs without the bar."""
    now: Shown | None = st.session_state.get(STATE)
    if now is None:
        return False
    is_there = now.id == room or st.session_state.get(HELD) == (now.id, room)
    return not is_there or st.query_params.get(PARAM) not in (now.id, now.said)
