"""The sentence on a page to which no websocket comes through, as one script of the page with all that it imports."""

from __future__ import annotations

from pathlib import Path

from app.export import offline
from app.kit import theme
from app.shell import words
from app.transport import modules

BROWSER = Path(__file__).with_name("browser")
SCRIPT = "shell/browser/refused.js"
COLOURS = {
    name: {tone: palette[tone] for tone in ("background", "ink", "line")} for name, palette in theme.PALETTES.items()
}

modules.add("shell/browser", BROWSER)
modules.add_constants(
    "shell/browser/constants.js", WORDS=lambda: words.REFUSED | {"dropped": words.DROPPED}, COLOURS=COLOURS
)


def script() -> str:
    """One script without imports. It needs nothing that comes by a websocket."""
    return f"(() => {{\n{offline.bundle(SCRIPT)}\n}})();\n"
