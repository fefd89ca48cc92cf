"""A figure in the making: plain dictionaries, checked by Plotly once when all is said; checking each step took four times as long."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

LENGTHS = ("size", "width", "height", "standoff", "xshift", "yshift", "l", "r", "t", "b")  # all in pixels


class Sketch:
    """Gathers what a figure consists of, with the names that Plotly's own Figure has for it."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {"annotations": [], "shapes": [], "xaxis": {}, "yaxis": {}}

    def add_bar(self, **trace: Any) -> None:
        self.data.append({"type": "bar", **trace})

    def add_scatter(self, **trace: Any) -> None:
        self.data.append({"type": "scatter", **trace})

    def add_annotation(self, **said: Any) -> None:
        self.layout["annotations"].append(said)

    def add_vline(self, *, x: float, line: dict[str, Any]) -> None:
        self._add_line(line, x0=x, x1=x, y0=0, y1=1, yref="y domain")

    def add_hline(self, *, y: float, line: dict[str, Any]) -> None:
        self._add_line(line, y0=y, y1=y, x0=0, x1=1, xref="x domain")

    def _add_line(self, line: dict[str, Any], **where: Any) -> None:
        self.layout["shapes"].append({"type": "line", "line": line, **where})

    def update_layout(self, **said: Any) -> None:
        _merge(self.layout, said)

    def update_xaxes(self, **said: Any) -> None:
        _merge(self.layout["xaxis"], said)

    def update_yaxes(self, **said: Any) -> None:
        _merge(self.layout["yaxis"], said)

    def figure(self, scale: float = 1.0) -> go.Figure:
        """The figure, its type, lines and margins `scale` times as large."""
        plain = {"data": self.data, "layout": self.layout}
        return go.Figure(plain if scale == 1 else _scaled(plain, scale))


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            into[name] = dict(into[name])
            _merge(into[name], value)
        else:
            into[name] = value


def _scaled(part: Any, scale: float) -> Any:
    if isinstance(part, dict):
        return {
            name: value * scale if name in LENGTHS and isinstance(value, int | float) else _scaled(value, scale)
            for name, value in part.items()
        }
    return [_scaled(item, scale) for item in part] if isinstance(part, list) else part
