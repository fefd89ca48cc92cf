"""Draws What if: the request box, and the stage with the run that is swept."""

from __future__ import annotations

from app.rooms.whatif import ahead, message
from app.rooms.whatif.component import STAGE
from app.shell import run


def show() -> None:
    """The room, in the script of a visitor."""
    with run.on_screen() as shown:
        if shown is not None:
            followed, _ = run.draw(shown, STAGE, message.message)
            ahead.begin(followed.values, shown.facts)
