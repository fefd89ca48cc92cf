"""Registers the stage of What if, and what its browser files know from Python."""

from __future__ import annotations

from pathlib import Path

from app.kit import scripts, stage, theme
from app.rooms.whatif import words
from app.rooms.whatif.changes import PARAMS
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"

scripts.add()
modules.add("rooms/whatif/browser", BROWSER)
modules.add_constants(
    "rooms/whatif/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    STYLE=scripts.style(BROWSER / "whatif.css"),
)
STAGE = stage.stage("whatif", PARAMS, "rooms/whatif/browser/whatif.js", is_followed=True)
