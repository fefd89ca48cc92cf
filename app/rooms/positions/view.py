"""Positions: take them away or move them, see which heads notice, and what the model's own positions are."""

from __future__ import annotations

from app.rooms.positions import message
from app.rooms.positions.component import STAGE
from app.shell import run as shell_run


def show() -> None:
    """Draw the room."""
    with shell_run.on_screen() as shown:
        if shown is not None:
            shell_run.draw(shown, STAGE, message.message)
