"""Registers the browser's part of the classroom: the teacher's page imports it, and the followers' page is drawn by it."""

from __future__ import annotations

from pathlib import Path

from app.classroom import codes, words
from app.kit import scripts, theme
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"
TEACH = "classroom/browser/teacher.js"  # what lies over a teacher's room, once there is a class
FOLLOW = "classroom/browser/follow.js"  # draws the page of a follower

scripts.add()
modules.add("classroom/browser", BROWSER)
modules.add_constants(
    "classroom/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    ALPHABET=codes.ALPHABET,
    STYLE=lambda: (
        modules.style(BROWSER / "classroom.css")()
        + modules.style(scripts.MENU, scripts.TABLE)().replace(".hl ", ".classroom ")
    ),
)
