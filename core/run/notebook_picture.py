"""One head of a run as a still picture for a notebook: tokens and weights as HTML with an SVG in it, no script, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from torch import Tensor

from .attention import AttentionRecord

MOST = 48  # tokens along each axis; a longer text shows its first ones and says so
LETTERS = 12  # of a token's label
LEVELS = 16  # shades of one colour
BLUE = "#2f74b5"  # the blue of weights on every screen, which can be seen on a white notebook and on a dark one
PURPLE = "#86479c"  # of what is below 0
OVER = 1.05  # that rounding may make of a weight of 1
CELL, LABEL = 14, 92  # pixels


def still(title: str, record: AttentionRecord, head: int, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Weights of one head, queries down and keys across, under 100 kB whatever the text. The strongest looks stand below in words.

    What is no weight, since it is below 0 or above 1, has a scale up to the largest number, and purple below 0.
    """
    rows, columns = min(MOST, record.n_query), min(MOST, record.n_key)
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
    short = label if len(label) <= LETTERS else label[: LETTERS - 1] + "…"
    if turned:
        return f'<text transform="translate({x},{y}) rotate(-90)">{escape(short)}</text>'
    return f'<text x="{x}" y="{y}" text-anchor="end">{escape(short)}</text>'


def _cells(weights: Tensor) -> list[str]:
    """One path for each shade, from white for nothing to full blue for a weight of 1, or full purple for the same below 0."""
    shares = weights / max(1.0, float(weights.abs().max()))
    shades = (shares.abs() * LEVELS).ceil().int()
    paths = []
    for colour, side in ((BLUE, shares > 0), (PURPLE, shares < 0)):
        for shade in range(1, LEVELS + 1):
            cells = ((shades == shade) & side).nonzero().tolist()
            # What rounds to less than half a shade is left white: in a row of weights alike there is nothing to see.
            if shade == 1:
                cells = [(i, j) for i, j in cells if abs(shares[i, j]) * LEVELS >= 0.5]
            if cells:
                d = "".join(f"M{LABEL + j * CELL} {LABEL + i * CELL}h{CELL}v{CELL}h-{CELL}z" for i, j in cells)
                paths.append(f'<path d="{d}" fill="{colour}" fill-opacity="{shade / LEVELS:.2f}"/>')
    return paths


def _amount(value: float, weights: Tensor, places: int = 0) -> str:
    """A weight as a percentage; a number among such as are none as it is."""
    is_share = float(weights.min()) >= 0 and float(weights.max()) <= OVER
    return f"{value:.{places}%}" if is_share else f"{value:.3g}"


def _strongest(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    found = weights.flatten().topk(min(3, weights.numel()))
    looks = []
    for value, at in zip(found.values.tolist(), found.indices.tolist(), strict=True):
        query, key = divmod(int(at), weights.shape[1])
        looks.append(f"“{one_line(queries[query])}” looks at “{one_line(keys[key])}”, {_amount(value, weights)}")
    return escape("Strongest: " + "; ".join(looks) + ".")


def _table(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Where each query looks most, for who cannot see the picture."""
    largest = weights.max(-1)
    rows = "".join(
        f"<tr><td>{escape(one_line(queries[i]))}</td><td>{escape(one_line(keys[int(key)]))}</td><td>{_amount(weight, weights, 1)}</td></tr>"
        for i, (weight, key) in enumerate(zip(largest.values.tolist(), largest.indices.tolist(), strict=True))
    )
    head = "<tr><th>Token</th><th>Looks most at</th><th>Weight</th></tr>"
    return f"<details><summary>As a table</summary><table>{head}{rows}</table></details>"


def one_line(text: str, most: int = 60) -> str:
    """A text for a repr: on one line, and cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
