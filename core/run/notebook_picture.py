"""still(): a static picture of one head for notebooks, as HTML with an SVG; without scripts, and with all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from torch import Tensor

from .attention import AttentionRecord

MAX_TOKENS = 48  # along each axis; of a longer text the first ones are shown
LABEL_CHARS = 12
SHADES = 16  # of one colour
BLUE = "#2f74b5"  # of weights on every screen; visible on white and on dark notebooks
PURPLE = "#86479c"  # of negative numbers
MAX_WEIGHT = 1.05  # a weight of 1 after rounding
CELL, LABEL = 14, 92  # pixels


def still(title: str, record: AttentionRecord, head: int, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Weights of one head, queries down and keys across, with the strongest ones in words below. At most 100 kB.

    Numbers that are not weights, because they are below 0 or above 1, are scaled to the largest one; negative ones are purple.
    """
    rows, columns = min(MAX_TOKENS, record.n_query), min(MAX_TOKENS, record.n_key)
    weights = record.pattern(head, range(rows), range(columns))[0].nan_to_num(nan=0.0).cpu()
    more = rows < record.n_query or columns < record.n_key
    what = f"{record.name}, head {head}: {record.n_query:,} queries down, {record.n_key:,} keys across"
    what += f"; the first {rows} and {columns} are shown" if more else ""
    width, height = LABEL + columns * CELL, LABEL + rows * CELL
    marks = [
        *(_label(LABEL - 6, LABEL + i * CELL + CELL - 4, queries[i]) for i in range(rows)),
        *(_label(LABEL + j * CELL + CELL - 4, LABEL - 6, keys[j], turned=True) for j in range(columns)),
        *_cells(weights),
        f'<rect x="{LABEL}" y="{LABEL}" width="{columns * CELL}" height="{rows * CELL}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>',
    ]
    return (
        f'<figure style="margin:0"><figcaption>{escape(title)}<br/>{escape(what)}</figcaption>'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(what)}" font-family="sans-serif" font-size="11" fill="currentColor">{"".join(marks)}</svg>'
        f"<p>{_strongest(weights, queries, keys)}</p>{_table(weights, queries, keys)}</figure>"
    )


def _label(x: int, y: int, label: str, turned: bool = False) -> str:
    short = label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"
    if turned:
        return f'<text transform="translate({x},{y}) rotate(-90)">{escape(short)}</text>'
    return f'<text x="{x}" y="{y}" text-anchor="end">{escape(short)}</text>'


def _cells(weights: Tensor) -> list[str]:
    """One path for each shade, from white for 0 to blue for 1, and to purple for −1."""
    shares = weights / max(1.0, float(weights.abs().max()))
    shades = (shares.abs() * SHADES).ceil().int()
    paths = []
    for colour, side in ((BLUE, shares > 0), (PURPLE, shares < 0)):
        for shade in range(1, SHADES + 1):
            cells = ((shades == shade) & side).nonzero().tolist()
            # Less than half a shade stays white, so that a row of equal weights shows nothing.
            if shade == 1:
                cells = [(i, j) for i, j in cells if abs(shares[i, j]) * SHADES >= 0.5]
            if cells:
                d = "".join(f"M{LABEL + j * CELL} {LABEL + i * CELL}h{CELL}v{CELL}h-{CELL}z" for i, j in cells)
                paths.append(f'<path d="{d}" fill="{colour}" fill-opacity="{shade / SHADES:.2f}"/>')
    return paths


def _amount(value: float, weights: Tensor, places: int = 0) -> str:
    """A weight as a percentage; if these are not weights, the number itself."""
    is_share = float(weights.min()) >= 0 and float(weights.max()) <= MAX_WEIGHT
    return f"{value:.{places}%}" if is_share else f"{value:.3g}"


def _strongest(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    top = weights.flatten().topk(min(3, weights.numel()))
    edges = []
    for value, at in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        query, key = divmod(int(at), weights.shape[1])
        edges.append(f"“{one_line(queries[query])}” looks at “{one_line(keys[key])}”, {_amount(value, weights)}")
    return escape("Strongest: " + "; ".join(edges) + ".")


def _table(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """The strongest key of every query, for screen readers."""
    largest = weights.max(-1)
    rows = "".join(
        f"<tr><td>{escape(one_line(queries[i]))}</td><td>{escape(one_line(keys[int(key)]))}</td><td>{_amount(weight, weights, 1)}</td></tr>"
        for i, (weight, key) in enumerate(zip(largest.values.tolist(), largest.indices.tolist(), strict=True))
    )
    head = "<tr><th>Token</th><th>Looks most at</th><th>Weight</th></tr>"
    return f"<details><summary>As a table</summary><table>{head}{rows}</table></details>"


def one_line(text: str, most: int = 60) -> str:
    """A text for a repr: on one line, at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
