"""Scripts of the page, each with all that it imports: what it says without a websocket or a server, and a file dropped there."""

from __future__ import annotations

from pathlib import Path

from app.export import offline
from app.kit import theme
from app.shell import words
from app.transport import modules

BROWSER = Path(__file__).with_name("browser")
SCRIPT = "shell/browser/refused.js"
AWAY = "shell/browser/away.js"
DROPPED = "shell/browser/dropped.js"
COLOURS = {
    name: {tone: palette[tone] for tone in ("background", "ink", "line")} for name, palette in theme.PALETTES.items()
}

modules.add("shell/browser", BROWSER)
modules.add_constants(
    "shell/browser/constants.js",
    WORDS=lambda: words.REFUSED | {"dropped": words.DROPPED, "away": words.AWAY},
    COLOURS=COLOURS,
)


def script() -> str:
    """One script without imports. It needs nothing that comes by a websocket."""
    return _alone(SCRIPT)


def away() -> str:
    """The same of a server that has gone."""
    return _alone(AWAY)


def dropped() -> str:
    """The same of a file that is dropped onto the page."""
    return _alone(DROPPED)


def _alone(script: str) -> str:
    return f"(() => {{\n{offline.bundle(script)}\n}})();\n"
