"""The live cell: a widget of anywidget whose choices are traits, and which runs other texts in the kernel."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from app.notebook import words
from app.notebook.cell import cell
from app.notebook.page import KEY, MOST, Placed, check_place, placed
from core.errors import HeadlightError
from core.service import one_run
from core.trace import Trace, trace

SCRIPT = Path(__file__).with_name("browser") / "widget.js"
PLACE = ("site", "layer", "head", "query")


def live(run: Trace, place: Placed, height: int) -> Any | None:
    """The widget of a run; None where anywidget is not installed."""
    return _class()(run, place, height) if find_spec("anywidget") else None


@cache
def _class() -> type:
    """Made when it is asked for: anywidget is an extra."""
    import anywidget
    import traitlets

    class NotThere(HeadlightError, traitlets.TraitError):
        """A value that a trait does not take."""

    class LiveView(anywidget.AnyWidget):
        """A run in a cell. site, layer, head and query are what is chosen, by hand or from Python, and text is what was run:

            view = run.show()
            view.observe(lambda change: print(change.new), names="head")
            view.head = 3
            view.text = "Another sentence."  # the same model reads it; view.run is then its run

        A place or a text that is refused raises Refused, and all stays as it was.
        """

        _esm = SCRIPT.read_text(encoding="utf-8")
        site = traitlets.Unicode().tag(sync=True)
        layer = traitlets.Int().tag(sync=True)
        head = traitlets.Int().tag(sync=True)
        query = traitlets.Int(None, allow_none=True).tag(sync=True)
        text = traitlets.Unicode().tag(sync=True)
        can_run = traitlets.Bool().tag(sync=True)
        name = traitlets.Unicode().tag(sync=True)  # by which it finds its frames
        picture = traitlets.Bytes().tag(sync=True)  # the last run of another text; empty until there is one
        words = traitlets.Dict().tag(sync=True)  # of its box

        def __init__(self, run: Trace, place: Placed, height: int) -> None:
            self.run, self._place, self._height, self._runs = run, place, height, 0
            can_run = run.target is None and run.texts == 1 and run.spec.source != "weights"
            where = {name: getattr(place, name) for name in PLACE}
            super().__init__(text=run.source.text, can_run=can_run, name=uuid4().hex, words=words.WIDGET, **where)
            self.on_msg(self._hear)

        @traitlets.validate("layer", "head", "query")
        def _is_there(self, proposal: Any) -> int | None:
            asked = proposal["value"]
            try:
                return (
                    asked if asked is None else check_place(self._place.one, self.site, proposal["trait"].name, asked)
                )
            except HeadlightError as refusal:
                raise NotThere(str(refusal)) from None

        @traitlets.validate("site")
        def _is_kind(self, proposal: Any) -> str:
            known = [site.id for site in self._place.one.facts.sites]
            if proposal["value"] not in known:
                raise NotThere(words.SITE.format(asked=proposal["value"][:20], allowed=", ".join(known)))
            return proposal["value"]

        @traitlets.validate("text")
        def _ran(self, proposal: Any) -> str:
            if proposal["value"] != self.run.source.text:
                try:
                    self._run(proposal["value"])
                except HeadlightError as refusal:
                    raise NotThere(str(refusal)) from None
            return proposal["value"]

        def _run(self, text: str) -> None:
            """Another text in the same head; its query is where that head is read first."""
            if not self.can_run:
                raise HeadlightError(words.NO_OTHER_TEXT)
            run = trace(self.run.loaded, text, interventions=self.run.interventions)
            self._runs += 1
            place = placed(one_run(run, f"{KEY}{self._runs}", MOST), self.layer, self.head)
            self.run, self._place = run, place
            with self.hold_sync():
                self.query, self.picture = place.query, place.message

        def _hear(self, _: Any, said: Any, __: Any) -> None:
            """A text from the box of the cell. What is refused is a sentence there."""
            text = said.get("run") if isinstance(said, dict) else None
            if not isinstance(text, str):
                return
            sentence = words.FAILED
            try:
                self.text = text
                sentence = ""
            except HeadlightError as refusal:
                sentence = str(refusal)
            finally:
                self.send({"sentence": sentence})

        @property
        def html(self) -> str:
            """The page alone, which nothing connects to the kernel."""
            return cell(self._place, self._height)

        def _ipython_display_(self) -> None:
            """The page, and after it the widget, as two outputs: a reader without the kernel, who can draw no widget, has the page."""
            from IPython.display import HTML, display

            display(HTML(cell(self._place, self._height, self.name)))
            made = self._repr_mimebundle_()
            bundle, more = made if isinstance(made, tuple) else (made or {}, {})
            display(bundle, metadata=more, raw=True)

    return LiveView
