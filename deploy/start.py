"""Start what deploy/Procfile says, until SIGTERM or Ctrl-C comes, or the terminal is closed.

Honcho gives each of its processes a session of its own, so a terminal that is closed would end honcho alone, and leave the rest.
"""

from __future__ import annotations

import os
import signal

from honcho import manager
from honcho.command import main

LONGEST = 30  # seconds until what has not ended is killed: a front end lets its runs end, and Ray takes a while


def closed(*_: object) -> None:
    """The terminal is gone: whoever writes to it fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    manager.KILL_WAIT = LONGEST
    signal.signal(signal.SIGHUP, closed)
    main(["-f", "deploy/Procfile", "-d", ".", "start"])
