"""The things that a visit keeps, read where its script runs, without the script being broken off there."""

from __future__ import annotations

from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx


def kept(name: str) -> Any:
    """The value of a name in the session of the visitor whose script or callback runs in this thread; None where there is none.

    Streamlit may stop a script wherever it looks into its session. Words are read everywhere, also where a script must not stop.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return None
    try:
        return context.session_state._state[name]
    except KeyError:
        return None
