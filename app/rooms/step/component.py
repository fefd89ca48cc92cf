"""Registers the browser's part of Step through."""

from __future__ import annotations

from pathlib import Path

from app.kit import scripts, stage, theme
from app.rooms.step import words
from app.rooms.step.params import DIVISOR, OPENS_AT, PARAMS
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"
OFFLINE = "rooms/step/browser/standalone.js"  # draws the same on a page that asks no server
PALETTES = {name: palette | theme.AXES[name] for name, palette in theme.PALETTES.items()}
scripts.add()
modules.add("rooms/step/browser", BROWSER)
modules.add_constants(
    "rooms/step/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=PALETTES,
    DIVISOR=DIVISOR,
    OPENS_AT=OPENS_AT,
    STYLE=scripts.style(scripts.AXES, BROWSER / "step.css"),
)
STAGE = stage.stage("step", PARAMS, "rooms/step/browser/step.js", is_followed=True)
