"""Draws Masks: the request, its run, and what the browser needs to paint on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from app.kit import params as kit_params
from app.kit import stage
from app.rooms.masks import choices, sheet, words
from app.rooms.masks.component import STAGE
from app.session import resolving, service
from app.session.chosen import SHARED
from app.session.screen import Screen
from app.shell import request, run
from core.errors import Refused
from core.run.request import Request

LEFT_OUT = "masks_left_out"  # in the session: the stamp of the link whose cells were cut


def show() -> None:
    """Draw the room."""
    shown = run.on_screen()
    if shown is None:
        return
    try:
        opened = service.awaited(sheet.opened(service.service(), shown.facts))
    except Refused as refusal:
        shown.say(str(refusal))
        _offer_beginning(shown)
        return
    asked: dict[str, str] = {}

    def shown_for(said: Mapping[str, str]) -> choices.Shown:
        asked.update(said)
        return _shown(opened, said)

    followed = stage.follow(STAGE, shown_for, shown.facts)
    opened = replace(opened, shown=followed.shown)
    cut = [name for name in ("forbid", "allow") if choices.left_out(asked.get(name), opened.shown)]
    if cut:
        st.session_state[LEFT_OUT] = (followed.stamp, followed.reported)
    shown.say(*followed.notes)
    if st.session_state.get(LEFT_OUT) == (followed.stamp, followed.reported):
        shown.say(words.LEFT_OUT)
    link = Screen("masks", shown.request).said()
    header, body = sheet.packed(opened, followed.values, link, shown.request.texts[0])
    stage.draw(STAGE, followed, header, body)


async def run_of(linked: Request, there: Screen) -> Request:
    """The run that a link to the room shows: with what is painted, or without the scale where it is taken away."""
    facts = await resolving.facts_of(linked)
    shown = _shown(await sheet.opened(service.service(), facts), there.params)
    values, _ = kit_params.read(choices.PARAMS, shown, there.params)
    if values["lab"] == "scale" and values["scale"] == "off":
        return resolving.edited(linked, (choices.NO_SCALE,))
    return resolving.edited(linked, choices.edits(values, facts) if values["lab"] == "paint" else ())


def _shown(opened: sheet.Opened, link: Mapping[str, str]) -> choices.Shown:
    """What the choices are of: where a link says nothing of masks, a cell is forbidden, so that the first picture shows what a
    mask does."""
    plain = kit_params.opening(choices.PARAMS, opened.shown)
    said = {param.name: link[param.name] for param in STAGE.params if param.name in link}
    if any(plain[name] != text for name, text in said.items() if name not in (*SHARED, "forbid")):
        return replace(opened.shown, first_look="")
    place = {name: link[name] for name in ("layer", "head", "query") if name in link}
    at, _ = kit_params.read(choices.PARAMS, opened.shown, place)
    return replace(opened.shown, first_look=opened.first_look(*(int(at[name]) for name in ("layer", "head", "query"))))


def _offer_beginning(shown: run.OnScreen) -> None:
    """As much of a long text as the room draws, one click away."""
    if beginning := sheet.beginning(shown.facts):
        st.button(words.TAKE_BEGINNING, help=words.TAKE_BEGINNING_HELP, on_click=request.take_words, args=(beginning,))
