"""The style of the page around a room, for what Streamlit has no setting for."""

from pathlib import Path

from app import languages, streamlit_edge
from app.kit import theme
from app.shell import words
from app.transport import edited

CSS = Path(streamlit_edge.__file__).with_name("page.css")


def page_style() -> str:
    """As an element of the page, with the words and colours that it has from here."""
    return _style(languages.current())


@edited.cached_by
def _style(language: str) -> str:
    given = {
        "keys": f'"{words.TEXT_KEYS}"',
        "panel-light": theme.LIGHT["panel"],
        "panel-dark": theme.DARK["panel"],
        "page-light": theme.LIGHT["background"],
        "page-dark": theme.DARK["background"],
        "query-light": theme.LIGHT["query"],
        "query-dark": theme.DARK["query"],
    }
    variables = "".join(f"--{name}: {value}; " for name, value in given.items())
    return f"<style>html {{ {variables}}}\n{CSS.read_text(encoding='utf-8')}</style>"
