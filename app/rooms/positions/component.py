"""Registers the browser's part of Positions."""

from __future__ import annotations

from pathlib import Path

from app.kit import scripts, stage, theme
from app.rooms.positions import choices, words
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"
OFFLINE = "rooms/positions/browser/standalone.js"  # draws the same on a page that asks no server
ENTRY = "rooms/positions/browser/positions.js"

scripts.add()
modules.add("rooms/positions/browser", BROWSER)
modules.add_constants(
    "rooms/positions/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    STYLE=scripts.style(BROWSER / "positions.css"),
)
STAGE = stage.stage("positions", choices.PARAMS, ENTRY, is_followed=True)
