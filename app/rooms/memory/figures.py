"""Pictures of what a model holds, pure: a plan's numbers in, a Plotly figure out, template and colours given outright."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import log10

import pandas as pd
import plotly.graph_objects as go

from app.kit import figure as kit_figure
from app.kit.figure import FigureDraft
from app.kit.numbers import MIB, both, size, whole
from app.kit.theme import PALETTES
from app.rooms.memory import words
from app.sizes.setup import Setup
from core.plan.live_memory import Measured
from core.plan.workload import Attention

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
HATCHES = ("/", "x", "\\", "+", ".", "-", "|")
VISIBLE = 0.005  # of the longer bar: what is smaller needs no name in the legend
TOTAL_SIZE = 14  # pixels of type
WIDTH, LETTER = 480, 8  # pixels: of the longer bar at the least, and of a letter on it


def bars(
    parts: dict[Attention, dict[str, int]], chosen: str, theme: kit_figure.Theme = "light", scale: float = 1.0
) -> go.Figure:
    """A bar for each way of attention, stacked by component; x is bytes."""
    colours, palette = kit_figure.COLOURS[theme], PALETTES[theme]
    ways = list(parts)
    totals = {way: sum(parts[way].values()) for way in ways}
    largest = max(totals.values())
    figure = FigureDraft()
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
    kit_figure.layout(figure, theme, 320)
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(range=[0, largest * 1.03], title={"text": words.BYTES_AXIS}, **kit_figure.byte_ticks(largest))
    named = [f"{way}<br>{both(totals[way])}" for way in ways]  # beside the bar a total would leave a phone
    names = [f"<b>{name}</b>" if way == chosen else name for way, name in zip(ways, named, strict=True)]
    figure.update_yaxes(
        autorange="reversed", tickvals=ways, ticktext=names, showgrid=False, tickfont={"size": TOTAL_SIZE}
    )
    return figure.figure(scale)


FIT_COLOURS = {"weights": "slate", "kv_cache": "teal", "activations": "teal", "transient": "grey", "lost": "brown"}


def fit(
    table: pd.DataFrame, budget: float, at: int, theme: kit_figure.Theme = "light", scale: float = 1.0
) -> go.Figure:
    """MiB of every part against the tokens, one on the other, both axes linear; the line across is what a model may take.

    `table` has the column n and one for each part, in MiB; `at` are the tokens that are asked about.
    """
    colours, palette = kit_figure.COLOURS[theme], PALETTES[theme]
    figure = FigureDraft()
    lengths = table["n"].tolist()
    for name in (column for column in table.columns if column != "n"):
        values = table[name].tolist()
        figure.add_scatter(
            x=lengths,
            y=values,
            name=words.FIT_PARTS[name],
            mode="lines",
            stackgroup="all",
            line={"width": 0.5, "color": colours[FIT_COLOURS.get(name, COMPONENT_COLOURS.get(name, "grey"))]},
            customdata=[size(round(value * MIB)) for value in values],
            hovertemplate="%{x:,} tokens: %{customdata}<extra>" + words.FIT_PARTS[name] + "</extra>",
        )
    most = max(float(table.drop(columns="n").sum(axis=1).max()), 1e-6)
    if budget <= 1.6 * most:
        figure.add_hline(y=budget, line={"color": palette["ink"], "width": 3})
    figure.add_vline(x=at, line={"color": palette["ink"], "width": 1, "dash": "dot"})
    kit_figure.layout(figure, theme, 340)
    figure.update_xaxes(title={"text": words.LENGTH_AXIS}, rangemode="tozero")
    figure.update_yaxes(title={"text": "MiB"}, rangemode="tozero")
    return figure.figure(scale)


def curves(
    table: pd.DataFrame,
    setup: Setup,
    budgets: Sequence[tuple[str, int]],
    measured: Measured | None = None,
    theme: kit_figure.Theme = "light",
    scale: float = 1.0,
) -> go.Figure:
    """Bytes in all against source tokens, both logarithmic; lines across are budgets, crosses what was measured here.

    `table` has the columns n, eager, efficient, flash and scores, of `setup` at other lengths than its own. A learned table of
    positions ends somewhere, which has a line too. Where the table has no number a line ends, and a sign asks for the rest.
    """
    ceiling = setup.config.longest_text
    colours, palette = kit_figure.COLOURS[theme], PALETTES[theme]
    lengths = table["n"].tolist()
    figure = FigureDraft()
    for way, (colour, dash) in WAY_LINES.items():
        values = table[way].dropna().tolist()
        figure.add_scatter(
            x=lengths[: len(values)],
            y=values,
            name=way,
            mode="lines",
            line={"color": colours[colour], "dash": dash, "width": 4 if way == setup.attention else 2},
            customdata=[both(value) for value in values],
            hovertemplate="%{x:,} tokens: %{customdata}<extra>" + way + "</extra>",
        )
    scores = table["scores"].dropna().tolist()
    figure.add_scatter(
        x=lengths[: len(scores)],
        y=scores,
        name=words.SCORES_LINE,
        mode="lines",
        line={"color": colours["slate"], "dash": "dashdot", "width": 2},
        customdata=[both(value) for value in scores],
        hovertemplate="%{x:,} tokens: %{customdata}<extra>" + words.SCORES_LINE + "</extra>",
    )
    if measured is not None:
        if measured.batch != setup.batch:  # what was measured is not of the curves: it has a line of its own to lie on
            figure.add_scatter(
                x=[point.n for point in measured.points],
                y=[point.predicted for point in measured.points],
                name=words.MEASURED_LINE.format(batch=measured.batch),
                mode="lines",
                line={"color": palette["mute"], "width": 2},
                hovertemplate="%{x:,} tokens<extra>" + words.MEASURED_LINE.format(batch=measured.batch) + "</extra>",
            )
        figure.add_scatter(
            x=[point.n for point in measured.points],
            y=[point.measured for point in measured.points],
            name="measured here",
            mode="markers",
            marker={"symbol": "x", "size": 12, "color": palette["ink"], "line": {"width": 1}},
            customdata=[both(point.measured) for point in measured.points],
            hovertemplate="%{x:,} tokens: %{customdata}<extra>measured</extra>",
        )
    seen = [value for way in (*WAY_LINES, "scores") for value in table[way].dropna()] + [
        budget for _, budget in budgets
    ]
    seen += [point.measured for point in measured.points] if measured is not None else []
    low, high = min(seen), max(seen)
    for i, (name, budget) in enumerate(budgets):
        figure.add_hline(y=budget, line={"color": palette["mute"], "width": 1, "dash": "longdash"})
        figure.add_annotation(
            x=0.01 + 0.2 * i, xref="paper", y=log10(budget), text=name, showarrow=False, xanchor="left", yanchor="bottom",
            font={"size": 14, "color": palette["mute"]},
        )  # fmt: skip
    figure.add_vline(x=setup.source_len, line={"color": palette["ink"], "width": 1, "dash": "dot"})
    if ceiling is not None:
        figure.add_vline(x=ceiling, line={"color": palette["mute"], "width": 2})
        figure.add_annotation(
            x=log10(ceiling), y=0, yref="paper", text=words.TABLE_ENDS.format(n=whole(ceiling)), showarrow=False,
            xanchor="left", yanchor="bottom", xshift=4, font={"size": 14, "color": palette["mute"]},
        )  # fmt: skip
    if table.isna().to_numpy().any():
        figure.add_covered(theme, kit_figure.ASKED, x=0.72, xref="paper", y=0.06, yref="paper", yanchor="bottom")
    kit_figure.layout(figure, theme, 320)
    start = min(lengths[0], measured.points[0].n) if measured is not None else lengths[0]
    figure.update_xaxes(title={"text": words.LENGTH_AXIS}, **kit_figure.length_ticks(start, lengths[-1]))
    figure.update_yaxes(title={"text": words.TOTAL_AXIS}, **kit_figure.log_byte_ticks(low, high))
    return figure.figure(scale)


def kept(
    groups: Sequence[tuple[str, str | None, int]],
    terms: dict[str, int],
    theme: kit_figure.Theme = "light",
    scale: float = 1.0,
    covered: str = "",
) -> go.Figure:
    """Two bars of one layer: the textbook's five terms, and what autograd keeps, with what the terms leave out hatched.

    A part is named inside of it; where there is no room for that, in the legend, unless it is hardly to be seen. `covered`: "bar"
    leaves out the last of the five terms and the second bar, "headline" what the second bar has beyond the five.
    """
    colours, palette = kit_figure.COLOURS[theme], PALETTES[theme]
    tone = dict(zip(words.TERMS, ("olive", "teal", "pink", "violet", "brown"), strict=True))
    rows = [words.LESSON_ROW, words.KEPT_ROW]
    shown = rows[:1] if covered == "bar" else rows
    figure = FigureDraft()
    counted = {term: n for _, term, n in groups if term}
    largest = max(terms["total"], sum(n for _, _, n in groups))

    def add(label: str, values: list[int], colour: str, pattern: str) -> None:
        texts = [label if value / largest * WIDTH > LETTER * len(label) else "" for value in values]
        seen = max(values) / largest > VISIBLE
        figure.add_bar(
            x=values[: len(shown)],
            y=shown,
            orientation="h",
            name=label,
            showlegend=seen and not any(texts),
            marker={
                "color": colour,
                "pattern": {"shape": pattern, "size": 7, "solidity": 0.3},
                "line": {"color": palette["background"], "width": 2},
            },
            text=texts[: len(shown)],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": palette["background"] if pattern == "" else palette["ink"], "size": 14},
            constraintext="none",
            customdata=[both(value) for value in values[: len(shown)]],
            hovertemplate=f"{label}: %{{customdata}}<extra>%{{y}}</extra>",
        )

    *first, (last, hidden) = words.TERMS.items()
    for term, label in first if covered == "bar" else [*first, (last, hidden)]:
        add(label, [terms[term], counted.get(term, 0)], colours[tone[term]], "")
    left_out = [] if covered else [(label, n) for label, term, n in groups if term is None]
    for (label, n), pattern in zip(left_out, itertools.cycle(HATCHES), strict=False):
        add(label, [0, n], palette["hatch"], pattern)
    totals = (terms["total"], sum(n for _, _, n in groups))
    named = [f"{row}<br>{both(total)}" for row, total in zip(shown, totals, strict=False)]
    if covered == "headline":
        named[1] = f"{words.KEPT_ROW}<br>{kit_figure.ASKED}"
    if covered:  # beside what is there, wherever that would end
        beside = terms["total"] - terms[last] if covered == "bar" else sum(counted.values())
        text = f"{hidden} {kit_figure.ASKED}" if covered == "bar" else kit_figure.ASKED
        figure.add_covered(theme, text, x=beside, y=shown[-1], xanchor="left", xshift=12)
        largest = beside * 1.6
    kit_figure.layout(figure, theme, 280)
    figure.update_layout(barmode="stack", bargap=0.4)
    figure.update_xaxes(range=[0, largest * 1.03], title={"text": words.BYTES_AXIS}, **kit_figure.byte_ticks(largest))
    figure.update_yaxes(
        autorange="reversed", tickvals=shown, ticktext=named, showgrid=False, tickfont={"size": TOTAL_SIZE}
    )
    return figure.figure(scale)


def cache(table: pd.DataFrame, theme: kit_figure.Theme = "light", scale: float = 1.0, covered: str = "") -> go.Figure:
    """Bytes of the cache against the tokens so far: every head its own, this model's, one for all. `covered`: without their names."""
    colours = kit_figure.COLOURS[theme]
    figure = FigureDraft()
    lengths = table["n"].tolist()
    lines = {"mha": ("pink", "dash", 2), "own": ("teal", "solid", 4), "mqa": ("violet", "dot", 2)}
    for name, (colour, dash, width) in lines.items():
        values = table[name].tolist()
        figure.add_scatter(
            x=lengths,
            y=values,
            name=words.CACHE_LINES[name],
            showlegend=not covered,
            mode="lines",
            line={"color": colours[colour], "dash": dash, "width": width},
            customdata=[both(value) for value in values],
            hovertemplate="%{x:,} tokens: %{customdata}<extra></extra>",
        )
    kit_figure.layout(figure, theme, 340)
    largest = float(table[list(lines)].to_numpy().max())
    figure.update_xaxes(title={"text": words.CACHE_AXIS}, rangemode="tozero")
    figure.update_yaxes(title={"text": words.CACHE_BYTES}, range=[0, largest * 1.06], **kit_figure.byte_ticks(largest))
    return figure.figure(scale)
