"""Pictures of what a model computes and moves, pure: a plan's numbers in, a Plotly figure out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from app import languages
from app.kit import numbers
from app.kit.figure import ASKED, COLOURS, FigureDraft, Theme, layout, length_ticks
from app.kit.numbers import both, count
from app.kit.theme import PALETTES
from app.rooms.compute import words
from app.sizes import words as sizes_words
from core.plan import Device, Operation

GROUP_COLOURS = {
    "qkv": "teal",
    "scores": "pink",
    "softmax": "grey",
    "mix": "violet",
    "fused": "pink",
    "o": "brown",
    "mlp": "olive",
    "rest": "slate",
    "embed": "slate",
    "head": "slate",
}
GROUP_PATTERNS = {"softmax": "\\", "rest": "/", "embed": "x", "head": ".", "fused": "+"}


def operations(
    groups: dict[str, tuple[int, int, int]], *, causal: bool, theme: Theme = "light", scale: float = 1.0
) -> go.Figure:
    """Where the FLOPs are and where the bytes are: one bar each, in per cent, split by operation."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    rows = [words.FLOPS_ROW, *([words.USEFUL_ROW] if causal else []), words.TRAFFIC_ROW]
    columns = [0, 1, 2] if causal else [0, 2]
    sums = {column: sum(values[column] for values in groups.values()) or 1 for column in columns}
    figure = FigureDraft()
    for name, values in groups.items():
        label = words.GROUPS[name]
        shares = [100 * values[column] / sums[column] for column in columns]
        figure.add_bar(
            x=shares,
            y=rows,
            orientation="h",
            name=label,
            marker={
                "color": colours[GROUP_COLOURS[name]],
                "pattern": {"shape": GROUP_PATTERNS.get(name, ""), "size": 7, "solidity": 0.25},
                "line": {"color": palette["background"], "width": 1},
            },
            customdata=[both(values[2]) if column == 2 else f"{count(values[column])}FLOP" for column in columns],
            hovertemplate=f"{label}: %{{customdata}}, %{{x:.1f}} %<extra>%{{y}}</extra>",
        )
    layout(figure, theme, 300)
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(range=[0, 100], title={"text": words.FLOPS_AXIS})
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure.figure(scale)


def roofline(
    device: Device,
    steps: Mapping[str, Sequence[Operation]],
    whole: dict[str, tuple[int, int]],
    theme: Theme = "light",
    scale: float = 1.0,
    covered: str = "",
) -> go.Figure:
    """The roof of a device, every operation with a product below it, and each step as a whole (diamonds).

    `whole` is FLOPs and the least traffic of each step. Both axes are logarithmic; y is in TFLOP/s (Williams et al. 2009).
    `covered`: the last of the steps is left out, on axes that are the same.
    """
    colours, palette = COLOURS[theme], PALETTES[theme]
    bandwidth = device.gigabytes_per_second / 1000  # TB/s

    def roof(intensity: float) -> float:
        return min(device.teraflops, intensity * bandwidth)

    marks = {step: [op for op in found if op.flops] for step, found in steps.items()}
    intensities = [op.intensity for found in marks.values() for op in found]
    intensities += [flops / n_bytes for flops, n_bytes in whole.values() if n_bytes]
    low, high = min([0.5, *intensities]) / 1.5, max([device.ridge * 4, *intensities]) * 1.5
    figure = FigureDraft()
    figure.add_scatter(
        x=[low, device.ridge, high],
        y=[roof(low), device.teraflops, device.teraflops],
        name=device.name,
        mode="lines",
        line={"color": palette["ink"], "width": 3},
        hovertemplate="%{x:.3g} FLOPs a byte: %{y:.3g} TFLOP/s<extra></extra>",
    )
    look = {"prefill": ("olive", "circle"), "decode": ("pink", "square-open")}
    if covered:
        marks.popitem()
        figure.add_covered(theme, ASKED, x=0.5, xref="paper", y=0.06, yref="paper", yanchor="bottom")
    for step, found in marks.items():
        if not found:
            continue
        colour, symbol = look[step]
        figure.add_scatter(
            x=[op.intensity for op in found],
            y=[roof(op.intensity) for op in found],
            name=languages.translated(sizes_words.STEPS[step]),
            mode="markers",
            marker={"color": colours[colour], "symbol": symbol, "size": 10, "line": {"width": 2}},
            text=[f"{op.stack} {op.name}".strip() for op in found],
            hovertemplate="%{text}: %{x:.3g} FLOPs a byte<extra></extra>",
        )
        flops, n_bytes = whole[step]
        figure.add_scatter(
            x=[flops / n_bytes],
            y=[roof(flops / n_bytes)],
            name=f"{languages.translated(sizes_words.STEPS[step])}, all of it",
            mode="markers",
            marker={
                "color": colours[colour],
                "symbol": "diamond",
                "size": 18,
                "line": {"color": palette["ink"], "width": 2},
            },
            hovertemplate="%{x:.3g} FLOPs a byte: at most %{y:.3g} TFLOP/s<extra></extra>",
        )
    figure.add_vline(x=device.ridge, line={"color": palette["mute"], "dash": "dot", "width": 1})
    layout(figure, theme, 340)
    figure.update_xaxes(type="log", title={"text": words.ROOF_X}, dtick=1)
    figure.update_yaxes(type="log", title={"text": words.ROOF_Y}, dtick=1)
    return figure.figure(scale)


def rnn(table: pd.DataFrame, at: int, theme: Theme = "light", scale: float = 1.0) -> go.Figure:
    """FLOPs of one layer against its tokens, both logarithmic: an RNN, attention's maps, attention with its projections."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    figure = FigureDraft()
    looks = {"rnn": ("slate", "dash"), "attention": ("pink", "solid"), "whole": ("violet", "dot")}
    lengths = table["n"].tolist()
    for name, (colour, dash) in looks.items():
        figure.add_scatter(
            x=lengths,
            y=table[name].tolist(),
            name=words.RNN_LINES[name],
            mode="lines",
            line={"color": colours[colour], "dash": dash, "width": 3},
            hovertemplate="%{x:,} tokens: %{y:.3s}FLOP<extra></extra>",
        )
    figure.add_vline(x=at, line={"color": palette["ink"], "width": 1, "dash": "dot"})
    layout(figure, theme, 360)
    figure.update_xaxes(title={"text": words.RNN_AXIS}, **length_ticks(lengths[0], lengths[-1]))
    figure.update_yaxes(type="log", title={"text": words.RNN_FLOPS}, dtick=2, exponentformat="power")
    return figure.figure(scale)


def cross(terms: dict[str, dict[str, int]], theme: Theme = "light", scale: float = 1.0, covered: str = "") -> go.Figure:
    """FLOPs of an encoder–decoder by the term that they grow with: the target at once, and word by word. `covered`: how the maps
    grow is not said."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    looks = {"at_once": ("violet", ""), "by_word": ("teal", "/")}
    names = list(words.CROSS_TERMS)
    labels = [words.CROSS_TERMS[name] for name in names]
    if covered:
        labels = [
            f"{label.split(':')[0]}: {ASKED}" if name.endswith("_maps") else label
            for name, label in zip(names, labels, strict=True)
        ]
    figure = FigureDraft()
    for way, (colour, pattern) in looks.items():
        values = [terms[way][name] for name in names]
        figure.add_bar(
            x=values,
            y=labels,
            orientation="h",
            name=words.CROSS_WAYS[way],
            marker={"color": colours[colour], "pattern": {"shape": pattern, "solidity": 0.25}},
            text=[count(value) for value in values],
            textposition="outside",
            textfont={"color": palette["ink"]},
            cliponaxis=False,
            hovertemplate="%{y}: %{text}FLOP<extra></extra>",
        )
    layout(figure, theme, 420)
    largest = max(max(found.values()) for found in terms.values())
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(title={"text": words.CROSS_AXIS}, range=[0, largest * 1.15], exponentformat="power")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure.figure(scale)


def depth(table: pd.DataFrame, own: int, theme: Theme = "light", scale: float = 1.0) -> go.Figure:
    """Parameters against layers, stacked by component."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    looks = {
        "embedding": ("teal", ""),
        "encoder": ("violet", "/"),
        "decoder": ("olive", "\\"),
        "unembed": ("slate", "x"),
    }
    figure = FigureDraft()
    x = [str(n) for n in table["layers"]]
    for name, (colour, pattern) in looks.items():
        values = table[name].tolist()
        if any(values):
            figure.add_bar(
                x=x,
                y=values,
                name=words.PARAMETER_PARTS[name],
                marker={"color": colours[colour], "pattern": {"shape": pattern, "solidity": 0.25}},
                customdata=[numbers.whole(value) for value in values],
                hovertemplate="%{x} layers: %{customdata}<extra>" + words.PARAMETER_PARTS[name] + "</extra>",
            )
    totals = table["parameters"].tolist()
    for i, (label, total) in enumerate(zip(x, totals, strict=True)):
        strong = f"<b>{count(total)}</b>" if label == str(own) else count(total)
        figure.add_annotation(x=i, y=total, text=strong, showarrow=False, yanchor="bottom", font={"size": 13})
    layout(figure, theme, 360)
    figure.update_layout(barmode="stack", bargap=0.3)
    figure.update_xaxes(type="category", title={"text": words.LAYERS_AXIS}, showgrid=False)
    figure.update_yaxes(
        title={"text": words.PARAMETERS_AXIS},
        range=[0, max(totals) * 1.12],
        exponentformat="SI",
        linecolor=palette["background"],
    )
    return figure.figure(scale)


def known(table: pd.DataFrame, theme: Theme = "light", scale: float = 1.0) -> go.Figure:
    """Known models by their exact number of parameters, on a logarithmic axis; the row of this one is filled."""
    colours, palette = COLOURS[theme], PALETTES[theme]
    own = [name == words.YOURS for name in table["model"]]
    figure = FigureDraft()
    figure.add_scatter(
        x=table["parameters"].tolist(),
        y=table["model"].tolist(),
        mode="markers+text",
        marker={
            "color": [colours["pink" if mine else "teal"] for mine in own],
            "symbol": ["diamond" if mine else "circle" for mine in own],
            "size": 11,
        },
        text=[numbers.whole(n) for n in table["parameters"]],
        textposition="middle right",
        textfont={"color": palette["ink"], "size": 13},
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    layout(figure, theme, 560)
    figure.update_layout(showlegend=False, font={"size": 14})
    figure.update_xaxes(type="log", title={"text": words.KNOWN_AXIS}, dtick=1, exponentformat="SI", range=[6.3, 12.7])
    figure.update_yaxes(dtick=1)
    return figure.figure(scale)
