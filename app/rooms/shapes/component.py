"""Registers the stage of Shapes, and what can be chosen there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.kit import scripts, stage, theme
from app.kit.params import Param
from app.rooms.shapes import words
from app.transport import modules

ENTRY = "rooms/shapes/browser/shapes.js"
BROWSER = Path(__file__).parent / "browser"
MOST_SAID = 80  # characters of one choice

PALETTES = {
    name: palette | theme.AXES[name] | {"pos": palette["ink"], "kv_head": theme.AXES[name]["head"]}
    for name, palette in theme.PALETTES.items()
}


def _said(text: str, _: Any) -> str:
    """As it is asked for: another diagram may have what this one lacks, and the view says what is not there."""
    return text[:MOST_SAID]


# of which tensor, of which layer, what is unfolded, how it is shown, which change of its line, and the head whose values are shown
PARAMS = tuple(Param(name, "", _said, "") for name in ("tensor", "at", "unfold", "as", "break", "with_head"))

scripts.add()
modules.add("rooms/shapes/browser", BROWSER)
modules.add_constants(
    "rooms/shapes/browser/constants.js",
    WORDS=lambda: (
        words.COMPONENT
        | {"axes": words.AXES, "counts": words.COUNTS, "sections": words.SECTIONS, "stacks": words.STACKS}
    ),
    PALETTES=PALETTES,
    STYLE=scripts.style(scripts.AXES, BROWSER / "shapes.css"),
)
STAGE = stage.stage("shapes", PARAMS, ENTRY, is_followed=True, of_run=False)
