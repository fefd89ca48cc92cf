"""What a visitor sees of a run that is still going: how far it is, in words and as a line."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.kit import numbers, theme
from app.session import answer, models
from app.shell import words
from core.service import RunHandle

SOON = 0.25  # seconds in which a run may end before anything of it is shown; answer.AT_ONCE, before it is said that it runs
PACE = 0.3  # seconds between two looks at how far a run is,
IN_LINE = 1.5  # and where several others have their turn before it: looks of all who wait would take the time from those who run


def wait(
    run: RunHandle[None], place: DeltaGenerator, look: Callable[[], object] = lambda: None, side: str = ""
) -> None:
    """Wait until a run of a side has ended, say in `place` how far it is, and offer the way out of it. `look` is called at each look.

    What is on the screen stays there meanwhile. Whatever the visitor does breaks this off; the script begins again, and comes
    back here if the run still goes on.
    """
    said_at = time.monotonic() + answer.AT_ONCE - SOON
    line = bar = before = None
    while True:
        look()
        now = progress(run)
        if now != before and time.monotonic() >= said_at:
            if line is None or bar is None:
                box = place.container(key=f"working{side}")
                row = box.container(horizontal=True, vertical_alignment="center", gap="small")
                line, bar = row.empty(), box.empty()
                row.button(words.CANCEL, key=f"cancel{side}", on_click=answer.stop, args=(side,))
            line.text(now[0])
            if before is None or now[1] != before[1]:
                bar.html(working(now[1], st.context.theme.type or "light"))
            before = now
        in_line = run.progress.ahead > 1
        if answer.ended(run, IN_LINE if in_line else PACE, IN_LINE / 3 if in_line else answer.LOOK):
            return


def run_again(place: DeltaGenerator, side: str = "") -> None:
    """The way back to a run that the visitor has cancelled."""
    place.button(words.RUN_AGAIN, key=f"again{side}", type="tertiary", on_click=answer.start_again, args=(side,))


def progress(run: RunHandle[None]) -> tuple[str, float | None]:
    """How far a run is, in words and as a share where that is known."""
    title, now = models.spec_of(run.request.model_id).title, run.progress
    if now.bytes_total:
        done, total = numbers.size(now.bytes_done), numbers.size(now.bytes_total)
        said = words.BYTES.format(title=title, name=now.file, done=done, total=total)
        return said, now.bytes_done / now.bytes_total
    if now.stage == "running" and now.layers_total:
        said = words.LAYERS if now.parts == 1 else words.LAYERS_OF_PART
        layers = {"done": now.layers_done, "total": now.layers_total, "part": now.part + 1, "parts": now.parts}
        return said.format(title=title, **layers), (now.part + now.layers_done / now.layers_total) / now.parts
    if now.stage == "waiting" and now.ahead:
        return words.ONE_BEFORE if now.ahead == 1 else words.SOME_BEFORE.format(n=now.ahead), None
    return words.WORKING[now.stage].format(title=title), None


def working(share: float | None, scheme: str) -> str:
    """A line on top of the words that say how far a run is: as long as what is done, or moving where that is unknown.

    All of it lies over the page: nothing may jump because something takes long.
    """
    palette = theme.PALETTES[scheme]
    length = "" if share is None else f"width: {100 * share:.1f}%; animation: none; "
    line = f'<i style="{length}background: {palette["proof"]}"></i>'
    known = "" if share is None else f' aria-valuenow="{100 * share:.0f}"'
    style = f"<style>[class*='st-key-working'] {{ background: {palette['panel']}; }}</style>"
    return f'<div class="hl-working" role="progressbar" aria-label="{words.PROGRESS}"{known}>{line}{style}</div>'
