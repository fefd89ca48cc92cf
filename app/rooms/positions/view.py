"""Positions: take them away or move them, see which heads notice, and what the model's own positions are."""

from __future__ import annotations

from datetime import date

from app.kit import stage
from app.rooms.positions import export, message
from app.rooms.positions.component import STAGE
from app.session.screen import Screen
from app.shell import run as shell_run


def show() -> None:
    """Draw the room."""
    shown = shell_run.on_screen()
    if shown is None:
        return
    followed = stage.follow(STAGE, shown.facts, shown.facts)
    shown.say(*followed.notes)
    link = Screen("positions", shown.request).said()
    about = export.described(shown.facts, date.today())
    stage.draw(STAGE, followed, message.header(shown.facts) | {"link": link, "about": about})
