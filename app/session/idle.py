"""After how long the run of a visitor who does nothing is given back: HEADLIGHT_IDLE_MINUTES."""

from __future__ import annotations

import os

VARIABLE = "HEADLIGHT_IDLE_MINUTES"
DEFAULT = "30"


def seconds(value: str | None = None) -> float:
    """From the setting. Raises ValueError for what is no number of minutes above 0."""
    said = os.environ.get(VARIABLE, DEFAULT) if value is None else value
    try:
        minutes = float(said)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < 1e6:
        raise ValueError(f"{VARIABLE} is {said[:40]!r}, but it must be a number of minutes above 0, such as 30.")
    return 60 * minutes
