"""The browser files that every room may use, and what they know from here: words, colours, style and names in a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app import streamlit_edge
from app.kit import theme, words
from app.session import link_names
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"
COLOURS = {
    name: {tone: palette[tone] for tone in ("background", "panel", "ink", "mute", "line", "query", "key", "proof")}
    for name, palette in theme.PALETTES.items()
}
MENU = BROWSER / "menu.css"  # of files
LINK = BROWSER / "share.css"  # to copy by hand
AXES = BROWSER / "axes.css"  # of the rooms that name the axes of tensors
TABLE = BROWSER / "table.css"  # of numbers
HOST = "kit/browser/component.js"  # shows a part of the page where Streamlit has a place for it
STAGE = BROWSER / "stage.css"  # what every room on a stage looks like, before its own


def style(*own: Path) -> Callable[[], str]:
    """The style of a room on a stage: what all have, and after it what is its own."""
    return modules.style(STAGE, MENU, LINK, TABLE, *own)


def add() -> None:
    """Put them into the registry; anyone who registers a component that needs them does so."""
    modules.add("streamlit_edge/browser", Path(streamlit_edge.__file__).with_name("browser"))
    modules.add("kit/browser", BROWSER)
    modules.add("kit/browser/picture", BROWSER / "picture")
    modules.add("kit/browser/writers", BROWSER / "writers")
    modules.add_constants(
        "kit/browser/constants.js",
        RUN=link_names.OF_THE_RUN,
        HEAD=link_names.HEAD,
        TOKENS=link_names.TOKENS,
        PINNED=link_names.PINNED,
        RULE=link_names.RULE,
        WAS=link_names.WAS,
    )
    modules.add_constants(
        "kit/browser/words.js",
        WORDS=lambda: words.COMPONENT,
        COLOURS=COLOURS,
        STYLE=style(BROWSER / "headline.css"),
    )
