"""What happened to the visitors of edge_ui.py: a script is run anew each time, a module is not."""

import gc

COLLECTED: list[float] = []  # every collection of all garbage
BROKEN_OFF: list[float] = []  # when a script that waited was broken off
GONE: list[str] = []  # visitors
CLEARED: list[str] = []  # how often somebody cleared the caches


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        COLLECTED.append(info["collected"])


gc.callbacks.append(_collected)
