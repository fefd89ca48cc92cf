"""Explore: one sentence, every head of every layer, one of them large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from app.session import screen, service
from app.shell import run as shell_run
from core.errors import HeadlightError
from core.service import Facts, RunHandle


def show() -> None:
    """Draw the view."""
    so_far = _SoFar(st.container(key="so_far", gap=None))
    with shell_run.on_screen(in_progress.made_of, so_far.draw) as shown:
        if shown is not None:
            notes = component.explore(EXPLORE, shown.facts, shown.picture, screen.link(shown.request))
            shown.say(*tables.non_finite(shown.facts), *notes)
            _dialog(shown.facts)


@dataclass
class _SoFar:
    """The part of a run that is there while it continues; the picture before stays until there is something to see."""

    place: DeltaGenerator
    run: Facts | None = None

    def draw(self, under_way: RunHandle[None]) -> bool:
        """Draw it once it can be shown. Returns True if the first picture of a visit is drawn where the finished one will be."""
        if self.run is not None or not under_way.progress.is_shown:
            return False
        self.run = run = service.calls().result(service.service().facts_so_far(under_way.key))
        if run is None:
            return False
        return component.underway(EXPLORE, run, picture.outline(run), screen.link(under_way.request), self.place)


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
    except HeadlightError as refusal:
        st.text(languages.said(refusal))
        return
    st.text(export.caption(run, replace(selection, apart=None), date.today()))  # whose figure colours every column
    st.plotly_chart(
        figure, width="content", theme=None, key="plotly", config={"displaylogo": False, "scrollZoom": True}
    )


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
