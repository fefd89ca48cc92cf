"""Registers the browser's part of Generate."""

from __future__ import annotations

from pathlib import Path

from app.attention import scripts as of_attention
from app.kit import scripts, stage, theme
from app.rooms.generate import words
from app.rooms.generate.choices import BEAMS, BRANCHES, MOST_K, OF_TEXT, PARAMS
from app.session import chosen
from app.transport import modules
from core.service import TEMPERATURES

BROWSER = Path(__file__).parent / "browser"
scripts.add()
of_attention.add()
modules.add("rooms/generate/browser", BROWSER)
modules.add_constants(
    "rooms/generate/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    TEMPERATURES=TEMPERATURES,
    MOST_K=MOST_K,
    BEAMS=BEAMS,
    BRANCHES=BRANCHES,
    STYLE=scripts.style(BROWSER / "generate.css"),
)
STAGE = stage.stage("generate", PARAMS, "rooms/generate/browser/generate.js", is_followed=True)
chosen.know("generate", of_text=OF_TEXT)
