"""A Plotly figure in the making, and the layout, colours and ticks that all charts share."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go

from app import languages
from app.kit import numbers
from app.kit.theme import FONT, HUES, PALETTES

LENGTHS = ("size", "width", "height", "standoff", "xshift", "yshift", "l", "r", "t", "b")  # all in pixels


class FigureDraft:
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

    def add_covered(self, theme: Theme, text: str, **where: Any) -> None:
        """A sign in place of what a lesson asks for."""
        teal = COLOURS[theme]["teal"]
        self.add_annotation(
            text=f"<b>{text}</b>",
            showarrow=False,
            font={"size": 18, "color": teal},
            bordercolor=teal,
            borderwidth=2,
            borderpad=4,
            bgcolor=PALETTES[theme]["background"],
            **where,
        )

    def figure(self, scale: float = 1.0) -> go.Figure:
        """The figure, its type, lines and margins `scale` times as large."""
        plain = {"data": self.data, "layout": self.layout | separators()}
        return go.Figure(plain if scale == 1 else _scaled(plain, scale))


def separators() -> dict[str, str]:
    """How the layout of a figure says which signs its numbers have, on axes and where one points; Plotly's own are those of English."""
    signs = languages.decimal(".") + languages.decimal(",")
    return {} if signs == ".," else {"separators": signs}


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


Theme = Literal["light", "dark"]

COLOURS: dict[Theme, dict[str, str]] = {"light": HUES["light"], "dark": HUES["dark"]}
KIBI = 1024
ASKED = "?"  # in place of something that a lesson asks for


def layout(figure: FigureDraft, theme: Theme, height: int = 380) -> None:
    """What every chart of the two views shares."""
    palette = PALETTES[theme]
    figure.update_layout(
        template="none",
        paper_bgcolor=palette["background"],
        plot_bgcolor=palette["background"],
        font={"color": palette["ink"], "size": 16, "family": FONT},
        hoverlabel={"bgcolor": palette["panel"], "font": {"color": palette["ink"], "size": 16, "family": FONT}},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 10, "r": 20, "t": 10, "b": 10},
        height=height,
        dragmode=False,
    )
    axis = {
        "gridcolor": palette["line"],
        "zeroline": False,
        "automargin": True,
        "linecolor": palette["line"],
        "title": {"standoff": 8, "font": {"color": palette["mute"], "size": 15}},
    }
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)


def byte_ticks(largest: float, *, parts: int = 5) -> dict[str, Any]:
    """A linear axis of bytes with ticks at round numbers of a binary unit."""
    unit, by = "B", 1
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if largest < 2 * by * KIBI:
            break
        unit, by = larger, by * KIBI
    rough = max(largest / by / parts, 1e-9)
    scale = 10 ** (len(str(int(rough))) - 1) if rough >= 1 else 0.1
    step = next((s * scale for s in (1, 2, 5, 10) if s * scale >= rough), rough)
    values = [i * step for i in range(int(largest / by / step) + 2)]
    return {"tickvals": [v * by for v in values], "ticktext": [languages.decimal(f"{v:,.4g} {unit}") for v in values]}


def log_byte_ticks(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis of bytes: every binary unit, and 16 and 128 of it where there is room."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    inner = (1, 16, 128) if high / low < KIBI**2 else (1, 32) if high / low < KIBI**3 else (1,)
    shown = [(m * KIBI**i, f"{m} {unit}") for i, unit in enumerate(units) for m in inner]
    kept = [(value, label) for value, label in shown if low / 2 <= value <= high * 2]
    return {"type": "log", "tickvals": [v for v, _ in kept], "ticktext": [label for _, label in kept]}


def length_ticks(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis of tokens, marked at powers of four."""
    marks = [4**i for i in range(1, 10) if low / 1.2 <= 4**i <= high * 1.2]
    return {"type": "log", "tickvals": marks, "ticktext": [numbers.whole(n) for n in marks]}
