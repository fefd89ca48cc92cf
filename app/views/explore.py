"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import controls, state, tables, theme, words
from app.components.explore.explore import explore
from core.trace import Trace


def show() -> None:
    """Draw the view."""
    request, notes = controls.request()
    answer = state.answer(request)
    sentences = st.container(key="sentences", gap=None)
    if answer.sentence:
        notes.insert(0, answer.sentence)
    if answer.picture is not None and answer.trace is not None:
        notes += explore(answer.picture)
        _shapes(answer.trace)
    else:
        _nothing_yet()
    for note in notes:
        sentences.text(note)  # never markdown: it may quote what the visitor typed


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
