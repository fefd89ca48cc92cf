"""Whether the visitor went back or forward: then the address says what they want to see, and the session what they saw."""

from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_history_navigation() -> bool:
    """Whether this run of the script is for the browser's Back or Forward.

    Streamlit knows it, for its own widgets, and has no name for it in its API. Without it, Back leads to another address and not to
    another room.
    """
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
