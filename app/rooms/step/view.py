"""Step through: one token through one layer, every number of it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.kit import params as kit_params
from app.kit import stage
from app.rooms.step import message, params
from app.rooms.step.component import STAGE
from app.session import resolving, screen, service
from app.shell import run as shell_run
from core.edits import from_text
from core.run.request import Request
from core.service import Facts

BEGUN = "step_begun"  # in the session: the visit to the room, and the run, whose first walk was begun


def show() -> None:
    """Draw the room."""
    with shell_run.on_screen() as shown:
        facts = None if shown is None else shown.facts
        followed = stage.follow(STAGE, facts, facts)
        if shown is not None:
            shown.say(*followed.notes)
            if edits := from_text(followed.values["edits"]):
                facts = shell_run.edited(shown, edits) or facts
        if facts is not None:
            _begin(facts, followed.values)
        stage.draw(STAGE, followed, message.header(None if shown is None else shown.request, facts))


async def run_of(linked: Request, there: screen.Screen) -> Request:
    """The run that a link to the room shows: with what was tried in one head and then run so."""
    values, _ = kit_params.read(params.PARAMS, await resolving.facts_of(linked), there.params)
    return resolving.edited(linked, from_text(values["edits"]))


def _begin(run: Facts, values: Mapping[str, str]) -> None:
    """Have the walk that the browser will ask for computed while the room is still on its way there."""
    now = (*st.session_state.get(stage.VISIT, ()), run.key)
    if st.session_state.get(BEGUN) == now:
        return
    st.session_state[BEGUN] = now
    stack, layer, query = params.place_of(run, values)
    asked, calls = service.service(), service.calls()
    calls.begin(asked.walk(run.key, stack, layer, query))
    calls.begin(asked.additions(run.key, stack))
