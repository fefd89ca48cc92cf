"""Charts on the page: figures that are loaded when the first is drawn."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from app.streamlit_edge import collection


@cache
def figures(name: str) -> Any:
    """A module of figures. Plotly comes with the first one, and is then kept out of the collection after every run."""
    module = import_module(name)
    collection.keep_out()
    return module
