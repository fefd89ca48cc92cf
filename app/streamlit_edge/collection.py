"""Garbage is collected in idle moments, and what is loaded for good is kept out of it.

Streamlit calls gc.collect(2) at the end of every run of a script, holding everybody up; .streamlit/config.toml says not to
(runner.postScriptGC). Alone that would let the server grow, so it is done here as soon as no one waits, and under a load that
never ends now and then.
"""

from __future__ import annotations

import gc
import time

from app.streamlit_edge.departures import forget

IDLE = 1.0  # seconds without a script
LONGEST = 20.0  # seconds that garbage waits, however much is going on
LOOK = 0.5  # seconds between two looks

_last = 0.0  # when a script began last, by time.monotonic()
_since = 0.0  # when the first one began since the last collection; 0: none has


def keep_out() -> None:
    """Collect now, and freeze whatever is left: torch, the figures, the model. A collection then looks at little."""
    gc.collect()
    gc.freeze()


def ran() -> None:
    """A script runs: there will be garbage."""
    global _last, _since
    _last = time.monotonic()
    _since = _since or _last


def is_due(now: float) -> bool:
    """Whether garbage is to be collected at this time."""
    return _since > 0 and (now - _last >= IDLE or now - _since >= LONGEST)


def collect(now: float) -> bool:
    """Collect if it is time; whether it was."""
    global _since
    if not is_due(now):
        return False
    _since = 0.0
    gc.collect()
    return True


def look() -> None:
    """What is to be done every LOOK seconds, in the thread of the server's loop."""
    if forget():
        ran()  # what a session has held is garbage now
    collect(time.monotonic())
