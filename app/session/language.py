"""The language of a visit: the one that its address asks for, or else its browser; it is settled when the visitor arrives."""

from __future__ import annotations

import streamlit as st

from app import languages
from app.session import notices, words
from app.streamlit_edge import visit

KEPT = "language"  # in the session

languages.listen(lambda: visit.kept(KEPT))


def begin() -> None:
    """Near the top of a script. Another language is another visit: the page is loaded again with its address."""
    if KEPT in st.session_state:
        return
    said = st.query_params.get(languages.PARAM, "")
    st.session_state[KEPT] = languages.chosen(said, st.context.headers.get("Accept-Language") or "")
    if said and said not in languages.KNOWN:
        notices.add(words.UNKNOWN_LANGUAGE.format(asked=said[:40], allowed=", ".join(languages.CODES)))
