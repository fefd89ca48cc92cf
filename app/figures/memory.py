"""Pictures of what a model holds, pure: a plan's numbers in, a Plotly figure out, template and colours given outright."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import log10
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go

from app import memory_words as words
from app.figures.sketch import Sketch
from app.memory_run import Measured
from app.memory_tables import both
from app.theme import FONT, PALETTES
from core.planner.saved import Attention

Theme = Literal["light", "dark"]

# Query's orange and key's blue are taken; these stay what they are in both views.
COLOURS: dict[Theme, dict[str, str]] = {
    "light": {
        "teal": "#0f766e",
        "violet": "#7c3aed",
        "pink": "#be185d",
        "olive": "#4d7c0f",
        "brown": "#92400e",
        "slate": "#475569",
        "grey": "#94a3b8",
    },
    "dark": {
        "teal": "#4fd1c5",
        "violet": "#a78bfa",
        "pink": "#f472b6",
        "olive": "#a3e635",
        "brown": "#d6a77a",
        "slate": "#94a3b8",
        "grey": "#5b6777",
    },
}
COMPONENT_COLOURS = {
    "weights": "teal",
    "masters": "brown",
    "gradients": "violet",
    "optimizer": "pink",
    "activations": "olive",
    "kv_cache": "slate",
    "transient": "grey",
}
PATTERNS = {"masters": "/", "kv_cache": "x", "transient": "\\"}
WAY_LINES = {"eager": ("pink", "solid"), "efficient": ("violet", "dash"), "flash": ("teal", "dot")}
KIBI = 1024
HATCHES = ("/", "x", "\\", "+", ".", "-", "|")
VISIBLE = 0.005  # of the longer bar: what is smaller needs no name in the legend
WIDTH, LETTER = 480, 8  # pixels: of the longer bar at the least, and of a letter on it


def layout(figure: Sketch, theme: Theme, height: int = 380) -> None:
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
    return {"tickvals": [v * by for v in values], "ticktext": [f"{v:,.4g} {unit}" for v in values]}


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
    return {"type": "log", "tickvals": marks, "ticktext": [f"{n:,}" for n in marks]}


def bars(parts: dict[Attention, dict[str, int]], chosen: str, theme: Theme = "light", scale: float = 1.0) -> go.Figure:
    """A bar for each way of attention, stacked by component; x is bytes."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    ways = list(parts)
    totals = {way: sum(parts[way].values()) for way in ways}
    largest = max(totals.values())
    figure = Sketch()
    for name in next(iter(parts.values())):
        values = [parts[way][name] for way in ways]
        label = words.COMPONENTS[name][0]
        figure.add_bar(
            x=values,
            y=ways,
            orientation="h",
            name=label,
            marker={
                "color": colours[COMPONENT_COLOURS[name]],
                "pattern": {"shape": PATTERNS.get(name, ""), "size": 7, "solidity": 0.25},
                "line": {"color": palette["background"], "width": 1},
            },
            customdata=[both(value) for value in values],
            hovertemplate=f"{label}: %{{customdata}}<extra>%{{y}}</extra>",
        )
    for way in ways:
        strong = f"<b>{both(totals[way])}</b>" if way == chosen else both(totals[way])
        figure.add_annotation(x=totals[way], y=way, text=strong, showarrow=False, xanchor="left", xshift=8)
    layout(figure, theme, 300)
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(range=[0, largest * 1.38], title={"text": words.BYTES_AXIS}, **byte_ticks(largest))
    names = [f"<b>{way}</b>" if way == chosen else way for way in ways]
    figure.update_yaxes(autorange="reversed", tickvals=ways, ticktext=names, showgrid=False)
    return figure.figure(scale)


def curves(
    table: pd.DataFrame,
    budgets: Sequence[tuple[str, int]],
    at: int,
    chosen: str,
    *,
    ceiling: int | None = None,
    measured: Measured | None = None,
    theme: Theme = "light",
    scale: float = 1.0,
) -> go.Figure:
    """Bytes in all against source tokens, both logarithmic; lines across are budgets, crosses what was measured here.

    `table` has the columns n, eager, efficient and flash; `at` is the length that the sliders say, `ceiling` the last
    position of a learned table.
    """
    colours, palette = COLOURS[theme], PALETTES[theme]
    lengths = table["n"].tolist()
    figure = Sketch()
    for way, (colour, dash) in WAY_LINES.items():
        values = table[way].tolist()
        figure.add_scatter(
            x=lengths,
            y=values,
            name=way,
            mode="lines",
            line={"color": colours[colour], "dash": dash, "width": 4 if way == chosen else 2},
            customdata=[both(value) for value in values],
            hovertemplate="%{x:,} tokens: %{customdata}<extra>" + way + "</extra>",
        )
    if measured is not None:
        figure.add_scatter(
            x=[point.n for point in measured.points],
            y=[point.measured for point in measured.points],
            name="measured here",
            mode="markers",
            marker={"symbol": "x", "size": 12, "color": palette["ink"], "line": {"width": 1}},
            customdata=[both(point.measured) for point in measured.points],
            hovertemplate="%{x:,} tokens: %{customdata}<extra>measured</extra>",
        )
    seen = [value for way in WAY_LINES for value in table[way]] + [budget for _, budget in budgets]
    seen += [point.measured for point in measured.points] if measured is not None else []
    low, high = min(seen), max(seen)
    for i, (name, budget) in enumerate(budgets):
        figure.add_hline(y=budget, line={"color": palette["mute"], "width": 1, "dash": "longdash"})
        figure.add_annotation(
            x=0.01 + 0.2 * i, xref="paper", y=log10(budget), text=name, showarrow=False, xanchor="left", yanchor="bottom",
            font={"size": 14, "color": palette["mute"]},
        )  # fmt: skip
    figure.add_vline(x=at, line={"color": palette["ink"], "width": 1, "dash": "dot"})
    if ceiling is not None:
        figure.add_vline(x=ceiling, line={"color": palette["mute"], "width": 2})
        figure.add_annotation(
            x=log10(ceiling), y=0, yref="paper", text=words.TABLE_ENDS.format(n=f"{ceiling:,}"), showarrow=False,
            xanchor="left", yanchor="bottom", xshift=4, font={"size": 14, "color": palette["mute"]},
        )  # fmt: skip
    layout(figure, theme, 360)
    start = min(lengths[0], measured.points[0].n) if measured is not None else lengths[0]
    figure.update_xaxes(title={"text": words.LENGTH_AXIS}, **length_ticks(start, lengths[-1]))
    figure.update_yaxes(title={"text": words.TOTAL_AXIS}, **log_byte_ticks(low, high))
    return figure.figure(scale)


def kept(
    groups: Sequence[tuple[str, str | None, int]], terms: dict[str, int], theme: Theme = "light", scale: float = 1.0
) -> go.Figure:
    """Two bars of one layer: the textbook's five terms, and what autograd keeps, with what the terms leave out hatched.

    A part is named inside of it; where there is no room for that, in the legend, unless it is hardly to be seen.
    """
    colours, palette = COLOURS[theme], PALETTES[theme]
    tone = dict(zip(words.TERMS, ("olive", "teal", "pink", "violet", "brown"), strict=True))
    rows = [words.LESSON_ROW, words.KEPT_ROW]
    figure = Sketch()
    counted = {term: n for _, term, n in groups if term}
    largest = max(terms["total"], sum(n for _, _, n in groups))

    def add(label: str, values: list[int], colour: str, pattern: str) -> None:
        texts = [label if value / largest * WIDTH > LETTER * len(label) else "" for value in values]
        seen = max(values) / largest > VISIBLE
        figure.add_bar(
            x=values,
            y=rows,
            orientation="h",
            name=label,
            showlegend=seen and not any(texts),
            marker={
                "color": colour,
                "pattern": {"shape": pattern, "size": 7, "solidity": 0.3},
                "line": {"color": palette["background"], "width": 2},
            },
            text=texts,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": palette["background"] if pattern == "" else palette["ink"], "size": 14},
            constraintext="none",
            customdata=[both(value) for value in values],
            hovertemplate=f"{label}: %{{customdata}}<extra>%{{y}}</extra>",
        )

    for term, label in words.TERMS.items():
        add(label, [terms[term], counted.get(term, 0)], colours[tone[term]], "")
    left_out = [(label, n) for label, term, n in groups if term is None]
    for (label, n), pattern in zip(left_out, itertools.cycle(HATCHES), strict=False):
        add(label, [0, n], palette["hatch"], pattern)
    for row, total in zip(rows, (terms["total"], sum(n for _, _, n in groups)), strict=True):
        figure.add_annotation(x=total, y=row, text=both(total), showarrow=False, xanchor="left", xshift=8)
    layout(figure, theme, 280)
    figure.update_layout(barmode="stack", bargap=0.4)
    figure.update_xaxes(range=[0, largest * 1.3], title={"text": words.BYTES_AXIS}, **byte_ticks(largest))
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure.figure(scale)


def cache(table: pd.DataFrame, theme: Theme = "light", scale: float = 1.0) -> go.Figure:
    """Bytes of the cache against the tokens so far: every head its own, this model's, one for all."""
    colours = COLOURS[theme]
    figure = Sketch()
    lengths = table["n"].tolist()
    lines = {"mha": ("pink", "dash", 2), "own": ("teal", "solid", 4), "mqa": ("violet", "dot", 2)}
    for name, (colour, dash, width) in lines.items():
        values = table[name].tolist()
        figure.add_scatter(
            x=lengths,
            y=values,
            name=words.CACHE_LINES[name],
            mode="lines",
            line={"color": colours[colour], "dash": dash, "width": width},
            customdata=[both(value) for value in values],
            hovertemplate="%{x:,} tokens: %{customdata}<extra></extra>",
        )
    layout(figure, theme, 340)
    largest = float(table[list(lines)].to_numpy().max())
    figure.update_xaxes(title={"text": words.CACHE_AXIS}, rangemode="tozero")
    figure.update_yaxes(title={"text": words.CACHE_BYTES}, range=[0, largest * 1.06], **byte_ticks(largest))
    return figure.figure(scale)
