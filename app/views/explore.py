"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import streamlit as st

from app import controls, export, state, tables, theme, words
from app.components.explore.explore import explore
from app.offered import TITLES
from core.engine import Ticket
from core.errors import Refused
from core.trace import Trace


def show() -> None:
    """Draw the view."""
    request, notes = controls.request()
    answer = state.answer(request)
    if answer.ticket is not None:
        with st.container(key="working"):
            _working()
    sentences = st.container(key="sentences", gap=None)
    if answer.sentence:
        notes.insert(0, answer.sentence)
    if answer.request is not None and answer.picture is not None and answer.trace is not None:
        notes += explore(answer.picture, controls.link(answer.request))
        if isinstance(asked := (st.session_state.get("explore") or {}).get("inspect"), Mapping):
            st.session_state["inspected"] = asked
        if (asked := st.session_state.get("inspected")) and asked.get("run") == answer.request.key:
            _inspect(
                answer.trace, asked
            )  # in every run of the script until it is closed: one without it would close it
        _shapes(answer.trace)
    elif answer.ticket is None:
        _nothing_yet()
    for note in notes:
        sentences.text(note)  # never markdown: it may quote what the visitor typed
    if answer.stopped:
        sentences.button(words.RUN_AGAIN, key="again", type="tertiary", on_click=state.start_again)


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


def _nothing_yet() -> None:
    st.text(words.NOTHING_YET)
    st.button(words.TAKE_EXAMPLE, on_click=controls.take, args=(next(iter(words.SHOWN)),))


@st.fragment(run_every=0.3)
def _working() -> None:
    """How far the newest request is, a few times a second, and the way out of it."""
    ticket: Ticket | None = st.session_state.get("ticket")
    if ticket is None or ticket.done():
        st.rerun()
    title, progress = TITLES[ticket.request.model_id], ticket.progress
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    if progress is None or not progress[2]:
        line.text(words.WORKING[ticket.stage].format(title=title))
        share = None
    else:
        name, done, total = progress
        line.text(words.BYTES.format(title=title, name=name, done=tables.size(done), total=tables.size(total)))
        share = done / total
    if line.button(words.CANCEL, key="cancel", on_click=state.stop):
        st.rerun()
    st.html(theme.working(share, st.context.theme.type or "light"))


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
                models=", ".join(state.engine().status()["models"]),
            )
        )
        palette = theme.PALETTES[st.context.theme.type or "light"]  # no one grey can be read on both pages
        st.dataframe(tables.muted(tables.steps(run), palette["mute"]), hide_index=True, column_config=_columns())
        st.caption(words.STEPS_CAPTION)


def _columns() -> dict[str, Any]:
    def number(name: str) -> Any:
        return st.column_config.NumberColumn(words.STEPS_COLUMNS[name], format="%.3f")

    return {**words.STEPS_COLUMNS, "mib": number("mib"), "mb": number("mb")}
