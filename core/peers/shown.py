"""Return value of the peers' functions: a picture with HTML in .data, and its run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..errors import HeadlightError
from ..run.from_attentions import not_drawn
from ..run.trace_record import still
from ..trace import Trace

ACTIONS = ("view", "return")


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A picture and its run, for run.attention, core.findings(run) and everything else that takes a run."""

    data: str  # HTML
    run: Trace | None = None

    def _repr_html_(self) -> str:
        return self.data

    def __html__(self) -> str:
        return self.data

    def __str__(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"<Shown {len(self.data):,} characters of HTML{'' if self.run is None else f', {self.run!r}'}>"


def picture(run: Trace, layer: int, head: int, remarks: Sequence[str]) -> Shown:
    """The run's page opened on a head, or a still of it if there is no page, with the remarks below.

    Raises Refused for a layer or a head that does not exist.
    """
    record = next((record for record in run.attention if record.layer == layer), None)
    if record is None:
        layers = sorted({record.layer or 0 for record in run.attention})
        raise HeadlightError(f"There is no layer {layer}: these weights are of the layers {layers[0]} to {layers[-1]}.")
    if not 0 <= head < record.n_heads:
        raise HeadlightError(f"There is no head {head} in layer {layer}: it has the heads 0 to {record.n_heads - 1}.")
    page, why = _page(run, layer, head)
    return Shown(page + below([*run.warnings, *why, *remarks]), run)


def below(lines: Sequence[str]) -> str:
    """Lines of small print."""
    return "".join(f'<p style="margin:0.3em 0;font-size:0.82rem;opacity:0.8">{escape(line)}</p>' for line in lines)


def _page(run: Trace, layer: int, head: int) -> tuple[str, tuple[str, ...]]:
    """The page in a frame; or a still, if the app is not installed or cannot draw the numbers, with the reason."""
    why: tuple[str, ...] = ()
    if not not_drawn(run):
        try:
            return str(run.show(layer=layer, head=head).html), why
        except HeadlightError as refusal:
            why = (str(refusal),)
    record = next(record for record in run.attention if record.layer == layer)
    queries, keys = run.tokens_of(record)
    return still(repr(run).partition("\n")[0].strip("<>"), record, head, queries.labels, keys.labels), why


def returned(shown: Shown, html_action: str) -> Shown | None:
    """Display the picture ("view") or return it ("return", and also "view" outside of a notebook).

    Raises Refused for another html_action.
    """
    if html_action not in ACTIONS:
        raise HeadlightError(f"html_action is 'view' or 'return', not {html_action!r}.")
    notebook: Any = sys.modules.get("IPython")
    if html_action == "return" or notebook is None or notebook.get_ipython() is None:
        return shown
    notebook.display.display(shown)
    return None
