"""The browser files of a picture of attention, and what they know from here: words, colours, options and style."""

from __future__ import annotations

from pathlib import Path

from app.attention import params, words
from app.kit import scripts, theme
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"


def add() -> None:
    """Put them into the registry, with those of every room."""
    scripts.add()
    modules.add("attention/browser", BROWSER)
    modules.add_constants(
        "attention/browser/constants.js",
        WORDS=lambda: words.COMPONENT | {"sites": words.SITES, "tabs": words.SITE_TABS, "reasons": words.REASONS},
        PALETTES=theme.PALETTES,
        OPTIONS={param.name: param.default for param in params.OPTIONS},
        STYLE=scripts.style(BROWSER / "attention.css"),
    )
