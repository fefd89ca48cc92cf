"""Whether the visitor went back or forward: then the address says what they want to see, and the session what they saw."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_history_navigation() -> bool:
    """Whether this run of the script is for the browser's Back or Forward.

    Streamlit knows it, for its own widgets, and has no name for it in its API. Without it, Back leads to another address and not to
    another room.
    """
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def repeat_address() -> None:
    """Have the browser's address say once more where the visitor went, when they went back or forward. First thing in a script.

    An address that the run before has written may still be on its way when they go, and then stands over the one they went to: the
    browser takes whatever comes, and Streamlit sends no address that it knows already. Without it the room changes and its address
    stays that of another one.
    """
    if is_history_navigation():
        st.query_params.update({})
