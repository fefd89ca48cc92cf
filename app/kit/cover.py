"""What a lesson covers in a room until the visitor has said it: it goes along with what the room sends, and stands in for parts of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from app.kit import words

KEY = "cover"  # in the session


@dataclass(frozen=True)
class Cover:
    """What is covered: `part` is a word of the room's own, such as "row"; browser/cover.js knows what else there is to it."""

    step: str  # the step of the lessons: each has a cover of its own
    part: str  # "": nothing
    asks: str  # how the step is answered; of "point" the room tells what is pointed at
    values: dict[str, str]  # what the room shows, as the step opens it: which row, which head
    seen: bool  # whether the link says that it was looked at already


def put(cover: Cover | None) -> None:
    """Have this covered in the room that is drawn next, and nothing with None."""
    st.session_state[KEY] = cover


def sent() -> dict[str, Any] | None:
    """What a room sends to the browser with its own numbers; None where nothing is asked."""
    cover: Cover | None = st.session_state.get(KEY)
    return None if cover is None else asdict(cover)


@contextmanager
def over(*parts: str) -> Iterator[None]:
    """A part of the page that Streamlit draws itself: what is drawn inside is out of sight as long as one of `parts` is covered.

    It is so from the moment that it is there, whatever the browser knows by then; kit/browser/cover.js uncovers it.
    """
    cover: Cover | None = st.session_state.get(KEY)
    if cover is None or cover.part not in parts:
        yield  # without a box of its own, which a page that is laid out by its children would have to know of
        return
    with st.container(key=f"under_{parts[0]}", gap=None):
        if not cover.seen:
            # The step is one of ours ("3.5"), and the words are too: no text of a visitor becomes style.
            st.html(STYLE.format(step=cover.step, part=parts[0], said=words.COVERED))
        yield


STYLE = """<style>
html:not([data-looked="{step}"]) .st-key-under_{part} * {{ visibility: hidden !important; }}
html:not([data-looked="{step}"]) .st-key-under_{part} {{
    position: relative;
    border: 1px dashed color-mix(in srgb, currentColor 30%, transparent);
    border-radius: 0.5rem;
    background: repeating-linear-gradient(135deg, transparent 0 5px, color-mix(in srgb, currentColor 9%, transparent) 5px 6px);
}}
html:not([data-looked="{step}"]) .st-key-under_{part}::after {{
    content: "{said}";
    position: absolute;
    inset: 0;
    display: grid;
    place-items: center;
}}
</style>"""
