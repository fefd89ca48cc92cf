"""Registers the browser's part of Masks."""

from __future__ import annotations

from pathlib import Path

from app.kit import scripts, stage, theme
from app.rooms.masks import choices, words
from app.transport import modules
from core.model.rules import REASONS

PARAMS = choices.PARAMS
BROWSER = Path(__file__).parent / "browser"
OFFLINE = "rooms/masks/browser/standalone.js"  # draws the same on a page that asks no server
ENTRY = "rooms/masks/browser/masks.js"

modules.add("rooms/masks/browser", BROWSER)
modules.add_constants(
    "rooms/masks/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    REASONS=REASONS,
    WHOLE=choices.WHOLE,
    STEP=choices.STEP,
    SHOWN=choices.SHOWN,
    STYLE=scripts.style(BROWSER / "masks.css"),
)
STAGE = stage.stage("masks", PARAMS, ENTRY, is_followed=True)
