"""Tables as pandas data frames, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .errors import install_line

if TYPE_CHECKING:
    from pandas import DataFrame


def of_columns(columns: Mapping[str, Sequence[object]]) -> DataFrame:
    """A frame of these columns. Raises ImportError, naming the extra to install, if pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            f"to_frame() makes a pandas frame, and pandas is not here: {install_line('pandas')}"
        ) from error
    return pandas.DataFrame(dict(columns))


def of_records(records: Iterable[Any], kind: type) -> DataFrame:
    """A frame with a row for each record of a dataclass. Raises ImportError as of_columns() does."""
    return of_columns(columns_of(records, kind))


def columns_of(records: Iterable[Any], kind: type) -> dict[str, Sequence[object]]:
    """The fields of a dataclass as columns, with a row for each of its records."""
    rows = list(records)
    return {column.name: [getattr(row, column.name) for row in rows] for column in fields(kind)}
