"""Step through: one token through one layer, every number of it."""

from __future__ import annotations

from app.kit import stage
from app.rooms.step import export, message
from app.rooms.step.component import STAGE
from app.shell import run as shell_run
from core.interventions import from_text


def show() -> None:
    """Draw the room."""
    shown = shell_run.on_screen()
    followed = stage.follow(STAGE, None if shown is None else shown.facts)
    facts = None
    if shown is not None:
        shown.say(*followed.notes)
        facts = shown.facts
        if edits := from_text(followed.values["edits"]):
            facts = shell_run.edited(shown, edits) or facts
    header = {"run": None if facts is None else message.outline(facts), "about": export.described(facts)}
    stage.draw(STAGE, followed, header)
