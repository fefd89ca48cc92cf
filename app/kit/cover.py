"""What a lesson covers in a room until the visitor has said it: it goes along with what the room sends, and stands in for parts of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


def asked(*parts: str) -> str:
    """Which of these parts the room that is drawn next covers until the visitor has looked; "": none of them."""
    cover: Cover | None = st.session_state.get(KEY)
    return cover.part if cover is not None and cover.part in parts else ""


@contextmanager
def over(name: str, *parts: str) -> Iterator[None]:
    """A piece of the page that Streamlit draws itself: what is drawn inside is out of sight as long as one of `parts` is covered.

    It is so from the moment that it is there, whatever the browser knows by then; kit/browser/cover.js uncovers it.
    """
    if not asked(*parts):
        yield  # without a box of its own, which a page that is laid out by its children would have to know of
        return
    with st.container(key=f"under_{name}", gap=None):
        _style()
        yield


@contextmanager
def instead(name: str, *parts: str) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """The same of a picture, in whose place another stands as long as that is covered: what is drawn within what this gives.

    with instead("chart", "bar") as other:
        with other(): …  # nothing of it is in the page where nothing is covered
    """
    if not asked(*parts):
        yield nullcontext
        return
    before = st.container(key=f"instead_{name}", gap=None)
    with st.container(key=f"behind_{name}", gap=None):
        _style()
        yield lambda: before


def _style() -> None:
    """The step is one of ours ("3.5"), and the words are too: no text of a visitor becomes style."""
    cover: Cover = st.session_state[KEY]
    st.html(STYLE.format(step=cover.step, said=words.COVERED))


STYLE = """<style>
html:not([data-looked="{step}"]) :is([class*="st-key-under_"], [class*="st-key-behind_"]) * {{ visibility: hidden !important; }}
html:not([data-looked="{step}"]) [class*="st-key-under_"] {{
    position: relative;
    min-height: 2.4rem;
    border: 1px dashed color-mix(in srgb, currentColor 30%, transparent);
    border-radius: 0.5rem;
    background: repeating-linear-gradient(135deg, transparent 0 5px, color-mix(in srgb, currentColor 9%, transparent) 5px 6px);
}}
html:not([data-looked="{step}"]) [class*="st-key-under_"]::after {{
    content: "{said}";
    position: absolute;
    inset: 0;
    display: grid;
    place-items: center;
}}
html:not([data-looked="{step}"]) [class*="st-key-behind_"] {{ position: absolute; height: 0; overflow: hidden; pointer-events: none; }}
html[data-looked="{step}"] [class*="st-key-instead_"] {{ display: none; }}
</style>"""
