"""How trainings went, beside each other: pure, columns of a curve in, a Plotly figure or a table out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd
import plotly.graph_objects as go

from app import languages
from app.kit import numbers
from app.kit.figure import FigureDraft, Theme, layout
from app.kit.theme import PALETTES
from app.rooms.train.recorded import words

Curve = Mapping[str, Sequence[float]]  # columns step, loss and accuracy, a row for each step
Measure = Literal["loss", "accuracy"]

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
N_POINTS = 120  # of each line, ever wider apart: most of what there is to see happens early
SMALLEST = 1e-7  # loss that curve.json.gz tells from 0
ROWS = (1, 10, 50, 100, 500, 1000)  # steps of the table, and the last


def lines(curves: Mapping[str, Curve], measure: Measure, theme: Theme, scale: float = 1.0) -> go.Figure:
    """A line for each model, told apart by colour and dash."""
    palette = PALETTES[theme]
    figure = FigureDraft()
    for i, (name, curve) in enumerate(curves.items()):
        steps, values = thinned(curve["step"], curve[measure])
        values = [max(value, SMALLEST) if measure == "loss" else 100 * value for value in values]
        figure.add_scatter(
            x=steps,
            y=values,
            name=name,
            mode="lines",
            line={"color": palette["heads"][i % 6], "dash": DASHES[i % 6], "width": 2.5},
            hovertemplate=f"{name}, step %{{x}}: {'%{y:.1f} %' if measure == 'accuracy' else '%{y:.3g}'}<extra></extra>",
        )
    layout(figure, theme, height=350)
    figure.update_xaxes(type="log", dtick=1, title={"text": words.STEP_AXIS})
    figure.update_yaxes(title={"text": words.AXES[measure]})
    if measure == "loss":
        figure.update_yaxes(type="log", dtick=1, exponentformat="power")
    else:
        figure.update_yaxes(range=[0, 102], ticksuffix=" %")
    return figure.figure(scale)


def drawn(curves: Mapping[str, Curve], measure: Measure) -> pd.DataFrame:
    """The points of the lines: a row for each model and step."""
    rows = [
        {"model": name, "step": step, measure: value}
        for name, curve in curves.items()
        for step, value in zip(*thinned(curve["step"], curve[measure]), strict=True)
    ]
    return pd.DataFrame(rows)


def thinned(steps: Sequence[float], values: Sequence[float], n: int = N_POINTS) -> tuple[list[float], list[float]]:
    """About n steps, ever wider apart, each with the mean of the values since the one before it."""
    last, edges = len(steps), {1}
    edges |= {max(1, round(last ** (i / (n - 1)))) for i in range(n)}
    found, start = ([], []), 0
    for stop in sorted(edges):
        part = values[start:stop]
        found[0].append(steps[stop - 1])
        found[1].append(sum(part) / len(part))
        start = stop
    return found


def learnt_at(curve: Curve, share: float, over: int) -> int | None:
    """The step that ends the first `over` steps in a row whose accuracy is at least `share` on average; None if there are none."""
    right = curve["accuracy"]
    total = sum(right[:over])
    for i in range(over, len(right) + 1):
        if total >= share * over - 1e-9:
            return int(curve["step"][i - 1])
        if i < len(right):
            total += right[i] - right[i - over]
    return None


def table(
    curves: Mapping[str, Curve], parameters: Mapping[str, int], measure: Measure, share: float, over: int
) -> pd.DataFrame:
    """A row for each model: how large it is, when it had learnt its task, and the measure at some of the steps."""
    last = min(int(curve["step"][-1]) for curve in curves.values())
    steps = [step for step in ROWS if step < last] + [last]
    rows = []
    for name, curve in curves.items():
        learnt = learnt_at(curve, share, over)
        place = {int(step): i for i, step in enumerate(curve["step"])}
        row: dict[str, object] = {words.COLUMNS["model"]: name, words.COLUMNS["parameters"]: parameters[name]}
        row[words.COLUMNS["learnt"].format(share=numbers.share(share))] = (
            words.COLUMNS["never"] if learnt is None else f"{learnt:,}"  # a file has it too
        )
        for step in steps:
            column = words.AT_STEP.format(
                measure=languages.translated(words.MEASURES[measure]), step=numbers.whole(step)
            )
            row[column] = round(curve[measure][place[step]], 5) if step in place else math.nan
        rows.append(row)
    return pd.DataFrame(rows)
