"""Where a script that waits lets itself be broken off."""

import streamlit as st


def give_way() -> None:
    """Let Streamlit break the script off here for a visitor who has done something else, or has gone.

    It does so whenever a script looks into its session. Without this a script that waits goes on to its end for no one.
    """
    _ = "given_way" in st.session_state
