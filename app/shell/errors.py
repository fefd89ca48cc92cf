"""The last resort: a bug becomes a plain sentence."""

from __future__ import annotations

import logging

import streamlit as st

from app.session import words

log = logging.getLogger("headlight")


def on_script_error(error: Exception) -> bool:
    """The last resort: a bug becomes a plain sentence on the screen and a traceback in the server's log."""
    log.error("The script failed", exc_info=error)
    st.warning(words.BROKEN)
    return True
