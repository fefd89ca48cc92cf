"""Atlas: statistics of every head over a corpus."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from pyarrow import parquet
from torch import Tensor

from ..checkpoints import Loaded
from ..errors import HeadlightError, TextError
from ..model.text import Tokens, spans
from ..read import measures
from ..read.head_roles import is_punctuation
from ..run.attention import AttentionRecord
from ..run.trace import trace
from ..run.trace_record import TraceRecord
from . import MAX_TOKENS

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
            raise HeadlightError(_which(others[0], _columns(others[0])))
    else:
        files = [path]
    texts = list(islice((text for file in files for text in _texts(file, column)), most))
    if not texts:
        raise HeadlightError(
            f"There is no text in {path.name}{'' if column is None else f', column {column}'}. An atlas needs a UTF-8 file of "
            f"paragraphs, a folder of .txt files, or with --column a table: {', '.join(TABLES)}."
        )
    return texts


def _texts(file: Path, column: str | None) -> Iterator[str]:
    kind = file.suffix.lower()
    if kind not in TABLES:
        if column is not None:
            raise HeadlightError(
                f"{file.name} is read as prose, which has no column {column}. Leave out --column, or give a table: {', '.join(TABLES)}."
            )
        yield from _paragraphs(_read(file))
        return
    columns = _columns(file)
    if column is None and len(columns) != 1:
        raise HeadlightError(_which(file, columns))
    name = columns[0] if column is None else column
    if name not in columns:
        near = get_close_matches(name, columns, 1)
        meant = f" Is {near[0]} meant?" if near else ""
        raise HeadlightError(f"{file.name} has no column {name}.{meant} It has {_listed(columns)}.")
    for row, cell in enumerate(_cells(file, name), 1):
        if cell is None:
            continue
        if not isinstance(cell, str):
            raise HeadlightError(
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
        raise HeadlightError(f"{file.name} is no UTF-8 text ({error.reason} at byte {error.start}).") from error


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
        raise HeadlightError(f"{file.name} is no CSV that can be read: {error} in line {rows.line_num}.") from error


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
            raise HeadlightError(f'{kind} {number} of {file.name} is no JSON object, such as {{"text": "…"}}.')
        yield entry


def _json(text: str, wrong: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise HeadlightError(f"{wrong}: {error}. JSON Lines have one object a line.") from error


def _parquet(file: Path) -> Any:
    from pyarrow import ArrowException, parquet

    try:
        return parquet.ParquetFile(file)
    except (ArrowException, ValueError) as error:
        raise HeadlightError(f"{file.name} is no Parquet file that can be read.") from error


METRICS = ("previous", "next", "self", "sink", "punctuation", "induction", "distance", "entropy")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EXAMPLES = 10  # texts with the largest values of a head
PART = 50  # texts of one part of an unfinished table
SCHEMA = pa.schema(
    [
        ("text", pa.int32()),
        ("stack", pa.dictionary(pa.int8(), pa.string())),
        ("site", pa.dictionary(pa.int8(), pa.string())),
        ("layer", pa.int16()),
        ("head", pa.int16()),
        *((name, pa.float32()) for name in METRICS),
        *((f"{name}_at", pa.int32()) for name in METRICS),
    ]
)

# Function from parts of a corpus (index of the first text, texts) to their tables, in any order.
SurveyResult = Callable[[Sequence[tuple[int, Sequence[str]]]], Iterable[tuple[int, pa.Table]]]


# One text.


def rows_of(record: AttentionRecord, queries: Tokens, keys: Tokens) -> dict[str, Tensor]:
    """The value of each metric for each row of each head, float32 [head, query]; nan if a row has no such key.

    previous, next, self: the weight on the token before, after, and itself. sink: on special tokens, or the first token if a model
    has none. punctuation: on tokens that are only punctuation. induction: on the tokens after earlier copies of the query's token.
    distance: mean distance to the keys, in tokens, in either direction. entropy: bits. Cross-attention has only sink, punctuation and
    entropy, since its keys belong to another text. Padding is excluded.
    """
    pattern = record.pattern().cpu()  # [head, query, key]; the table is built on the CPU
    n_query, n_key = pattern.shape[-2:]
    places = torch.arange(n_query)
    special = [i for i in range(n_key) if keys.special[i] and not keys.padding[i]] or [0]
    marks = [i for i in range(n_key) if not keys.special[i] and is_punctuation(keys.labels[i])]
    values = {
        "sink": pattern[..., special].sum(-1),
        "punctuation": pattern[..., marks].sum(-1) if marks else _none(pattern),
        "entropy": measures.entropy(pattern),
    }
    if record.site != "cross_attn":
        for name, shift in (("previous", -1), ("self", 0), ("next", 1)):
            shifted = places + shift
            index = shifted.clamp(0, n_key - 1).expand(pattern.shape[0], -1)[..., None]
            weight = pattern.gather(-1, index)[..., 0]
            values[name] = weight.masked_fill((shifted < 0) | (shifted >= n_key), torch.nan)
        followers = measures.induction_cells(keys.ids, places)  # [query, key]
        values["induction"] = (pattern * followers).sum(-1).masked_fill(~followers.any(-1), torch.nan)
        distance = (places[:, None] - torch.arange(n_key)).abs().float()
        values["distance"] = (pattern * distance).sum(-1)
    sees = (pattern.sum(-1) > 0) & ~torch.tensor(queries.padding)
    return {name: values.get(name, _none(pattern)).masked_fill(~sees, torch.nan) for name in METRICS}


def _none(pattern: Tensor) -> Tensor:
    return torch.full(pattern.shape[:-1], torch.nan)


def table_of(run: TraceRecord, text: int) -> pa.Table:
    """A row of SCHEMA for every head of a run: the mean of each metric over its queries, null if it has none, and the query at which it
    is largest."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for record in run.attention:
        n_heads = record.n_heads
        for name, value in (("text", text), ("stack", record.stack), ("site", record.site), ("layer", record.layer)):
            columns[name] += [value] * n_heads
        columns["head"] += range(n_heads)
        for name, rows in rows_of(record, *run.tokens_of(record)).items():
            for mean, at in zip(rows.nanmean(-1).tolist(), rows.nan_to_num(-1).argmax(-1).tolist(), strict=True):
                columns[name].append(None if math.isnan(mean) else mean)
                columns[f"{name}_at"].append(None if math.isnan(mean) else at)
    return pa.table(columns, schema=SCHEMA)


def shortened(loaded: Loaded, text: str, most: int = MAX_TOKENS) -> str:
    """Cut a text to its first `most` tokens, including special ones. Raises Refused."""
    if loaded.tokenizer is None:
        why = f" {loaded.no_tokenizer}" if loaded.no_tokenizer else ""
        raise HeadlightError(f"{loaded.spec.title} has no tokenizer, and an atlas needs one to read texts.{why}")
    encoding = loaded.tokenizer.encode(text)
    most = min(most, loaded.config.n_ctx) if loaded.config.has_position_table else most
    n_special = sum(encoding.special_tokens_mask)
    if most <= n_special:
        raise HeadlightError(
            f"A text is cut to {most} tokens, but {loaded.spec.title} reads {n_special} of its own with each: take {n_special + 1} or more."
        )
    if len(encoding.ids) <= most:
        return text
    offsets = zip(spans(loaded.tokenizer, text, encoding), encoding.special_tokens_mask, strict=True)
    ends = [stop for (_, stop), special in offsets if not special]
    return text[: ends[most - n_special - 1]]


def tokenized_text(loaded: Loaded, text: str, most: int = MAX_TOKENS) -> tuple[str, Sequence[tuple[int, int]]]:
    """Return the text as run, and the characters of each of its tokens."""
    text = shortened(loaded, text, most)
    assert loaded.tokenizer is not None
    return text, spans(loaded.tokenizer, text, loaded.tokenizer.encode(text))


# A corpus.


@dataclass(frozen=True)
class Source:
    """The source of an atlas, so that parts of different ones are never mixed."""

    model: str
    texts: str  # hash of all texts
    n_texts: int
    most_tokens: int

    @classmethod
    def of(cls, loaded: Loaded, texts: Sequence[str], most_tokens: int) -> Source:
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        return cls(loaded.spec.id, digest, len(texts), most_tokens)


def survey(
    loaded: Loaded,
    texts: Sequence[str],
    out: Path,
    *,
    most_tokens: int = MAX_TOKENS,
    progress: Callable[[int, int], object] = lambda done, total: None,
    surveyed: SurveyResult | None = None,
) -> pa.Table:
    """Run every text and write the table, one row of SCHEMA for each head of each text. Resumes from existing parts.

    A text that the model cannot read has no rows. `surveyed` computes the tables of parts, in any order (None: here, in sequence). Raises
    Refused if the parts next to `out` belong to another atlas, and if no token of a text would be left.
    """
    # Refuse such a length before anything is written.
    shortened(loaded, next(iter(texts), ""), most_tokens)
    source = Source.of(loaded, texts, most_tokens)
    folder = out.with_name(f"{out.name}.parts")
    _claim(folder, source)
    parts = {first: texts[first : first + PART] for first in range(0, len(texts), PART)}
    finished = [first for first in parts if _part(folder, first).exists()]
    done = sum(len(parts.pop(first)) for first in finished)
    if finished:
        progress(done, len(texts))
    tables = surveyed or (
        lambda missing: ((first, table_of_part(loaded, first, part, most_tokens)) for first, part in missing)
    )
    for first, table in tables([*parts.items()]):
        _write(table, _part(folder, first))
        done += len(parts[first])
        progress(done, len(texts))
    parts = [parquet.read_table(part, schema=SCHEMA) for part in sorted(folder.glob("*.parquet"))]
    # The table has no text; readers find a text by its index.
    table = pa.concat_tables(parts).replace_schema_metadata({"headlight": json.dumps(asdict(source))})
    _write(table, out)
    shutil.rmtree(folder)
    return table


def _claim(folder: Path, source: Source) -> None:
    """Reserve the folder of parts for this atlas. Raises Refused if it belongs to another."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "atlas.json"
    if note.exists() and json.loads(note.read_text(encoding="utf-8")) != asdict(source):
        raise HeadlightError(
            f"{folder.name} holds parts of another atlas: of another model, other texts or another length. Delete it, or choose "
            "another --out."
        )
    note.write_text(json.dumps(asdict(source)), encoding="utf-8")


def _part(folder: Path, first: int) -> Path:
    return folder / f"{first:08}.parquet"


def table_of_part(loaded: Loaded, first: int, texts: Sequence[str], most_tokens: int) -> pa.Table:
    """The rows of some texts, of which the first has index `first` in the corpus."""
    tables = []
    for i, text in enumerate(texts):
        try:
            tables.append(table_of(trace(loaded, shortened(loaded, text, most_tokens)), first + i))
        except TextError:
            continue
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def _write(table: pa.Table, path: Path) -> None:
    """Write atomically."""
    half = path.with_name(f".{path.name}.half")
    parquet.write_table(table, half, compression="zstd")
    os.replace(half, path)


# The summary.


def summary(
    table: pa.Table, texts: Sequence[str], read: Callable[[str], tuple[str, Sequence[tuple[int, int]]]]
) -> dict[str, Any]:
    """Summarise every head as plain data: for each metric the mean, QUANTILES and the number of texts with a value; and for the most
    distinctive metric the EXAMPLES texts in which it is largest: [text, row, value, the row's characters from, to].

    The most distinctive metric is the one whose mean is furthest above those of the other heads of the same kind of attention, in
    standard deviations. `read` returns a text as run and the characters of its tokens, as tokenized_text() does.
    """
    heads: dict[str, Any] = {}
    as_run: dict[int, tuple[str, Sequence[tuple[int, int]]]] = {}
    for stack, site in sorted(set(_rows(table, "stack", "site"))):
        of_kind = table.filter((pc.field("stack") == stack) & (pc.field("site") == site))
        places = of_kind.group_by(["layer", "head"], use_threads=False).aggregate([(name, "mean") for name in METRICS])
        places = places.sort_by([("layer", "ascending"), ("head", "ascending")])
        scores = torch.stack([_z_scores(places.column(f"{name}_mean")) for name in METRICS])  # [metric, head]
        for i, (layer, head) in enumerate(_rows(places, "layer", "head")):
            own = of_kind.filter((pc.field("layer") == layer) & (pc.field("head") == head))
            best = METRICS[int(scores[:, i].nan_to_num(-torch.inf).argmax())]
            examples = []
            for text, at, value in _strongest(own, best):
                if text not in as_run:
                    as_run[text] = read(texts[text])
                examples.append((text, at, value, *as_run[text][1][at]))
            present = [name for name in METRICS if own.column(name).null_count < len(own)]
            heads[f"{stack}.{site}.{layer}.{head}"] = {
                "metrics": {name: _distribution(own.column(name)) for name in present},
                "stands_out": best,
                "examples": examples,
            }
    source = json.loads((table.schema.metadata or {}).get(b"headlight", b"{}"))
    return {"source": source, "heads": heads, "texts": {str(i): as_run[i][0] for i in sorted(as_run)}}


def _rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _z_scores(means: pa.ChunkedArray) -> Tensor:
    """Standard deviations above the mean of all heads; nan for missing values, or if all are equal."""
    values = torch.tensor([torch.nan if mean is None else mean for mean in means.to_pylist()])
    present = values[~values.isnan()]
    if len(present) < 2 or (deviation := present.std()) == 0:
        return torch.full_like(values, torch.nan)
    return (values - present.mean()) / deviation


def _strongest(own: pa.Table, metric: str) -> list[tuple[int, int, float]]:
    """(text, row, value) of the texts in which a head's metric is largest, in descending order."""
    present = own.filter(pc.field(metric).is_valid()).sort_by([(metric, "descending"), ("text", "ascending")])
    rows = _rows(present.slice(0, EXAMPLES), "text", f"{metric}_at", metric)
    return [(text, at, _rounded(value)) for text, at, value in rows]


def _rounded(value: float) -> float:
    """Round to four significant digits, so that small values do not become zero."""
    return float(f"{value:.4g}")


def _distribution(column: pa.ChunkedArray) -> dict[str, Any]:
    values = column.drop_null().to_numpy().astype(np.float64)
    quantiles = [_rounded(float(value)) for value in np.quantile(values, QUANTILES)]
    return {"mean": _rounded(float(values.mean())), "quantiles": quantiles, "texts": len(values)}
