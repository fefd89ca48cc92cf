"""Registers the component of the first part, the question and its picture, and mounts it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.kit import headline, scripts, theme
from app.rooms.memory import words
from app.transport import messages, modules

BROWSER = Path(__file__).parent / "browser"
ENTRY = "rooms/memory/browser/fit.js"
KEY = "fit_memory"  # in the session: what the browser told, "page" and "asks"
VIEW = "memory"

# Blue is what longer texts need more of, light blue what is needed only for a moment, and purple what is too much. On a dark page,
# too, the light blue is the lighter one.
PALETTES = {
    name: palette
    | {
        "held": palette["ramp"][3 if name == "light" else 2],
        "work": palette["ramp"][2 if name == "light" else 3],
        "over": palette["ahead"][3],
    }
    for name, palette in theme.PALETTES.items()
}

scripts.add()
modules.add("rooms/memory/browser", BROWSER)
modules.add_constants(
    "rooms/memory/browser/constants.js",
    WORDS=lambda: words.FIT_WORDS,
    PALETTES=PALETTES,
    STYLE=scripts.style(BROWSER / "fit.css"),
)
_component = modules.component("fit", ENTRY, html=lambda: '<div class="hl planner fit"></div>', host=scripts.HOST)


def fit(data: Mapping[str, Any], seen: str = "") -> None:
    """Draw the question, its answer and the picture of both.

    `data` is what browser/types.d.ts calls Fit, but for what every stage has; `seen` as in headline.header(). The visitor's questions are in the session under KEY: "asks" (id and set: name -> text), and
    "page" (scale and projected).
    """
    _component(
        key=KEY,
        data=messages.pack(headline.header(VIEW, data, seen), b""),
        default={"page": None, "asks": None},
        on_page_change=lambda: None,
        on_asks_change=lambda: None,
    )
