"""Charts on the page: figures loaded when first drawn, and the choice of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import streamlit as st

from app.kit import words
from app.kit.numbers import quoted
from app.session.links import newly_asked
from app.streamlit_edge import collection


def part(parts: dict[str, str], key: str, label: str = words.PART) -> str:
    """Which part of a view is on the screen; bound to the URL, by its title there."""
    titles = {title: name for name, title in parts.items()}
    chosen = st.segmented_control(
        label,
        list(titles),
        default=next(iter(titles)),
        required=True,
        key=key,
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    return titles[chosen]


@cache
def figures(name: str) -> Any:
    """A module of figures. Plotly comes with the first one, and is then kept out of the collection after every run."""
    module = import_module(name)
    collection.keep_out()
    return module


Choices = Mapping[str, tuple[str, Sequence[str]]]  # parameter of the URL -> what it is called, and its values


def unknown_choices(view: str, choices: Choices) -> list[str]:
    """A sentence for each choice that a link newly asks for and no control has."""
    asked = newly_asked(view, {param: st.query_params.get_all(param) for param in choices})
    return [
        words.UNREADABLE_CHOICE.format(name=choices[param][0], asked=quoted(text), known=", ".join(choices[param][1]))
        for param, texts in asked.items()
        for text in texts
        if text not in choices[param][1]
    ]
