"""What happened to the visitors of edge_ui.py: a script is run anew each time, a module is not."""

import gc

COLLECTED: list[float] = []  # every collection of all garbage
# Visitors by their names, each as often as it happened:
BROKEN_OFF: list[str] = []  # whose script waited and was broken off
GONE: list[str] = []  # who has left
CLEARED: list[str] = []  # who cleared the caches


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        COLLECTED.append(info["collected"])


gc.callbacks.append(_collected)
