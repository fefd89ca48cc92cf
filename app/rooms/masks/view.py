"""Draws Masks: the request, its run, and what the browser needs to paint on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from app import languages
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

# Choices that make a mask, or are beside it: a link with one of them says what it wants
MASKING = ("lab", "stop", "mask", "window", "first", "when", "fill", "scope", "forbid", "allow", "whose")


def show() -> None:
    """Draw the room."""
    shown = run.on_screen()
    if shown is None:
        return
    try:
        opened = service.awaited(sheet.opened(service.service(), shown.facts))
    except Refused as refusal:
        shown.say(languages.said(refusal))
        _offer_beginning(shown)
        return
    asked: dict[str, str] = {}

    def shown_for(said: Mapping[str, str]) -> choices.Shown:
        asked.update(said)
        if opened.is_by_row:
            return _shown(service.awaited(_with_row(opened, said)), said)
        return _shown(opened, said)

    followed = stage.follow(STAGE, shown_for, shown.facts)
    opened = replace(opened, shown=followed.shown)
    cut = [name for name in ("forbid", "allow") if choices.left_out(asked.get(name), opened.shown)]
    shown.say(*followed.notes, *([words.LEFT_OUT] if cut else []))
    link = Screen("masks", shown.request).said()
    header, body = sheet.packed(opened, followed.values, link, shown.request.texts[0])
    stage.draw(STAGE, followed, header, body)


async def run_of(linked: Request, there: Screen) -> Request:
    """The run that a link to the room shows: with what is painted, or without the scale where it is taken away."""
    facts = await resolving.facts_of(linked)
    opened = await sheet.opened(service.service(), facts)
    shown = _shown(await _with_row(opened, there.params), there.params)
    values, _ = kit_params.read(choices.PARAMS, shown, there.params)
    if values["lab"] == "scale" and values["scale"] == "off":
        return resolving.edited(linked, (choices.NO_SCALE,))
    return resolving.edited(linked, choices.edits(values, facts) if values["lab"] == "paint" else ())


def _shown(opened: sheet.Opened, link: Mapping[str, str]) -> choices.Shown:
    """The values that choices have: where a link says nothing of masks, one look is forbidden, so that the first picture shows what a
    mask does. It is the one that was chosen in another room, or the one that every room opens on."""
    look = opened.look
    shown = replace(opened.shown, look=look)
    if (place := _place(opened, link)) is not None:
        key = link.get("key", "") if "query" in link else ""
        try:
            look = opened.look_of(*place, key if key.isdecimal() else "")
        except (IndexError, KeyError):  # a place of another kind of attention
            look = opened.look
    plain = kit_params.opening(choices.PARAMS, shown)
    said = {param.name: link[param.name] for param in STAGE.params if param.name in link and param.name not in SHARED}
    # A link from before there was a walk, and a first word that is kept; what is left of another text has both
    older = "stop" not in said and "first" not in said and ("lab" in said or "forbid" in said)
    is_shown = look is not None and not older
    is_shown = is_shown and not any(name in said and plain[name] != said[name] for name in MASKING)
    return replace(opened.shown, look=look, is_shown=is_shown)


def _place(opened: sheet.Opened, link: Mapping[str, str]) -> sheet.Place | None:
    """The row that a link names: the room then forbids a look in it. None where it names none."""
    if link.get("stop") == "3" or not any(name in link for name in ("site", "layer", "head", "query")):
        return None
    shown = replace(opened.shown, look=opened.look)
    at, _ = kit_params.read(choices.PARAMS, shown, {name: link[name] for name in SHARED if name in link})
    return at["site"], int(at["layer"]), int(at["head"]), int(at["query"])


async def _with_row(opened: sheet.Opened, link: Mapping[str, str]) -> sheet.Opened:
    """With the row that a link names, where a text is shown by row."""
    place = _place(opened, link)
    try:
        return opened if place is None else await sheet.with_row(service.service(), opened, place)
    except IndexError:  # a place of another kind of attention
        return opened


def _offer_beginning(shown: run.OnScreen) -> None:
    """As much of a long text as the room draws, one click away."""
    if beginning := sheet.beginning(shown.facts, sheet.longest_shown()):
        st.button(words.TAKE_BEGINNING, help=words.TAKE_BEGINNING_HELP, on_click=request.take_words, args=(beginning,))
