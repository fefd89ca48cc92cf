"""The texts of a corpus: paragraphs of prose, or one column of a CSV, JSON Lines or Parquet table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import Refused

PROSE = (".txt", ".md")
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
LIKELY = (
    "text",
    "sentence",
    "content",
    "body",
    "prompt",
    "review",
    "document",
    "story",
)  # common names of the text column
NAMED = 12  # columns listed in an error message


def texts_of(path: Path, column: str | None = None, most: int | None = None) -> list[str]:
    """The texts of a file, or of all files of a folder in the order of their names; at most the first `most`.

    Prose is split at empty lines, or into lines if there are none; lines that start with # are headings and skipped. In a table `column`
    has the texts; a table with a single column needs no name. Empty cells are skipped. A folder yields its .txt files, or with
    `column` its tables. Raises Refused, with the available columns.
    """
    if path.is_dir():
        kinds = TABLES if column is not None else (".txt",)
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in kinds)
        if not files and (others := sorted(f for f in path.iterdir() if f.suffix.lower() in TABLES)):
            raise Refused(_which(others[0], _columns(others[0])))
    else:
        files = [path]
    texts = list(islice((text for file in files for text in _texts(file, column)), most))
    if not texts:
        raise Refused(
            f"There is no text in {path.name}{'' if column is None else f', column {column}'}. An atlas needs a UTF-8 file of "
            f"paragraphs, a folder of .txt files, or with --column a table: {', '.join(TABLES)}."
        )
    return texts


def _texts(file: Path, column: str | None) -> Iterator[str]:
    kind = file.suffix.lower()
    if kind not in TABLES:
        if column is not None:
            raise Refused(
                f"{file.name} is read as prose, which has no column {column}. Leave out --column, or give a table: {', '.join(TABLES)}."
            )
        yield from _paragraphs(_read(file))
        return
    columns = _columns(file)
    if column is None and len(columns) != 1:
        raise Refused(_which(file, columns))
    name = columns[0] if column is None else column
    if name not in columns:
        near = get_close_matches(name, columns, 1)
        meant = f" Is {near[0]} meant?" if near else ""
        raise Refused(f"{file.name} has no column {name}.{meant} It has {_listed(columns)}.")
    for row, cell in enumerate(_cells(file, name), 1):
        if cell is None:
            continue
        if not isinstance(cell, str):
            raise Refused(
                f"Column {name} of {file.name} has no text in row {row}, but {_kind(cell)}. Choose a column of texts: {_listed(columns)}."
            )
        if line := " ".join(cell.split()):
            yield line


def _which(file: Path, columns: Sequence[str]) -> str:
    likely = next((name for name in LIKELY if name in columns), columns[0] if columns else "text")
    return f"{file.name} is a table with {_listed(columns)}. Say which one has the texts, such as --column {likely}."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"the column{'s' * (len(names) != 1)} {', '.join(names[:NAMED])}{more}" if names else "no columns"


def _kind(cell: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(cell), f"a {type(cell).__name__}")


# Prose.


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{file.name} is no UTF-8 text ({error.reason} at byte {error.start}).") from error


def _paragraphs(text: str) -> Iterator[str]:
    for block in text.split("\n\n") if "\n\n" in text else text.splitlines():
        line = " ".join(line.strip() for line in block.splitlines() if not line.startswith("#"))
        if line.strip():
            yield line


# Tables.


def _columns(file: Path) -> list[str]:
    """The names of a table's columns in order; for JSON those of its first object."""
    kind = file.suffix.lower()
    if kind == ".parquet":
        return list(_parquet(file).schema_arrow.names)
    if kind in (".csv", ".tsv"):
        return next(_csv_rows(file), [])
    first = next(_objects(file), {})
    return [str(name) for name in first]


def _cells(file: Path, column: str) -> Iterator[Any]:
    """The cells of one column; None for a row without one."""
    kind = file.suffix.lower()
    if kind == ".parquet":
        for batch in _parquet(file).iter_batches(columns=[column]):
            yield from batch.column(0).to_pylist()
    elif kind in (".csv", ".tsv"):
        rows = _csv_rows(file)
        at = next(rows).index(column)
        for row in rows:
            yield row[at] if at < len(row) else None
    else:
        for entry in _objects(file):
            yield entry.get(column)


def _csv_rows(file: Path) -> Iterator[list[str]]:
    """RFC 4180, with the most frequent separator of the first line."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a cell may be a book
    text = _read(file)
    head = text.split("\n", 1)[0]
    separator = "\t" if file.suffix.lower() == ".tsv" else max(",;\t", key=head.count)
    rows = csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True)
    try:
        for row in rows:
            if row:
                yield row
    except csv.Error as error:
        raise Refused(f"{file.name} is no CSV that can be read: {error} in line {rows.line_num}.") from error


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    """JSON Lines, with one object per line; or a .json file with one list of objects."""
    text = _read(file)
    if file.suffix.lower() == ".json" and text.lstrip().startswith("["):
        kind, entries = "Entry", enumerate(_json(text, f"{file.name} is no JSON"), 1)
    else:
        numbered = ((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip())
        kind, entries = "Line", ((n, _json(line, f"Line {n} of {file.name} is no JSON")) for n, line in numbered)
    for number, entry in entries:
        if not isinstance(entry, dict):
            raise Refused(f'{kind} {number} of {file.name} is no JSON object, such as {{"text": "…"}}.')
        yield entry


def _json(text: str, wrong: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused(f"{wrong}: {error}. JSON Lines have one object a line.") from error


def _parquet(file: Path) -> Any:
    from pyarrow import ArrowException, parquet

    try:
        return parquet.ParquetFile(file)
    except (ArrowException, ValueError) as error:
        raise Refused(f"{file.name} is no Parquet file that can be read.") from error
