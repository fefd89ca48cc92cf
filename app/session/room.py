"""Which room is on a visitor's screen: the one that their link names, that they chose since, or that they went back to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.streamlit_edge.history import is_history_navigation, noted, said_before

STATE, BAR, PARAM = "room", "bar", "view"  # in the session, of the bar's component, in the address
HELD = "held_room"  # in the session: a room that shows others, and which one
ARRIVALS = "arrivals"  # in the session: how often the visitor chose a room or went back; a room reads its part of the address then


@dataclass(frozen=True)
class Shown:
    """The room on the screen, after how many choices in the bar, and whether a message has come by now whose address names it."""

    id: str
    choices: int
    named: bool


def follow(rooms: Sequence[str], redirects: Mapping[str, str]) -> tuple[str, str]:
    """The room to show, and what the address asks for where no such room is ("" otherwise). The first room is where a visit begins.

    A choice in the bar is numbered and comes with every message from then on, so that none is lost when another message
    overtakes it. An address counts when a visit begins, and when the visitor goes back, after which only a choice that they had not
    made by then counts: one that they took back may never have been run. A message that left the browser before it knew the address
    of the room that was chosen, or that the visitor went back to, says the old one, and is late.
    """
    asked = st.query_params.get(PARAM) or rooms[0]  # "?view=" says none
    named = redirects.get(asked, asked)
    shown: Shown | None = st.session_state.get(STATE)
    choices, chosen = _choice(rooms, st.session_state.get(BAR))
    went_back = is_history_navigation()
    unknown = "" if named in rooms else asked
    before = _choice(rooms, said_before(BAR))[0] if went_back else 0
    if shown is None or choices > shown.choices or went_back:
        _arrive()
    if shown is None:
        shown = Shown(rooms[0] if unknown else named, choices, named=not unknown)
    elif choices > max(shown.choices, before):
        shown, unknown = Shown(chosen, choices, named=False), ""
        st.query_params.update(
            {}
        )  # a room that was left before its script ended may have written its own address over this one's
    elif went_back:
        shown = Shown(rooms[0] if unknown else named, choices, named=False)
    elif shown.named and named != shown.id:
        shown = Shown(rooms[0] if unknown else named, choices, named=not unknown)
    else:
        shown, unknown = Shown(shown.id, choices, shown.named or named == shown.id), ""
    st.session_state[STATE] = shown
    noted()
    return shown.id, unknown


def is_arrival() -> bool:
    """Whether a visit begins here, or the visitor went back: the address is then to be read."""
    return STATE not in st.session_state or is_history_navigation()


def go(room: str) -> None:
    """Show another room; for a callback."""
    _arrive()
    st.session_state[STATE] = Shown(room, st.session_state[STATE].choices, named=False)


def _arrive() -> None:
    st.session_state[ARRIVALS] = st.session_state.get(ARRIVALS, 0) + 1


def hold(room: str) -> None:
    """The room on the screen shows another one inside of it, from now on this one."""
    st.session_state[HELD] = (st.session_state[STATE].id, room)


def is_left(room: str) -> bool:
    """Whether another room was chosen by now; for what runs without the bar."""
    shown: Shown | None = st.session_state.get(STATE)
    if shown is None:
        return False
    is_there = shown.id == room or st.session_state.get(HELD) == (shown.id, room)
    return not is_there or _choice((room,), st.session_state.get(BAR))[0] > shown.choices


def _choice(rooms: Sequence[str], bar: Any) -> tuple[int, str]:
    """What was chosen last, and the number of that choice, by what the bar says; (0, "") where nothing was."""
    told = bar.get("chosen") if isinstance(bar, Mapping) else None
    if not isinstance(told, Mapping):
        return 0, ""
    number, chosen = told.get("number"), told.get("room")
    if not isinstance(number, int | float):
        return 0, ""
    return int(number), next((room for room in rooms if room == chosen), rooms[0])
