"""An atlas: what every head of a model does over a whole corpus, text by text, in a table; and what of it is shown.

    headlight atlas stories.txt --model minilm --out atlas.parquet

A text is run as the application runs it; nothing is kept of it but eight numbers for every head and the row in which each of them
is largest. What is done lies in parts beside the table, so that an atlas that was stopped goes on where it left off.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from pyarrow import parquet
from torch import Tensor

from ..checkpoints import Loaded
from ..errors import Refused, TextError
from ..model.text import Tokens, spans
from ..read import measures
from ..read.head_roles import is_punctuation
from ..run.attention import AttentionRecord
from ..run.trace import Trace, trace
from . import MOST_TOKENS

METRICS = ("previous", "next", "self", "sink", "punctuation", "induction", "distance", "entropy")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EXAMPLES = 10  # of the texts in which a head is strongest
PART = 50  # texts of one part of a table under way
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

# Parts of a corpus, each the number of its first text and its texts, to their tables, in any order.
SurveyResult = Callable[[Sequence[tuple[int, Sequence[str]]]], Iterable[tuple[int, pa.Table]]]


# one text


def rows_of(record: AttentionRecord, queries: Tokens, keys: Tokens) -> dict[str, Tensor]:
    """What each row of each head gives to what a metric is about, float32 [head, query]; nan where a row has no such key.

    previous, next, self: the weight on the token before, after, and itself. sink: on special tokens, or the first where a model
    has none. punctuation: on tokens that are nothing else. induction: on what followed an earlier copy of the query's token.
    distance: how far away the row looks on average, in tokens, on either side. entropy: bits. Cross-attention has the last three
    but for distance and induction, since its keys are another text. Padding is no row and no key.
    """
    pattern = record.pattern().cpu()  # [head, query, key]; the table is made on the processor
    n_query, n_key = pattern.shape[-2:]
    places = torch.arange(n_query)
    real = ~torch.tensor(queries.padding)
    special = [i for i in range(n_key) if keys.special[i] and not keys.padding[i]] or [0]
    labels = keys.labels
    marks = [i for i in range(n_key) if not keys.special[i] and is_punctuation(labels[i])]
    found = {
        "sink": pattern[..., special].sum(-1),
        "punctuation": pattern[..., marks].sum(-1) if marks else _none(pattern),
        "entropy": measures.entropy(pattern),
    }
    if record.site != "cross_attn":
        for name, ahead in (("previous", -1), ("self", 0), ("next", 1)):
            there = (places + ahead >= 0) & (places + ahead < n_key)
            of = pattern.gather(-1, (places + ahead).clamp(0, n_key - 1).expand(pattern.shape[0], -1)[..., None])[
                ..., 0
            ]
            found[name] = of.masked_fill(~there, torch.nan)
        followers = measures.induction_cells(keys.ids, places)  # [query, key]
        found["induction"] = (pattern * followers).sum(-1).masked_fill(~followers.any(-1), torch.nan)
        away = (places[:, None] - torch.arange(n_key)).abs().float()
        found["distance"] = (pattern * away).sum(-1)
    sees = (pattern.sum(-1) > 0) & real
    return {name: found[name].masked_fill(~sees, torch.nan) if name in found else _none(pattern) for name in METRICS}


def _none(pattern: Tensor) -> Tensor:
    return torch.full(pattern.shape[:-1], torch.nan)


def table_of(run: Trace, text: int) -> pa.Table:
    """A row of SCHEMA for every head of a run: the mean of each metric over its rows, null where it has none, and the row in
    which it is largest."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for record in run.attention:
        by_metric = rows_of(record, *run.tokens_of(record))
        n_heads = record.n_heads
        columns["text"] += [text] * n_heads
        columns["stack"] += [record.stack] * n_heads
        columns["site"] += [record.site] * n_heads
        columns["layer"] += [record.layer] * n_heads
        columns["head"] += range(n_heads)
        for name, rows in by_metric.items():
            means = rows.nanmean(-1).tolist()
            ats = rows.nan_to_num(-1).argmax(-1).tolist()
            has = [mean == mean for mean in means]
            columns[name] += [mean if is_there else None for mean, is_there in zip(means, has, strict=True)]
            columns[f"{name}_at"] += [at if is_there else None for at, is_there in zip(ats, has, strict=True)]
    return pa.table(columns, schema=SCHEMA)


def shortened(loaded: Loaded, text: str, most: int = MOST_TOKENS) -> str:
    """As much of the beginning of a text as makes so many tokens, special ones among them. Raises Refused."""
    if loaded.tokenizer is None:
        why = f" {loaded.no_tokenizer}" if loaded.no_tokenizer else ""
        raise Refused(f"{loaded.spec.title} has no tokenizer, and an atlas needs one to read texts.{why}")
    found = loaded.tokenizer.encode(text)
    most = min(most, loaded.config.n_ctx) if loaded.config.has_position_table else most
    spent = sum(found.special_tokens_mask)
    if most <= spent:
        raise Refused(
            f"A text is cut to {most} tokens, but {loaded.spec.title} reads {spent} of its own with each: take {spent + 1} or more."
        )
    if len(found.ids) <= most:
        return text
    offsets = spans(loaded.tokenizer, text, found)
    ends = [stop for (_, stop), special in zip(offsets, found.special_tokens_mask, strict=True) if not special]
    return text[: ends[most - spent - 1]]


def tokenized_text(loaded: Loaded, text: str, most: int = MOST_TOKENS) -> tuple[str, Sequence[tuple[int, int]]]:
    """The text as it is run, and the characters of each of its tokens."""
    text = shortened(loaded, text, most)
    assert loaded.tokenizer is not None
    return text, spans(loaded.tokenizer, text, loaded.tokenizer.encode(text))


# a corpus


@dataclass(frozen=True)
class Source:
    """The source of an atlas. Parts of another one are never mixed in."""

    model: str
    texts: str  # a hash of all of them
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
    most_tokens: int = MOST_TOKENS,
    progress: Callable[[int, int], object] = lambda done, total: None,
    surveyed: SurveyResult | None = None,
) -> pa.Table:
    """Run every text and write the table, one row of SCHEMA for each head of each text. Goes on with parts that are there.

    A text that the model cannot read has no rows. `surveyed` makes the tables of parts, in any order (None: here, one after the
    other). Raises Refused where the parts beside `out` are of something else, and
    where no token of a text would be left.
    """
    # A length that leaves nothing is refused before anything is written.
    shortened(loaded, next(iter(texts), ""), most_tokens)
    source = Source.of(loaded, texts, most_tokens)
    folder = out.with_name(f"{out.name}.parts")
    _claim(folder, source)
    parts = {first: texts[first : first + PART] for first in range(0, len(texts), PART)}
    there = [first for first in parts if _part(folder, first).exists()]
    done = sum(len(parts.pop(first)) for first in there)
    if there:
        progress(done, len(texts))
    tables = surveyed or (
        lambda missing: ((first, table_of_part(loaded, first, part, most_tokens)) for first, part in missing)
    )
    for first, table in tables([*parts.items()]):
        _write(table, _part(folder, first))
        done += len(parts[first])
        progress(done, len(texts))
    parts = [parquet.read_table(part, schema=SCHEMA) for part in sorted(folder.glob("*.parquet"))]
    # Nothing that the model ran on its own words is in the table but their numbers; a reader with the texts finds them by these.
    table = pa.concat_tables(parts).replace_schema_metadata({"headlight": json.dumps(asdict(source))})
    _write(table, out)
    shutil.rmtree(folder)
    return table


def _claim(folder: Path, source: Source) -> None:
    """The folder of parts is for this atlas. Raises Refused where it is for another."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "atlas.json"
    if note.exists() and json.loads(note.read_text(encoding="utf-8")) != asdict(source):
        raise Refused(
            f"{folder.name} holds parts of another atlas: of another model, other texts or another length. Delete it, or choose "
            "another --out."
        )
    note.write_text(json.dumps(asdict(source)), encoding="utf-8")


def _part(folder: Path, first: int) -> Path:
    return folder / f"{first:08}.parquet"


def table_of_part(loaded: Loaded, first: int, texts: Sequence[str], most_tokens: int) -> pa.Table:
    """The rows of some texts; the first one is number `first` of the corpus."""
    tables = []
    for i, text in enumerate(texts):
        try:
            tables.append(table_of(trace(loaded, shortened(loaded, text, most_tokens)), first + i))
        except TextError:
            continue
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def _write(table: pa.Table, path: Path) -> None:
    """Whole or not at all."""
    half = path.with_name(f".{path.name}.half")
    parquet.write_table(table, half, compression="zstd")
    os.replace(half, path)


# what is shown of it


def summary(
    table: pa.Table, texts: Sequence[str], read: Callable[[str], tuple[str, Sequence[tuple[int, int]]]]
) -> dict[str, Any]:
    """Every head in a few numbers, as plain data: of each metric the mean, QUANTILES and how many texts have it; and of the metric
    by which the head stands out the EXAMPLES texts in which it is largest: [text, row, value, the row's characters from, to].

    A head stands out by the metric whose mean lies furthest above the other heads' of its kind of attention, in their standard
    deviations. `read` gives a text as it was run and the characters of its tokens, as tokenized_text() does.
    """
    heads: dict[str, Any] = {}
    as_run: dict[int, tuple[str, Sequence[tuple[int, int]]]] = {}
    kinds = sorted(
        {(str(a), str(b)) for a, b in zip(*(table.column(name).to_pylist() for name in ("stack", "site")), strict=True)}
    )
    for stack, site in kinds:
        of_kind = table.filter((pc.field("stack") == stack) & (pc.field("site") == site))
        places = of_kind.group_by(["layer", "head"], use_threads=False).aggregate([(name, "mean") for name in METRICS])
        places = places.sort_by([("layer", "ascending"), ("head", "ascending")])
        means = {name: _numbers(places.column(f"{name}_mean")) for name in METRICS}
        apart = torch.stack([_apart(means[name]) for name in METRICS])  # [metric, head]
        for i, (layer, head) in enumerate(zip(*(places.column(n).to_pylist() for n in ("layer", "head")), strict=True)):
            own = of_kind.filter((pc.field("layer") == layer) & (pc.field("head") == head))
            best = METRICS[int(apart[:, i].nan_to_num(-torch.inf).argmax())]
            examples = []
            for text, at, value in _strongest(own, best):
                if text not in as_run:
                    as_run[text] = read(texts[text])
                examples.append((text, at, value, *as_run[text][1][at]))
            heads[f"{stack}.{site}.{layer}.{head}"] = {
                "metrics": {
                    name: _spread(own.column(name)) for name in METRICS if own.column(name).null_count < len(own)
                },
                "stands_out": best,
                "examples": examples,
            }
    source = json.loads((table.schema.metadata or {}).get(b"headlight", b"{}"))
    return {"source": source, "heads": heads, "texts": {str(i): as_run[i][0] for i in sorted(as_run)}}


def _numbers(column: pa.ChunkedArray) -> Tensor:
    return torch.tensor([torch.nan if value is None else value for value in column.to_pylist()])


def _apart(means: Tensor) -> Tensor:
    """How many standard deviations each lies above the mean of all; nan where there are none."""
    there = means[~means.isnan()]
    if len(there) < 2 or (spread := there.std()) == 0:
        return torch.full_like(means, torch.nan)
    return (means - there.mean()) / spread


def _strongest(own: pa.Table, metric: str) -> list[tuple[int, int, float]]:
    """(text, row, value) of the texts in which a head's metric is largest, the largest first."""
    there = own.filter(pc.field(metric).is_valid()).sort_by([(metric, "descending"), ("text", "ascending")])
    columns = (there.column(name).to_pylist()[:EXAMPLES] for name in ("text", f"{metric}_at", metric))
    return [(text, at, _short(value)) for text, at, value in zip(*columns, strict=True)]


def _short(value: float) -> float:
    """Round to four significant digits: small values must not become zero."""
    return float(f"{value:.4g}")


def _spread(column: pa.ChunkedArray) -> dict[str, Any]:
    there = column.drop_null().to_numpy().astype(np.float64)
    return {
        "mean": _short(float(there.mean())),
        "quantiles": [_short(float(cut)) for cut in np.quantile(there, QUANTILES)],
        "texts": len(there),
    }
