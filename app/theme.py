"""Colours, in one place: the components get them as data, the page as style.

A query is always orange and a key always blue. Weights have one sequential ramp, five stops from 0 to 1; on a dark page
it has its own stops, so that more weight is always further from the background.
"""

from typing import TypedDict

from app import words


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
AXES = {  # of tensors, beside query and key, which have theirs above; a position is both, so it has the ink
    "light": {
        "batch": "#6b7280",
        "head": "#7c3aed",
        "d_model": "#0f766e",
        "d_head": "#be185d",
        "d_ff": "#4d7c0f",
        "vocab": "#92400e",
    },
    "dark": {
        "batch": "#9ca3af",
        "head": "#b794f6",
        "d_model": "#4fd1c5",
        "d_head": "#f687b3",
        "d_ff": "#a3d977",
        "vocab": "#e0a96d",
    },
}


def working(share: float | None, scheme: str) -> str:
    """A line on top of the words that say how far a run is: as long as what is done, or moving where nobody knows.

    All of it lies over the page: nothing may jump because something takes long.
    """
    palette = PALETTES[scheme]
    length = "" if share is None else f"width: {100 * share:.1f}%; animation: none; "
    line = f'<i style="{length}background: {palette["proof"]}"></i>'
    known = "" if share is None else f' aria-valuenow="{100 * share:.0f}"'
    style = f"<style>.st-key-working {{ background: {palette['panel']}; }}</style>"
    return f'<div class="hl-working" role="progressbar" aria-label="{words.PROGRESS}"{known}>{line}{style}</div>'


# Streamlit leaves room for a tool bar and generous gaps; one picture a screen needs that room. The page's own menu stays
# where it is, on top of ours. Type grows with the window, so that the last row of a class can read it.
PAGE_STYLE = (
    f'<style>html {{ --keys: "{words.TEXT_KEYS}"; --panel-light: {LIGHT["panel"]}; --panel-dark: {DARK["panel"]}; }}'
    """
html { font-size: clamp(15px, min(1.22vw, 2.16vh), 30px); }
[data-testid="stHeader"] { background: transparent; height: 3rem; min-height: 3rem; pointer-events: none; }
[data-testid="stHeader"] div { pointer-events: none; }
[data-testid="stHeader"] div button, [data-testid="stHeader"] div [role="button"] { pointer-events: auto; }
[data-testid="stMainBlockContainer"] { padding: 0.35rem 1.5rem 0.5rem; max-width: none; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: 0.55rem; }
.st-key-bar { border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent); padding-bottom: 0.35rem; align-items: center; }
.st-key-bar h1 { font-size: 1.15rem; font-weight: 700; line-height: 2.2rem; padding: 0; letter-spacing: 0.01em; }
.st-key-bar button, .st-key-bar button:hover {
    border: 0;
    color: inherit;
    background: color-mix(in srgb, currentColor 8%, transparent);
}
.st-key-bar button p { font-weight: 600; }
/* A box of text takes one line of the page. While somebody writes in it, it lies over what is below. */
:is(.st-key-text, .st-key-target) { height: 2.5rem; }
:is(.st-key-text, .st-key-target):focus-within { z-index: 3; }
:is(.st-key-text, .st-key-target) textarea { font-size: 1.1rem; line-height: 1.4; padding: calc(0.48rem - 1px) 0.75rem; min-height: 0; resize: none; }
:is(.st-key-text, .st-key-target) textarea:is(:not(:focus), [data-sent]) { height: calc(2.5rem - 2px); overflow-y: hidden; clip-path: inset(0 0 0.4rem); }
:is(.st-key-text, .st-key-target) [data-testid="InputInstructions"] span { display: none; }
:is(.st-key-text, .st-key-target) [data-testid="InputInstructions"]:has(span)::after { content: var(--keys); }
:is(.st-key-text, .st-key-target) [data-testid="InputInstructions"]:has(span) {
    bottom: auto;
    top: calc(100% - 1px);
    pointer-events: none;
    padding: 0.1rem 0.5rem;
    font-size: 0.93rem;
    background: light-dark(var(--panel-light), var(--panel-dark));
    border-radius: 0 0 0.4rem 0.4rem;
    box-shadow: 0 3px 8px rgb(0 0 0 / 12%);
}
@supports (field-sizing: content) {
    :is(.st-key-text, .st-key-target) textarea:focus:not([data-sent]) { height: auto; max-height: 40vh; field-sizing: content; }
}
.st-key-about, .st-key-training_row { min-height: 0; margin: -0.2rem 0; }
:is(.st-key-about, .st-key-training_row) :is([data-testid="stText"], button p) { font-size: 0.93rem; }
:is(.st-key-about, .st-key-training_row) [data-testid="stText"] { color: color-mix(in srgb, currentColor 78%, transparent); white-space: normal; }
:is(.st-key-about, .st-key-training_row) button { min-height: 0; padding-top: 0; padding-bottom: 0; }
[data-testid="stElementContainer"]:has(> [data-testid="stHtml"] > style) { display: none; }
/* On a phone: the sentence has a line of its own, and what the planner says stands above its sliders. */
@media (max-width: 640px) {
    .st-key-shapes_request > :first-child { flex: 1 1 100%; }
    [data-testid="stHorizontalBlock"]:has(> * :is(.st-key-memory_body, .st-key-compute_body)) { flex-wrap: wrap-reverse; }
}
.st-key-sentences [data-testid="stText"] { border-left: 3px solid #b45309; padding-left: 0.6rem; white-space: normal; }
.st-key-working [data-testid="stElementContainer"]:has(.hl-working) { position: absolute; inset: 0 0 auto; }
.hl-working { height: 4px; overflow: hidden; border-radius: 0.5rem 0.5rem 0 0; }
.hl-working i { display: block; height: 100%; width: 30%; animation: hl-working 1.6s infinite ease-in-out; }
@keyframes hl-working { from { transform: translateX(-100%); } to { transform: translateX(334%); } }
@media (prefers-reduced-motion: reduce) { .hl-working i { animation: none; width: 100%; opacity: 0.5; } }
[data-testid="stLayoutWrapper"]:has(> .st-key-working) { display: contents; }
[data-testid="stLayoutWrapper"]:has(> .st-key-so_far) { display: none; }
[data-testid="stLayoutWrapper"]:has(> .st-key-beneath):not(:has(.st-key-about)) { display: none; }
.st-key-working {
    position: fixed;
    left: 50%;
    bottom: 1rem;
    z-index: 99;
    width: max-content;
    max-width: 94vw;
    translate: -50% 0;
    padding: 0.4rem 0.5rem 0.4rem 1rem;
    border-radius: 0.5rem;
    box-shadow: 0 4px 18px rgb(0 0 0 / 18%);
}
.st-key-explore[data-stale] { opacity: 1 !important; transition: none !important; }
[data-testid="stMain"]:has(.hl-working) :is(.st-key-about, .st-key-shapes) { opacity: 0.45 !important; }
html:not([data-underway]) [data-testid="stMain"]:has(.hl-working) .st-key-explore { opacity: 0.45 !important; }
[data-testid="stApp"]:has(.hl-working) [data-testid="stStatusWidget"]:has([data-testid="stStatusWidgetRunningIcon"]) { display: none; }
html[data-projector] { font-size: clamp(20px, min(1.83vw, 3.25vh), 48px); }
html[data-projector] [data-testid="stMainBlockContainer"] { padding: 0.5rem 1.5rem 0; }
html[data-projector] :is([data-testid="stHeader"], .st-key-bar, .st-key-request, .st-key-about, .st-key-shapes) { display: none; }
html[data-projector] :is(.st-key-shapes_request, .st-key-memory_controls, .st-key-compute_cards_box, .st-key-training_controls, .st-key-training_heads, [class*="st-key-table_"]) { display: none; }
html[data-projector] [data-testid="stColumn"]:has(.st-key-planning) { display: none; }
[data-testid="stMultiSelectTagsContainer"] [role="group"] > * {
    background: color-mix(in srgb, currentColor 12%, transparent);
    color: inherit;
}
[data-testid="stExpander"] summary { padding-top: 0.3rem; padding-bottom: 0.3rem; min-height: 0; }
</style>
"""
)
