"""How many files this process may have open: with too few, the server refuses connections long before all places are taken.

A service of systemd may have 1,024 until it asks for more, and so may a shell on most machines: enough for some 150 visitors.
"""

from __future__ import annotations

import logging
import sys

from app.transport import words

EACH = 5  # a visitor's websocket, the three of Streamlit's event loop for a session, and a request now and then
OTHERS = 700  # models, libraries, and the 128 sessions of visitors who have gone that Streamlit keeps for a while

log = logging.getLogger("headlight")


def allow(visitors: int) -> None:
    """Ask the system for as many as so many visitors need, or as many as it gives; says where that is not enough.

    Windows has no such limit to ask about.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OTHERS + EACH * visitors
    if soft == resource.RLIM_INFINITY:
        return
    # Followers of a class take one each beside, so all that there are; only a system that sets no end is asked for a number.
    wanted = max(soft, needed) if hard == resource.RLIM_INFINITY else hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS says that there is no end, and has one
        wanted = soft
    if wanted < needed:
        log.warning(words.FEW_FILES.format(files=wanted, visitors=visitors, needed=needed))
