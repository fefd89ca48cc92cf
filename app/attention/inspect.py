"""The map on the screen as a Plotly heat map, with Plotly's own zoom, pan, hover and export."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from app.attention import selection as attention_selection
from app.attention import words
from app.export import files
from app.kit import numbers
from app.kit.figure import separators
from app.kit.theme import FONT, PALETTES
from core.errors import HeadlightError
from core.service import Facts

MOST = 512 * 512  # cells; above, Plotly takes seconds for every step
LONGEST = 12  # letters of a label on an axis; the hover has all of them
TICKS = 48  # labels on an axis; more would lie over each other
SIDE = 470  # pixels: with its caption it fits a laptop's screen
LOWEST = 1e-4  # of its top: where the logarithmic scale begins, as on the map


def check_size(run: Facts, selection: attention_selection.Selection, most: int = MOST) -> None:
    """Raises Refused, with both numbers, for more than `most` cells."""
    (q0, q1), (k0, k1) = attention_selection.region(run, selection)
    if (q1 - q0) * (k1 - k0) > most:
        side = int(most**0.5)
        raise HeadlightError(numbers.filled(words.INSPECT_TOO_LONG, most=side, rows=q1 - q0, columns=k1 - k0))


def heatmap(
    found: files.Numbers, selection: attention_selection.Selection, theme: Literal["light", "dark"] = "light"
) -> go.Figure:
    """Query down, key across, values [query, key] as selection.numbers gives them; masked cells are left empty.

    Ticks are positions with the tokens as their text, so that two equal tokens stay two. Template and colours are given
    outright: Streamlit's default template has placeholders, which an export draws black.
    """
    values = np.where(found.codes > 0, np.nan, found.values.astype(np.float64))
    shown, low, high = _coloured(values, selection)
    palette = PALETTES[theme]
    ramp = [[i / (len(palette["ramp"]) - 1), colour] for i, colour in enumerate(palette["ramp"])]
    bar: dict[str, Any] = {"title": {"text": words.INSPECT_BARS[_bar(selection)], "side": "right"}, "thickness": 12}
    if selection.scale == "log":
        ticks = np.linspace(low, high, 5)
        bar |= {"tickvals": ticks.tolist(), "ticktext": [numbers.digits(10**tick, 3) for tick in ticks]}
    queries, keys = found.queries, found.keys
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=np.arange(len(keys)),
            y=np.arange(len(queries)),
            zmin=low,
            zmax=high,
            colorscale=ramp,
            colorbar=bar,
            xgap=1 if len(keys) <= 64 else 0,
            ygap=1 if len(queries) <= 64 else 0,
            customdata=values,
            text=[[html.escape(f"{query} → {key}", quote=False) for key in keys] for query in queries],
            hovertemplate="%{text}<br>%{customdata:.6f}<extra></extra>",
            hoverongaps=False,
        )
    )
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False}
    figure.update_layout(separators())
    figure.update_layout(
        template="plotly_white" if theme == "light" else "plotly_dark",
        paper_bgcolor=palette["background"],
        plot_bgcolor=palette["background"],
        font={"color": palette["ink"], "size": 14, "family": FONT},
        hoverlabel={"font": {"family": FONT}},
        xaxis=axis
        | _ticks(keys)
        | {"side": "top", "tickangle": -60, "title": _title(words.INSPECT_KEY, palette["key"])},
        yaxis=axis
        | _ticks(queries)
        | {"autorange": "reversed", "title": _title(words.INSPECT_QUERY, palette["query"])},
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        width=SIDE * 1.35,  # fixed, since a plot that keeps its cells square jumps while one zooms
        height=SIDE,
    )
    return figure


def _coloured(values: np.ndarray, selection: attention_selection.Selection) -> tuple[np.ndarray, float, float]:
    """What is coloured, and the ends of its scale."""
    largest = np.where(np.isnan(values), 0, values)
    if selection.scale == "row":
        rows = largest.max(axis=1, keepdims=True)
        return values / np.where(rows > 0, rows, 1), 0, 1
    top = 1.0 if selection.unit == "weight" else float(largest.max(initial=0)) or 1.0
    low, high = selection.bounds or (0.0, top)
    if selection.scale == "log":
        low = low or high * LOWEST
        return np.log10(np.maximum(values, low)), float(np.log10(low)), float(np.log10(high))
    return values, low, high


def _bar(selection: attention_selection.Selection) -> str:
    return "row" if selection.scale == "row" else selection.unit


def _title(text: str, colour: str) -> dict[str, Any]:
    return {"text": text, "font": {"color": colour, "size": 16}}


def _ticks(labels: Sequence[str]) -> dict[str, Any]:
    every = max(1, -(-len(labels) // TICKS))
    at = range(0, len(labels), every)
    short = [label if len(label) <= LONGEST else label[: LONGEST - 1] + "…" for label in (labels[i] for i in at)]
    # Plotly reads a little markup in its texts, and a token is never markup.
    return {"tickmode": "array", "tickvals": list(at), "ticktext": [html.escape(label, quote=False) for label in short]}
