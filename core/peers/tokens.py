"""colored_tokens() with the signature of circuitsvis.tokens 1.43.3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from ..errors import HeadlightError
from ..model.text import visible
from ..run.arrays import tensor_of
from ..run.trace_record import BLUE, PURPLE
from .views import Shown, below

DEEPEST = 0.85  # opacity of the largest value, so that the text stays readable


def colored_tokens(
    tokens: Any,
    values: Any,
    min_value: Any = None,
    max_value: Any = None,
    negative_color: Any = None,
    positive_color: Any = None,
) -> Shown:
    """circuitsvis.tokens.colored_tokens (1.43.3): tokens of a text, blue for values above 0 and purple for values below.

    Each has its value in a tooltip, and all are in a table. min_value and max_value get the full colours; the default is the largest
    absolute value. Raises Refused if the numbers of tokens and values differ.
    """
    numbers = tensor_of(values, "values")
    strings = [str(token) for token in tokens]
    if numbers.ndim != 1 or len(numbers) != len(strings):
        raise HeadlightError(
            f"There are {len(strings)} tokens, and values have the shape {list(numbers.shape)}. Give one value for each token."
        )
    floats: list[float] = numbers.float().tolist()
    largest = max((abs(value) for value in floats if math.isfinite(value)), default=0.0)
    most = float(max_value) if max_value is not None else largest
    least = -float(min_value) if min_value is not None and float(min_value) < 0 else largest
    spans = "".join(
        _span(token, value, most if value > 0 else least) for token, value in zip(strings, floats, strict=True)
    )
    remarks = []
    if not all(map(math.isfinite, floats)):
        remarks.append("Values that are no finite number have no colour.")
    given = {"negative_color": negative_color, "positive_color": positive_color}
    if ignored := ", ".join(f"{name}={colour!r}" for name, colour in given.items() if colour is not None):
        remarks.append(f"{ignored}: here blue is above 0 and purple below, on every screen.")
    return Shown(
        f'<div style="font-family:sans-serif;line-height:1.9;white-space:pre-wrap">{spans}</div>'
        f"{_table(strings, floats)}{below(remarks)}"
    )


def _span(token: str, value: float, full: float) -> str:
    share = min(1.0, abs(value) / full) if math.isfinite(value) and full > 0 else 0.0
    colour = f"{BLUE if value > 0 else PURPLE}{round(share * DEEPEST * 255):02x}"
    style = f"background:{colour};padding:0.2em 0.05em;border-radius:0.15em"
    return f'<span style="{style}" title="{escape(visible(token))}: {value:.4g}">{escape(token)}</span>'


def _table(tokens: Sequence[str], values: Sequence[float]) -> str:
    rows = "".join(
        f"<tr><td>{i}</td><td>{escape(visible(token))}</td><td>{value:.4g}</td></tr>"
        for i, (token, value) in enumerate(zip(tokens, values, strict=True))
    )
    head = "<tr><th>Position</th><th>Token</th><th>Value</th></tr>"
    return f"<details><summary>As a table</summary><table>{head}{rows}</table></details>"
