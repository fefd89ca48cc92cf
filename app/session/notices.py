"""Sentences for a visitor that wait for the room which shows them."""

import streamlit as st

KEY = "notices"


def add(*sentences: str) -> None:
    """Have these said in the next room that is drawn."""
    st.session_state[KEY] = [*waiting(), *sentences]


def waiting() -> list[str]:
    """What there is to say, and still will be."""
    return st.session_state.get(KEY, [])


def take() -> list[str]:
    """What there is to say, now that it is said."""
    said = waiting()
    st.session_state.pop(KEY, None)
    return said
