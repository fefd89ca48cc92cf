"""Lessons: at the left what a step says and asks, at the right the room that it is about, with one part covered."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from app import languages
from app.kit import cover, held, stage
from app.rooms.lessons import component, evidence, opening, room, words
from app.rooms.lessons.step import Shown, Step, Truth, Unanswerable
from app.rooms.lessons.written import table
from app.rooms.lessons.written.lesson import WrittenLesson
from app.rooms.lessons.written.own import desk
from app.session import answer, boxes, chosen, examples, found, notices, service
from app.session.models import MODELS, TITLES
from app.streamlit_edge import history
from core.errors import HeadlightError

ASKED = "lessons_asked"  # in the session: what a class may be asked now, held for as long as it is on the screen
log = logging.getLogger("headlight")
OWN = "lessons_own"  # in the session: the visitor's own sentence, by model


def show() -> None:
    """Draw the view."""
    own = desk.lessons(answer.name())
    if st.query_params.get("write") == "1":
        component.write()
        return
    asked = opening.read(st.query_params, own)
    if asked.note:
        notices.add(asked.note)
    row = st.container(horizontal=True, gap=None, key="lessons")
    left, right = row.container(key="lessons_rail_box"), row.container(key="lessons_view", width="stretch")
    written = opening.written_steps(own)
    known = {**opening.every(), **written}
    with left:
        component.rail(
            {
                "step": asked.step,
                "fresh": asked.fresh,
                "rooms": held.names(),
                "models": TITLES,
                "states": {name: dict(step.state) for name, step in known.items()},
                "own": own_sentences(list(known.values())),
                "written": component.written(own),
                "opens": found.offered(),
                "arrivals": chosen.arrivals(),  # so that the rail hears of each address that it leads to, its own step's as well
            }
        )
    if asked.fresh:
        return  # the rail leads to the step's own address, which has its state
    step = known[asked.step]
    if asked.step in written:
        step = open_row(asked.step, step, own)
    cover.put(cover.Cover(asked.step, step.cover, step.kind, dict(step.state), asked.seen))
    with right:
        held.show(step.room)
        component.truth({"step": asked.step, "state": dict(step.state), **truth(asked.step, step, shown(step))})


def open_row(name: str, step: Step, own: Mapping[str, WrittenLesson]) -> Step:
    """The written step with the row that it opens at, which may take its run; an address without a row gets it."""
    service.awaited(table.open_row(name, service.service(), own))
    step = opening.written_steps(own).get(name, step)
    if "query" in step.state and "query" not in chosen.address():
        history.write({"query": step.state["query"]})
    return step


def own_sentences(steps: Sequence[Step]) -> dict[str, str]:
    """The visitor's own sentence of each model, with the one that is in the box by now."""
    session = st.session_state
    model, text = boxes.held("model") or "", boxes.held("text") or ""
    ours = [step.sentence for step in steps]
    if model in MODELS:
        typed = text if examples.was_typed(text, MODELS) else ""
        session[OWN] = opening.own_texts(session.get(OWN, {}), model, typed, ours)
    return session.get(OWN, {})


def shown(step: Step) -> Shown:
    """What is on the screen for a step to ask about."""
    values = opening.shown(step, chosen.address()) | stage.values(step.room)
    facts = answer.last_facts() if step.model else None
    return Shown(service.service(), values, facts, boxes.held("text") or "")


def truth(name: str, step: Step, on: Shown) -> dict[str, Any]:
    """What is true of it, or why nothing can be asked of it, as plain data for the browser."""
    try:
        found = service.awaited(_asked(step, on, languages.current()))
    except HeadlightError as refusal:
        found = Unanswerable(languages.said(refusal), step.model, step.sentence)
    except Exception:
        log.exception("A step of a lesson has no answer")
        found = Unanswerable(words.NO_TRUTH, step.model, step.sentence)
    if isinstance(found, Truth):
        return {
            "truth": found.json(),
            "values": dict(on.values),
            "text": on.text,
            "room": _offered(name, step, found, on),
        }
    return {
        "cannot": found.sentence,
        "example": found.text or step.sentence,
        "values": dict(on.values),
        "text": on.text,
    }


def _offered(name: str, step: Step, found: Truth, on: Shown) -> dict[str, str]:
    """The question for a class, by its key, or why it cannot be asked."""
    written = table.listed(desk.lessons(answer.name())).get(name.rpartition(".")[0])
    rows = partial(evidence.rows, on) if (step.room, step.cover) == ("explore", "row") else None
    asked = room.askable(name, step.title, found, written.written.language if written else "", rows)
    st.session_state[ASKED] = asked
    return {"cannot": asked} if isinstance(asked, str) else {"offer": asked.key}


async def _asked(step: Step, on: Shown, language: str) -> Truth | Unanswerable:
    with languages.speaking(language):  # a loop of its own knows of no visit
        found = await step.truth(on)
    return replace(found, hint=step.hint) if isinstance(found, Truth) else found
