"""The widgets that every view shares. Each has a key and lives in the URL, so that a link reproduces the screen."""

from __future__ import annotations

import streamlit as st

from app import state, words
from app.offered import TITLES
from core.engine import Request


def bar(views: list[str]) -> str:
    """The top line: the name of the product and the views there are. Returns the chosen view."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(words.TITLE, anchor=False, width="content")
        return st.segmented_control(
            words.VIEW,
            views,
            default=views[0],
            required=True,
            key="view",
            bind="query-params",
            label_visibility="collapsed",
        )


def request() -> tuple[Request, list[str]]:
    """The sentence, the model, and the target of an encoder–decoder; and a sentence for whatever the link asked in vain."""
    notes = _model_of_the_link()
    row = st.container(horizontal=True, gap="small", key="request")
    boxes, chooser, examples = row.container(width="stretch"), row.container(width=230), row.container(width="content")
    examples.menu_button(
        words.EXAMPLES,
        list(words.SHOWN),
        key="examples",
        help=words.EXAMPLES_HELP,
        on_click=_take_chosen,
    )
    model = chooser.selectbox(
        words.MODEL,
        list(TITLES),
        format_func=lambda name: TITLES[name],
        key="model",
        bind="query-params",
        label_visibility="collapsed",
    )
    loaded = state.engine().ready(model)
    two = loaded is not None and loaded.config.kind == "encoder-decoder"
    columns = boxes.columns(2 if two else 1, gap="small")
    text = columns[0].text_input(
        words.TEXT,
        words.EXAMPLE,
        key="text",
        bind="query-params",
        placeholder=words.TEXT_PLACEHOLDER,
        label_visibility="collapsed",
    )
    target = None
    if loaded is None:
        # Nobody knows yet whether it reads a target: what the link or the box before said waits until that is known.
        target = st.session_state.get("target") or st.query_params.get("target")
        if "target" in st.session_state:
            st.session_state["target"] = target
    for column in columns[1:]:
        target = column.text_input(
            words.TARGET,
            key="target",
            bind="query-params",
            placeholder=words.TARGET_PLACEHOLDER,
            label_visibility="collapsed",
        )
    return Request(model, (text or "",), target or None), notes


def take(example: str) -> None:
    """Put one of the examples on the screen; for a callback, before any widget is drawn."""
    text, layer, head, token = words.SHOWN[example]
    st.session_state["text"] = text
    st.session_state["model"] = state.DEFAULT_MODEL
    st.session_state["explore_wish"] = (text, layer, head, token)


def _take_chosen() -> None:
    if st.session_state["examples"] is not None:
        take(st.session_state["examples"])


def link(request: Request) -> dict[str, str]:
    """What a link to this request says."""
    said = {"model": TITLES[request.model_id], "text": request.texts[0]}
    return said | ({"target": request.target_text} if request.target_text else {})


def _model_of_the_link() -> list[str]:
    """Read the model from the URL by id as well as by title; a sentence when there is no such model.

    Streamlit binds the title and drops what it does not know without a word.
    """
    if "model" in st.session_state or "model" not in st.query_params:
        return []
    asked = st.query_params["model"]
    if asked in TITLES:
        st.session_state["model"] = asked
        return []
    if asked in TITLES.values():
        return []
    titles = ", ".join(TITLES.values())
    return [words.UNKNOWN_MODEL.format(name=asked, title=TITLES[state.DEFAULT_MODEL], titles=titles)]
