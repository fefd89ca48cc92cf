"""Where a script lets itself be broken off: where it waits, and never within a callback."""

from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state import SafeSessionState


def give_way() -> None:
    """Let Streamlit break the script off here for a visitor who has done something else, or has gone.

    It does so whenever a script reads its session. Without this, a script that waits runs to its end although its visitor has left.
    Outside a script, for example during the warm-up, nothing happens.
    """
    if get_script_run_ctx(suppress_warning=True) is not None:
        _ = "given_way" in st.session_state


def callbacks_are_whole() -> None:
    """From now on, in this process: a callback that has begun comes to its end, and the script after it is broken off instead.

    Streamlit 1.67 breaks a callback off at any look into the session, and does not call it again: the widget counts as changed. Of
    a model that was chosen the edits would be gone, and its text would still be the other one's.
    """
    theirs = SafeSessionState.on_script_will_rerun

    def whole(self: SafeSessionState, *args: Any, **kwargs: Any) -> None:
        breaks_off = self._yield_callback
        object.__setattr__(self, "_yield_callback", _goes_on)  # its own __setattr__ writes into the session
        try:
            theirs(self, *args, **kwargs)
        finally:
            object.__setattr__(self, "_yield_callback", breaks_off)

    SafeSessionState.on_script_will_rerun = whole


def _goes_on() -> None:
    """Nothing breaks it off."""
