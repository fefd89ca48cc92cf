"""Colours, in one place: the components get them as data, the page as style.

A query is always orange and a key always blue. Weights have one sequential ramp, five stops from 0 to 1; on a dark page
it has its own stops, so that more weight is always further from the background.
"""

from typing import TypedDict


class Palette(TypedDict):
    """One page colour scheme, every colour as #rrggbb."""

    background: str
    panel: str
    ink: str  # text
    mute: str  # secondary text, still 4.5 : 1 on the background
    line: str
    query: str
    key: str
    proof: str  # what has been checked
    ramp: tuple[str, str, str, str, str]
    ahead: tuple[str, str, str, str, str]  # the other side of 0, for numbers that have a sign
    hatch: str  # the lines over masked cells
    heads: tuple[str, str, str, str, str, str]  # where several are drawn; dashes tell the rest apart


LIGHT = Palette(
    background="#fcfcfa",
    panel="#ffffff",
    ink="#14181f",
    mute="#5c6673",
    line="#e3e5e8",
    query="#b45309",
    key="#1d4ed8",
    proof="#0f766e",
    ramp=("#f4f5f7", "#cfe0f2", "#7fb0dc", "#2f74b5", "#0b2f5c"),
    ahead=("#f4f5f7", "#e6d6ee", "#bf94d1", "#86479c", "#42145a"),
    hatch="#c3c8cf",
    heads=("#0a8582", "#4416b2", "#ee0063", "#4f6900", "#a265d0", "#5a0f2e"),
)
DARK = Palette(
    background="#0f1216",
    panel="#161a20",
    ink="#eceff3",
    mute="#9aa5b3",
    line="#2a3038",
    query="#f5a254",
    key="#7aa7ff",
    proof="#4fd1c5",
    ramp=("#161b22", "#12395a", "#1f6fa8", "#57b4e8", "#e9f8ff"),
    ahead=("#161b22", "#3c1c4b", "#7a3c90", "#bd7ed4", "#f9ebff"),
    hatch="#3d4651",
    heads=("#2790aa", "#983bfa", "#f64447", "#ddff63", "#e8baa1", "#39b9ff"),
)
PALETTES = {"light": LIGHT, "dark": DARK}
FONT = '"Source Sans", sans-serif'  # the page's own, for charts
# Hues for what is counted beside each other: parts of memory, of compute, axes of tensors. Query's orange and key's blue are taken.
HUES = {
    "light": {
        "teal": LIGHT["proof"],
        "violet": "#7c3aed",
        "pink": "#be185d",
        "olive": "#4d7c0f",
        "brown": "#92400e",
        "slate": "#475569",
        "grey": "#94a3b8",
    },
    "dark": {
        "teal": DARK["proof"],
        "violet": "#b794f6",
        "pink": "#f687b3",
        "olive": "#a3d977",
        "brown": "#e0a96d",
        "slate": "#94a3b8",
        "grey": "#5b6777",
    },
}
_BATCH = {"light": "#6b7280", "dark": "#9ca3af"}
AXES = {  # of tensors, beside query and key, which have theirs above; a position is both, so it has the ink
    name: {
        "batch": _BATCH[name],
        "head": hue["violet"],
        "d_model": hue["teal"],
        "d_head": hue["pink"],
        "d_ff": hue["olive"],
        "vocab": hue["brown"],
    }
    for name, hue in HUES.items()
}


def variables(selector: str = ":root") -> str:
    """The single colours as variables of a style that stands alone, dark where the reader's screen is."""
    light, dark = (
        f"{selector}{{{''.join(f'--{name}:{colour};' for name, colour in palette.items() if isinstance(colour, str))}}}"
        for palette in (LIGHT, DARK)
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
