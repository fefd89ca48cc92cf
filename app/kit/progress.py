"""How many steps a room has, of which the bar says how many were looked at. The browser keeps which."""

from __future__ import annotations

_steps: dict[str, int] = {}


def register(room: str, steps: int) -> None:
    """A room has so many steps."""
    _steps[room] = steps


def steps(room: str) -> int:
    """Of a room; 0 where it has none."""
    return _steps.get(room, 0)
