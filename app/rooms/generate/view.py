"""Generate: a text as a path through everything that it might have been."""

from __future__ import annotations

import streamlit as st

from app.kit import stage
from app.rooms.generate import export, message, words
from app.rooms.generate.component import STAGE
from app.session.models import MODELS, TITLES
from app.session.screen import Screen
from app.shell import request as shell_request
from app.shell import run as shell_run

WRITERS = ("storyteller", "translator")  # that are offered where a model writes nothing


def show() -> None:
    """Draw the room."""
    shown = shell_run.on_screen()
    if shown is None:
        return
    if not shown.facts.writes:
        shown.say(words.CANNOT_WRITE.format(title=shown.facts.spec.title))
        _offer_writers()
        return
    followed = stage.follow(STAGE, shown.facts, shown.facts)
    shown.say(*followed.notes, *([words.EDITS_LEFT_OUT] if shown.facts.interventions else []))
    link = Screen("generate", shown.request).said()
    header = {
        "link": link,
        **message.outline(shown.facts),
        "about": export.described(shown.facts, shown.request),
    }
    stage.draw(STAGE, followed, header)


def _offer_writers() -> None:
    """Below the sentence that the model cannot write: one click to a model that can."""
    row = st.container(horizontal=True, gap="small", key="generate_writers")
    for model in WRITERS:
        if model in MODELS:
            label = words.TAKE_WRITER.format(title=TITLES[model])
            row.button(label, key=f"generate_{model}", on_click=shell_request.choose_model, args=(model,))
