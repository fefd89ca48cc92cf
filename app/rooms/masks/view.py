"""Draws Masks: the request, its run, and what the browser needs to paint on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from app.kit import params as kit_params
from app.kit import stage
from app.rooms.masks import choices, sheet, words
from app.rooms.masks.component import STAGE
from app.session import service
from app.session.screen import Screen
from app.shell import request, run
from core.edits import Edit
from core.errors import Refused
from core.service import Facts

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
        _offer_beginning(shown)
        return
    plain = kit_params.opening(choices.PARAMS, opened.shown)
    opened = replace(opened, shown=_shown(opened, st.query_params))
    cut = [name for name in ("forbid", "allow") if choices.left_out(st.query_params.get(name), opened.shown)]

    def linked(values: Mapping[str, str]) -> choices.Shown:
        return _shown(opened, {name: text for name, text in values.items() if text != plain[name]})

    followed = stage.follow(STAGE, opened.shown, linked)
    if cut:
        st.session_state[LEFT_OUT] = (followed.stamp, followed.reported)
    shown.say(*followed.notes)
    if st.session_state.get(LEFT_OUT) == (followed.stamp, followed.reported):
        shown.say(words.LEFT_OUT)
    link = Screen("masks", shown.request).said()
    header, body = sheet.packed(opened, followed.values, link, shown.request.texts[0])
    stage.draw(STAGE, followed, header, body)


async def edits(facts: Facts, said: Mapping[str, str]) -> Sequence[Edit]:
    """What a link to the room changes in its run: what is painted, or the scale where it is taken away."""
    shown = _shown(await sheet.opened(service.service(), facts), said)
    values, _ = kit_params.read(choices.PARAMS, shown, said)
    if values["lab"] == "scale" and values["scale"] == "off":
        return (choices.NO_SCALE,)
    return choices.edits(values, facts) if values["lab"] == "paint" else ()


def _shown(opened: sheet.Opened, link: Mapping[str, str]) -> choices.Shown:
    """What the choices are of: where a link says nothing of masks, a cell is forbidden, so that the first picture shows what a
    mask does."""
    if any(param.name in link for param in STAGE.params if param.name not in (*stage.SHARED, "forbid")):
        return replace(opened.shown, first_look="")
    said = {name: link[name] for name in ("layer", "head", "query") if name in link}
    at, _ = kit_params.read(choices.PARAMS, opened.shown, said)
    return replace(opened.shown, first_look=opened.first_look(*(int(at[name]) for name in ("layer", "head", "query"))))


def _offer_beginning(shown: run.OnScreen) -> None:
    """As much of a long text as the room draws, one click away."""
    if beginning := sheet.beginning(shown.facts):
        st.button(words.TAKE_BEGINNING, help=words.TAKE_BEGINNING_HELP, on_click=request.take_words, args=(beginning,))
