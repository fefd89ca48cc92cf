"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import streamlit as st

from app import controls, export, state, tables, theme, words
from app.components.explore.explore import explore
from core.errors import Refused
from core.trace import Trace


def show() -> None:
    """Draw the view."""
    request, notes = controls.request()
    answer = state.answer(request)
    sentences = st.container(key="sentences", gap=None)
    if answer.sentence:
        notes.insert(0, answer.sentence)
    if answer.request is not None and answer.picture is not None and answer.trace is not None:
        notes += explore(answer.picture, controls.link(answer.request))
        if isinstance(asked := (st.session_state.get("explore") or {}).get("inspect"), Mapping):
            _inspect(answer.trace, asked)
        _shapes(answer.trace)
    else:
        _nothing_yet()
    for note in notes:
        sentences.text(note)  # never markdown: it may quote what the visitor typed


@st.dialog(words.INSPECT, width="large")
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
    st.plotly_chart(figure, theme=None, key="inspected", config={"displaylogo": False, "scrollZoom": True})


def _nothing_yet() -> None:
    st.text(words.NOTHING_YET)
    st.button(words.TAKE_EXAMPLE, on_click=_take_example)


def _take_example() -> None:
    st.session_state["text"] = words.EXAMPLE
    st.session_state["model"] = state.DEFAULT_MODEL


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
