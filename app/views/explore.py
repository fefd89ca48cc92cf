"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import controls, examples, export, offered, state, tables, theme, underway, words
from app.components.explore import explore as component
from core.engine import Request, Ticket
from core.errors import Refused
from core.trace import Trace

MOST_LISTED = 4  # models in memory
SOON = 0.25  # seconds in which a run may end before any of it is shown; state.AT_ONCE, before it is said that it runs
PACE = 0.3  # seconds between two looks at how far a run is


def show() -> None:
    """Draw the view."""
    request, notes = controls.request()
    model = controls.model_of(request)
    unknown = state.engine().ready(model) is None
    answer = state.answer(request, SOON)
    # What comes below keeps its place among the elements of the page, whatever there is above it.
    beneath, working, notices = st.container(key="beneath", gap=None), st.empty(), st.empty()
    so_far = st.container(key="so_far", gap=None)
    if (ticket := answer.ticket) is not None:

        def above() -> None:
            _above(beneath, request, answer)
            _say(notices, st.session_state.get("said", []) + notes)

        if _wait(ticket, working, so_far, above):
            _again(notes)
        answer = state.answer(request)
    if unknown and answer.request == request and answer.trace is not None and answer.trace.target is not None:
        _again(notes)  # it turns out to read a target as well: with a second box
    if request.write and answer.ticket is None and not answer.stopped:
        controls.was_written(request, answer.trace if answer.request == request else None)
    notes = st.session_state.pop("said", []) + ([answer.sentence] if answer.sentence else []) + notes
    if answer.request is not None and answer.picture is not None and answer.trace is not None:
        notes += component.explore(answer.trace, answer.picture, controls.link(answer.request))
        if isinstance(asked := (st.session_state.get("explore") or {}).get("inspect"), Mapping):
            st.session_state["inspected"] = asked
        if (asked := st.session_state.get("inspected")) and asked.get("run") == answer.request.key:
            _inspect(answer.trace, asked)  # in every run of the script: one without it would close it
        _shapes(answer.trace)
    else:
        _nothing_yet(model)
    # All the rest comes after the picture, which is what somebody waits for.
    if ticket is not None:
        working.empty()
    _above(beneath, request, answer)
    sentences = _say(notices, notes)
    if answer.unreadable and answer.request is not None:
        _offer_example(model, sentences)
    if answer.stopped:
        sentences.button(words.RUN_AGAIN, key="again", type="tertiary", on_click=state.start_again)


def _again(notes: list[str]) -> NoReturn:
    """Begin the script anew, and say then what there is to say now: the second run knows no more what the link asked."""
    st.session_state["said"] = st.session_state.get("said", []) + notes
    st.rerun()


def _say(place: DeltaGenerator, notes: list[str]) -> DeltaGenerator:
    """What there is to say, above the picture. Returns its box."""
    sentences = place.container(key="sentences", gap=None)
    for note in notes:
        sentences.text(note)  # never markdown: it may quote what the visitor typed
    return sentences


def _closed() -> None:
    st.session_state.pop("inspected", None)


@st.dialog(words.INSPECT, width="large", on_dismiss=_closed)
def _inspect(run: Trace, asked: Mapping[str, Any]) -> None:
    from app.figures import attention  # Plotly is loaded when somebody wants it, here and in the browser

    try:
        params = {name: str(value) for name, value in asked.items()}
        selection = export.selected(run, params)
        figure = attention.heatmap(run, selection, "dark" if params.get("theme") == "dark" else "light")
    except Refused as refusal:
        st.text(str(refusal))
        return
    st.text(export.caption(run, selection, date.today()))
    st.plotly_chart(
        figure, width="content", theme=None, key="plotly", config={"displaylogo": False, "scrollZoom": True}
    )


def _nothing_yet(model: str) -> None:
    st.text(words.NOTHING_YET)
    st.button(words.TAKE_EXAMPLE, on_click=controls.take_text, args=(model,))


def _offer_example(model: str, place: DeltaGenerator) -> None:
    """A text that this model reads, one click away."""
    row = place.container(horizontal=True, gap="small", key="fitting", vertical_alignment="center")
    row.text(words.TRY.format(example=examples.first_text(offered.MODELS[model])), width="content")
    row.button(words.TAKE_FITTING, key="take_fitting", type="tertiary", on_click=controls.take_text, args=(model,))


def _above(place: DeltaGenerator, request: Request, answer: state.Answer) -> None:
    with place:
        controls.beneath(request, answer)


def _wait(ticket: Ticket, place: DeltaGenerator, so_far: DeltaGenerator, above: Callable[[], None]) -> bool:
    """Show what there is of a run until it has ended, say how far it is, and offer the way out of it.

    The picture before stays where it is until there is something to see. Whatever the visitor does meanwhile breaks this
    off; the script begins anew, and comes back here if the run still goes on.

    Returns whether what there is of the visit's first picture has taken its place, below what `above` draws: the script
    must then begin anew, to draw the picture there.
    """
    said_at = time.monotonic() + state.AT_ONCE - SOON
    run = line = bar = before = None
    is_first = False
    while True:
        if run is None and (run := underway.begun(ticket.request.key)) is not None:
            is_first = component.underway(run.header.result(), controls.link(ticket.request), so_far)
            if is_first:
                above()  # now, since nothing may move when the picture is whole
        now = _progress(ticket)
        if now != before and time.monotonic() >= said_at:
            if line is None or bar is None:
                box = place.container(key="working")
                row = box.container(horizontal=True, vertical_alignment="center", gap="small")
                line, bar = row.empty(), box.empty()
                row.button(words.CANCEL, key="cancel", on_click=state.stop)
            line.text(now[0])
            bar.html(theme.working(now[1], st.context.theme.type or "light"))
            before = now
        if state.ended(ticket, PACE):
            return is_first


def _progress(ticket: Ticket) -> tuple[str, float | None]:
    """How far a run is, in words and as a share where somebody knows it."""
    title, download, (done, total) = offered.spec_of(ticket.request.model_id).title, ticket.progress, ticket.layers
    if download is not None and download[2]:
        name, done, total = download
        said = words.BYTES.format(title=title, name=name, done=tables.size(done), total=tables.size(total))
        return said, done / total
    if ticket.stage == "running" and total:
        return words.LAYERS.format(title=title, done=done, total=total), done / total
    return words.WORKING[ticket.stage].format(title=title), None


def _shapes(run: Trace) -> None:
    with st.expander(words.STEPS, key="shapes", on_change="rerun") as box:
        if not box.open:  # the table is larger than the picture: it is made and sent when somebody wants it
            return
        st.caption(
            words.DEVICE.format(
                device=run.device,
                dtype=run.dtype,
                ms=f"{run.seconds * 1000:.0f}",
                held=tables.size(run.bytes),
                models=_listed(state.engine().status()["models"]),
            )
        )
        palette = theme.PALETTES[st.context.theme.type or "light"]  # no one grey can be read on both pages
        st.dataframe(tables.muted(tables.steps(run), palette["mute"]), hide_index=True, column_config=_columns())
        st.caption(words.STEPS_CAPTION)


def _listed(models: list[str]) -> str:
    """The models in memory, the last ones by name: of small ones there can be many."""
    more = len(models) - MOST_LISTED
    return ", ".join(models[-MOST_LISTED:]) + (words.MORE.format(n=more) if more > 0 else "")


def _columns() -> dict[str, Any]:
    def number(name: str) -> Any:
        return st.column_config.NumberColumn(words.STEPS_COLUMNS[name], format="%.3f")

    return {**words.STEPS_COLUMNS, "mib": number("mib"), "mb": number("mb")}
