"""Start what deploy/Procfile says, until SIGTERM or Ctrl-C comes, or the terminal is closed.

Honcho gives each of its processes a session of its own, so a terminal that is closed would end honcho alone, and leave the rest.
It asks all that a process has started to end at once, too; here the process alone is asked, and ends what it has started.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from honcho import manager
from honcho.command import main

LONGEST = 30  # seconds until what has not ended is killed, with all that it started: a front end lets its runs end, and so does Ray


def closed(*_: object) -> None:
    """The terminal is gone: whoever writes to it fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.kill(os.getpid(), signal.SIGTERM)


class Alone(manager.ProcessManager):
    """How each process of deploy/Procfile is asked to end. Were Ray's asked as well, `python -m cluster` would wait half a minute for
    what has gone. So each line ends with exec: else the shell would be asked, and what it has started would stay.
    """

    def terminate(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    manager.KILL_WAIT = LONGEST
    manager.ProcessManager = Alone
    signal.signal(signal.SIGHUP, closed)
    main(["-f", "deploy/Procfile", "-d", ".", "start"])
