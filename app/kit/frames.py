"""Tables of numbers that Streamlit draws, in the language of the visit.

Of itself Streamlit writes the numbers of a table as English does, or as the browser's own language, whatever the page speaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import floor, log10
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from app import languages
from app.kit import numbers

MOST_DIGITS = 4  # after the point, where a column does not say how many: as Streamlit has it


def show(table: Any, columns: Mapping[str, Any] | None = None, **more: Any) -> None:
    """A table as st.dataframe draws it, with its numbers as the language writes them. They stay numbers, to be sorted."""
    if languages.decimal(".,") == ".,":
        st.dataframe(table, hide_index=True, column_config=_counts(table) | dict(columns or {}), **more)
        return
    style: Any = table if isinstance(table, Styler) else table.style
    frame: pd.DataFrame = style.data  # pandas' stubs leave it out
    said = {name: _said(frame[name], _format(columns, name)) for name in frame.columns}
    plain = {name: _without_format(column) for name, column in (columns or {}).items()}
    st.dataframe(style.format(said), hide_index=True, column_config=plain or None, **more)


def _counts(table: Any) -> dict[str, Any]:
    """The columns of whole numbers, with thousands apart."""
    frame: pd.DataFrame = table.data if isinstance(table, Styler) else table  # type: ignore[attr-defined]
    return {
        name: st.column_config.NumberColumn(format="localized")
        for name in frame.columns
        if frame[name].dtype.kind in "iu"
    }


def editable(columns: Mapping[str, str | None], table: pd.DataFrame) -> dict[str, Any]:
    """Columns of a table that can be typed in: in another language than English their numbers are as the browser writes them."""
    if languages.decimal(".,") == ".,":
        return dict(columns)
    is_number = {name: name in table and table[name].dtype.kind in "fiu" for name in columns}
    return {
        name: st.column_config.NumberColumn(label, format="localized") if is_number[name] and label else label
        for name, label in columns.items()
    }


def _format(columns: Mapping[str, Any] | None, name: str) -> str | None:
    column = (columns or {}).get(name)
    return column["type_config"].get("format") if isinstance(column, dict) and column.get("type_config") else None


def _without_format(column: Any) -> Any:
    """Streamlit shows what a Styler says of a number where the column says nothing itself."""
    if not isinstance(column, dict) or not column.get("type_config"):
        return column
    return column | {"type_config": column["type_config"] | {"format": None}}


def _said(values: Any, how: str | None) -> Any:
    """How the numbers of a column are written, and those in its texts."""
    if values.dtype.kind in "iu":
        return numbers.whole if how == "localized" else str
    if values.dtype.kind == "f":
        return partial(_number, digits=3 if how == "%.3f" else None)
    return lambda text: languages.numbers(text) if isinstance(text, str) else text


def _number(value: float, digits: int | None) -> str:
    if pd.isna(value):
        return ""
    if digits is not None:
        return languages.decimal(f"{value:.{digits}f}")
    most = MOST_DIGITS if not value or abs(value) >= 10**-MOST_DIGITS else -floor(log10(abs(value)))
    return languages.decimal(f"{value:.{most}f}".rstrip("0").rstrip("."))
