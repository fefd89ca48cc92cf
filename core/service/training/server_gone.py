"""How a process that trains ends with the server that started it, even where that was killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import BinaryIO


def end_with(server: BinaryIO) -> None:
    """End this process when the server closes its end of this pipe, as it does when it dies."""

    def wait() -> None:
        server.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def run(main: Callable[[], object]) -> None:
    """Run a process until its work is done, or until its news has no reader: that is no failure."""
    try:
        main()
    except BrokenPipeError:
        os._exit(0)  # a plain exit would try to send the rest
