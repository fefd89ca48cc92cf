"""The list of all models on offer, over the page: found by name, form and size, each with what it is for."""

from __future__ import annotations

import re

import streamlit as st

from app.kit import numbers
from app.session import listed
from app.session import words as session_words
from app.session.listed import Listed
from app.session.session_state import Key
from app.shell import request, words

ROWS = 20  # that are added at a time
SHOWN: Key[int] = Key("all_models_rows")
MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&])")


def show() -> None:
    """The list, where the visitor has asked for it: in every run of the script, for one without it would close it."""
    if request.ALL_LISTED.get():
        st.dialog(words.ALL_MODELS, width="large", on_dismiss=_closed)(_dialog)()


def _closed() -> None:
    request.ALL_LISTED.take()
    SHOWN.take()


def _dialog() -> None:
    every = listed.listed(request.titles())
    text = st.text_input(words.ALL_FIND, key="all_models_find", placeholder=words.ALL_FIND_EXAMPLE)
    row = st.container(horizontal=True, gap="medium", key="all_models_kinds")
    form = row.pills(
        words.ALL_FORM, list(session_words.FORMS), format_func=session_words.FORMS.__getitem__, key="all_models_form"
    )
    size = row.pills(words.ALL_SIZE, list(listed.SIZES), format_func=words.ALL_SIZES.__getitem__, key="all_models_size")
    those = [each for each in every if each.matches(text, form or "", size or "")]
    n = max(ROWS, SHOWN.get() or 0)
    st.text(words.ALL_COUNT.format(shown=min(n, len(those)), n=len(those)) if those else words.ALL_NONE)
    with st.container(key="all_models", gap="small"):
        for each in those[:n]:
            _row(each)
    if len(those) > n:
        st.button(words.HERE_MORE.format(n=min(ROWS, len(those) - n)), key="all_models_more", on_click=_more)


def _more() -> None:
    SHOWN.put(max(ROWS, SHOWN.get() or 0) + ROWS)


def _row(each: Listed) -> None:
    """A model: a button with its name, and beneath it form, size and use."""
    place = st.container(gap=None)
    name = MARKDOWN.sub(r"\\\1", each.title)  # a name comes from a folder: never markdown
    if place.button(name, key=f"take_{each.id}", type="tertiary", on_click=_take, args=(each.id,)):
        st.rerun()
    said = [session_words.FORMS.get(each.form, ""), numbers.count(each.n_params) if each.n_params else "", each.use]
    place.text(" · ".join(filter(None, said)))


def _take(model: str) -> None:
    """For a callback: it is the chosen model."""
    _closed()
    request.choose_model(model)
