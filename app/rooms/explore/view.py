"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.attention import component, export, in_progress, inspect, picture
from app.attention import selection as attention_selection
from app.attention import words as attention_words
from app.kit import frames, numbers, theme
from app.rooms.explore import tables, words
from app.rooms.explore.component import EXPLORE, OPENED
from app.session import answer as session_answer
from app.session import notices, screen, service
from app.shell import request as shell_request
from app.shell import run as shell_run
from app.shell import waiting
from core.errors import Refused
from core.run.request import Request
from core.service import Facts, Waiting


def show() -> None:
    """Draw the view."""
    request, beneath = shell_request.request()
    model = screen.model_of(request)
    unknown = service.calls().result(service.service().model(model)) is None
    # What comes below keeps its place among the elements of the page, whatever there is above it. All of it is sent while the
    # run goes on: after its end, Streamlit would send each of them in a message of its own before the picture.
    working, place = st.empty(), st.empty()
    so_far = st.container(key="so_far", gap=None)
    answer = session_answer.answer(request, in_progress.picture_of, waiting.SOON)
    if (under_way := answer.waiting) is not None:

        def above() -> None:
            _above(beneath, request, answer)
            _say(place, notices.waiting())

        if _wait(under_way, working, so_far, above):
            st.rerun()
        answer = session_answer.answer(request, in_progress.picture_of)
    if unknown and shell_run.has_other_boxes(request, answer):
        st.rerun()
    if request.write and answer.waiting is None and not answer.stopped:
        shell_request.was_written(request, answer.facts if answer.request == request else None)
    notes = notices.take() + ([answer.sentence] if answer.sentence else [])
    if answer.request is not None and answer.picture is not None and answer.facts is not None:
        notes += tables.non_finite(answer.facts)
        notes += component.explore(EXPLORE, answer.facts, answer.picture, screen.link(answer.request))
        _dialog(answer.facts)
    else:
        shell_run.nothing_yet(model)
    # All the rest comes after the picture, which is what a visitor waits for.
    if under_way is not None:
        working.empty()
    _above(beneath, request, answer)
    sentences = _say(place, notes)
    if answer.unreadable and answer.request is not None:
        shell_run.offer_example(model, sentences)
    if answer.stopped:
        waiting.run_again(sentences)


def _say(place: DeltaGenerator, notes: list[str]) -> DeltaGenerator:
    """What there is to say, above the picture. Returns its box."""
    sentences = place.container(key="sentences", gap=None)
    for note in notes:
        sentences.text(note)  # never markdown: it may quote what the visitor typed
    return sentences


def _dialog(run: Facts) -> None:
    """What the visitor opened over the picture, in every run of the script: one without it would close it."""
    name, asked = OPENED.get() or ("", {})
    # A visitor who asks for the table while the next run is on its way reads about that one: it is on the screen when the table
    # opens. The cells that `inspect` names are of the picture that was clicked, and of no other.
    if name == "shapes" and "run" not in asked:
        OPENED.put((name, asked := {"run": run.key}))
    if asked.get("run") != run.key:
        return
    if name == "inspect":
        st.dialog(words.INSPECT, width="large", on_dismiss=_closed)(_inspect)(run, asked)
    else:
        st.dialog(attention_words.RUN_SHAPES, width="large", on_dismiss=_closed)(_shapes)(run)


def _closed() -> None:
    OPENED.take()


def _inspect(run: Facts, asked: Mapping[str, Any]) -> None:
    try:
        params = {name: str(value) for name, value in asked.items()}
        selection = attention_selection.selected(run, params)
        inspect.check_size(run, selection)
        found = service.awaited(attention_selection.numbers(service.service(), run, selection, inspect.MOST))
        figure = inspect.heatmap(found, selection, "dark" if params.get("theme") == "dark" else "light")
    except Refused as refusal:
        st.text(languages.said(refusal))
        return
    st.text(export.caption(run, selection, date.today()))
    st.plotly_chart(
        figure, width="content", theme=None, key="plotly", config={"displaylogo": False, "scrollZoom": True}
    )


def _above(place: DeltaGenerator, request: Request, answer: session_answer.Answer) -> None:
    with place:
        shell_request.beneath(request, answer)


def _wait(under_way: Waiting[None], place: DeltaGenerator, so_far: DeltaGenerator, above: Callable[[], None]) -> bool:
    """Wait until a run has ended, and show what there is of it.

    The picture before stays where it is until there is something to see.

    Returns whether what there is of the visit's first picture has taken its place, below what `above` draws: the script
    must then begin again, to draw the picture there.
    """
    run: Facts | None = None
    is_first = False

    def look() -> None:
        nonlocal run, is_first
        if run is None and (run := _so_far(under_way)) is not None:
            is_first = component.underway(EXPLORE, run, picture.outline(run), screen.link(under_way.request), so_far)
            if is_first:
                above()  # now, since nothing may move when the picture is whole

    waiting.wait(under_way, place, look)
    return is_first


def _so_far(under_way: Waiting[None]) -> Facts | None:
    """What is known of a run that goes on and is shown in parts."""
    if not under_way.progress.is_shown:
        return None
    return service.calls().result(service.service().facts_so_far(under_way.key))


def _shapes(run: Facts) -> None:
    n = len(service.calls().result(service.service().status())["models"])
    st.caption(
        words.DEVICE.format(
            device=run.device,
            dtype=run.dtype,
            ms=f"{run.seconds * 1000:.0f}",
            held=numbers.size(run.held_bytes),
            models=words.MODELS[n == 1].format(n=n),
        )
    )
    palette = theme.PALETTES[st.context.theme.type or "light"]  # no one grey can be read on both pages
    frames.show(tables.muted(tables.steps(run), palette["mute"]), _columns())
    st.caption(words.STEPS_CAPTION)


def _columns() -> dict[str, Any]:
    def number(name: str) -> Any:
        return st.column_config.NumberColumn(words.STEPS_COLUMNS[name], format="%.3f")

    return {**words.STEPS_COLUMNS, "mib": number("mib"), "mb": number("mb")}
