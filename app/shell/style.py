"""The style of the page around a room, for what Streamlit has no setting for."""

from pathlib import Path

from app import streamlit_edge
from app.kit import theme
from app.shell import words

CSS = Path(streamlit_edge.__file__).with_name("page.css").read_text(encoding="utf-8")
GIVEN = {
    "keys": f'"{words.TEXT_KEYS}"',
    "panel-light": theme.LIGHT["panel"],
    "panel-dark": theme.DARK["panel"],
    "page-light": theme.LIGHT["background"],
    "page-dark": theme.DARK["background"],
}
GIVEN_STYLE = "".join(f"--{name}: {value}; " for name, value in GIVEN.items())
PAGE_STYLE = f"<style>html {{ {GIVEN_STYLE}}}\n{CSS}</style>"
