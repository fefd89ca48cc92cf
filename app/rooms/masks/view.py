"""Draws Masks: the request, its run, and what the browser needs to paint on it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import languages
from app.rooms.masks import message, sheet, words
from app.rooms.masks.component import STAGE
from app.session import service
from app.shell import request, run
from core.errors import HeadlightError
from core.service import Facts


def show() -> None:
    """Draw the room."""
    with run.on_screen() as shown:
        if shown is None:
            return
        try:
            opened = service.awaited(sheet.opened(service.service(), shown.facts))
        except HeadlightError as refusal:
            shown.say(languages.said(refusal))
            _offer_beginning(shown.facts)
            return
        _, made = run.draw(shown, STAGE, partial(message.of_opened, opened))
        if made.is_cut:
            shown.say(words.LEFT_OUT)


def _offer_beginning(facts: Facts) -> None:
    """As much of a long text as the room draws, one click away."""
    if beginning := sheet.beginning(facts, sheet.longest_shown()):
        st.button(words.TAKE_BEGINNING, help=words.TAKE_BEGINNING_HELP, on_click=request.take_words, args=(beginning,))
