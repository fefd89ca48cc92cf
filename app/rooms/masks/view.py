"""Draws Masks: the request, its run, and what the browser needs to paint on it."""

from __future__ import annotations

import streamlit as st

from app.kit import stage
from app.rooms.masks import choices, sheet, words
from app.rooms.masks.component import STAGE
from app.session import screen, service
from app.shell import run
from core.errors import Refused

LEFT_OUT = "masks_left_out"  # in the session: the stamp of the link whose cells were cut


def show() -> None:
    """Draw the room."""
    shown = run.on_screen()
    if shown is None:
        return
    try:
        opened = service.calls().result(sheet.opened(service.service(), shown.facts))
    except Refused as refusal:
        shown.say(str(refusal))
        return
    cut = [name for name in ("forbid", "allow") if choices.left_out(st.query_params.get(name), opened.shown)]
    followed = stage.follow(STAGE, opened.shown)
    if cut:
        st.session_state[LEFT_OUT] = (followed.stamp, followed.reported)
    shown.say(*followed.notes)
    if st.session_state.get(LEFT_OUT) == (followed.stamp, followed.reported):
        shown.say(words.LEFT_OUT)
    link = {"view": "masks", **screen.link(shown.request)}
    header, body = sheet.packed(opened, followed.values, link, shown.request.texts[0])
    stage.draw(STAGE, followed, header, body)
