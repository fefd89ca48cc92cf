"""show(): a run in a notebook's cell. A frame that holds the whole page, or with anywidget a live one; a still where neither may be."""

from __future__ import annotations

from html import escape
from typing import Any

from app.notebook import words
from app.notebook.page import KEY, MOST, Placed, check_room, placed
from core.errors import HeadlightError
from core.service import one_run
from core.trace import Trace

LEAST_HEIGHT, MOST_HEIGHT = 200, 4000  # pixels
# A host that takes the frame away, as previews of notebooks do, leaves the still; where there is a frame, the still is out of sight.
HIDES = "<style>.headlight-cell:has(> iframe) > .headlight-still { display: none; }</style>"


class View:
    """A run in a cell, which draws itself where it is the cell's last value. layer, head and query are what it opened on."""

    def __init__(self, run: Trace, place: Placed, height: int) -> None:
        self.run = run
        self.layer, self.head, self.query = place.layer, place.head, place.query
        self.page = place.page
        self.html = cell(place, height)

    def __repr__(self) -> str:
        return f"<View of layer {self.layer}, head {self.head}, query {self.query} of {self.run!r}>"

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/html": self.html, "text/plain": repr(self)}


def show(
    run: Trace, layer: int | None, head: int | None, query: int | None, room: str, height: int
) -> View | Any:  # any: a widget of anywidget, whose class is made where there is one
    """Trace.show(): see there. Live where there are anywidget and a kernel, and else the page alone."""
    check_room(room)
    if isinstance(height, bool) or not isinstance(height, int) or not LEAST_HEIGHT <= height <= MOST_HEIGHT:
        raise HeadlightError(words.HEIGHT.format(asked=repr(height)[:60], least=LEAST_HEIGHT, most=MOST_HEIGHT))
    place = placed(one_run(run, KEY, MOST), layer, head, query)
    if has_kernel():
        from app.notebook import widget

        if (live := widget.live(run, place, height)) is not None:
            return live
    return View(run, place, height)


def has_kernel() -> bool:
    """Whether this runs in a kernel of Jupyter's that can show widgets. Colab shows none until it is told to: there it is the page."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel") and not type(shell).__module__.startswith("google.colab")


def cell(place: Placed, height: int, widget: str = "") -> str:
    """The frame, and the still that is there without it. `widget` names the widget that the frame belongs to, for its browser half."""
    said = "".join(f' {name}="{escape(value)}"' for name, value in attributes(place.title, height).items())
    said += f' data-headlight="{escape(widget)}"' if widget else ""
    return (
        f'<div class="headlight-cell">{HIDES}<div class="headlight-still">{place.still}</div>'
        f'<iframe{said} srcdoc="{escape(place.page)}"></iframe></div>'
    )


def attributes(title: str, height: int) -> dict[str, str]:
    """Of the frame: its page runs its own script and may save files, and reaches nothing of the notebook."""
    return {
        "title": words.FRAME.format(title=title),
        "sandbox": "allow-scripts allow-downloads",
        "style": f"width: 100%; height: {height}px; border: 0;",
    }
