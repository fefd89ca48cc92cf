"""What `make dev` needs of Streamlit: that a page whose script was edited runs again as it is now.

Streamlit 1.67 stops the script that is running, and begins another with the state of the last one that came to its end: of an
address and of widgets before the ones on the screen, or of none where the page has just been opened. It also does so from the
watcher's thread, while the event loop changes the same session.
"""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from streamlit.runtime.app_session import AppSession, AppSessionState

LOOK = 0.1  # seconds between two looks at whether a script has ended
_waiting: WeakSet[AppSession] = WeakSet()


def after_what_runs() -> None:
    """From now on, in this process: an edit lets the script of a page run again when the one that runs has ended."""
    theirs = AppSession._on_source_file_changed

    def changed(self: AppSession, filepath: str | None = None) -> None:
        self._call_soon_on_event_loop(lambda: begin(self))

    def begin(session: AppSession) -> None:
        if session not in _waiting:
            _waiting.add(session)
            look(session)

    def look(session: AppSession) -> None:
        if session._scriptrunner is not None:
            asyncio.get_running_loop().call_later(LOOK, look, session)
            return
        _waiting.discard(
            session
        )  # an edit from here on is another one; those before are read by the script that begins now
        # A session that has run nothing yet reads what is there when its page asks for the first time.
        if session._state != AppSessionState.SHUTDOWN_REQUESTED and session._client_state.page_script_hash:
            theirs(session)

    AppSession._on_source_file_changed = changed
