"""What the large map of a long run shows, worked out a region or a row at a time: one head or several, hidden keys, words.

lens.js does the same in the browser for small runs. The order is always: heads put together, hidden keys taken out and
rows renormalised, pieces merged to words.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from app import pack, words
from core import aggregate, measures
from core.attention import AttentionRecord
from core.errors import Refused
from core.recorder import Held
from core.trace import Trace

Kind = Literal["head", "mean", "max", "rollout", "value"]
KINDS: tuple[Kind, ...] = get_args(Kind)
HIDDEN = 255  # the code of a key that the visitor took out, beside pack.REASONS
FIRST_CELLS = 192 * 192  # up to here the head that is opened comes with a picture that does not hold all of them
SINK_ROWS = 64  # rows from which it is told which key gets the most on average
METRICS = ("entropy", "distance", "sink", "previous", "induction", "diagonal")
METRIC_CELLS = 48_000_000  # weights that are worked out for the metrics of one kind of attention
METRIC_ROWS = 256  # of each head, at most
COLUMN_CELLS = 256_000_000  # weights worked out for one column: twelve heads of 4,096 tokens, in some seconds


@dataclass(frozen=True, eq=False)
class Lens:
    """One picture of a run. members are (record, head); none: all heads of the record. hide counts tokens."""

    run: Trace
    record: int
    head: int
    kind: Kind = "head"
    members: tuple[tuple[int, int], ...] = ()
    hide: tuple[int, ...] = ()
    merged: bool = False
    rollout: Tensor | None = None  # [query, key]: it cannot be worked out by rows

    @property
    def attention(self) -> AttentionRecord:
        return self.run.attention[self.record]

    @property
    def is_plain(self) -> bool:
        return self.kind == "head" and not self.hide and not self.merged

    @cached_property
    def heads(self) -> list[aggregate.Member]:
        """The heads that a mean or a maximum is of; of the rest, those whose masks count."""
        records = self.run.attention
        if self.kind in ("head", "value"):
            return [(self.attention, self.head)]
        if self.members and self.kind != "rollout":
            return [(records[i], head) for i, head in self.members]
        return [(self.attention, head) for head in range(self.attention.n_heads)]

    @cached_property
    def queries(self) -> list[range]:
        return self._axis(0)

    @cached_property
    def keys(self) -> list[range]:
        return self._axis(1)

    def _axis(self, which: int) -> list[range]:
        tokens = self.run.tokens_of(self.attention)[which]
        return pack.groups(tokens) if self.merged else [range(i, i + 1) for i in range(len(tokens))]

    # numbers

    def together(self, queries: Sequence[int]) -> Tensor:
        """The heads put together, [query, key] of tokens."""
        if self.rollout is not None:
            return self.rollout[list(queries)]
        if self.kind == "mean":
            return aggregate.mean(self.heads, queries)
        if self.kind == "max":
            return aggregate.maximum(self.heads, queries)
        if self.kind == "value":
            return self.attention.pattern(self.head, queries)[0] * written(self.run, self.record)[self.head]
        return self.attention.pattern(self.head, queries)[0]

    def values(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """[row, column] of the picture, and the share of each row that is not hidden, [row]."""
        groups = [self.queries[i] for i in rows]
        weights = self.together([token for group in groups for token in group])
        left = torch.ones(len(weights), device=weights.device)
        if self.hide:
            total = weights.sum(-1)
            weights = weights.clone()
            weights[:, list(self.hide)] = 0
            rest = weights.sum(-1)
            left = torch.where(total > 0, rest / total, 0)
            if self.kind != "value":
                weights = torch.where(rest[:, None] > 0, weights / rest[:, None], 0)
        if not self.merged:
            return weights, left
        of = torch.tensor([i for i, group in enumerate(self.keys) for _ in group], device=weights.device)
        columns = torch.zeros(len(weights), len(self.keys), device=weights.device).index_add_(1, of, weights)
        sizes = [len(group) for group in groups]
        return (
            torch.stack([part.mean(0) for part in columns.split(sizes)]),
            torch.stack([part.mean() for part in left.split(sizes)]),
        )

    def codes(self, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
        """[row, column] uint8: why a cell has no number; 0 where any part of it has one."""
        groups, key_groups = [self.queries[i] for i in rows], [self.keys[i] for i in columns]
        tokens, keys = [t for group in groups for t in group], [t for group in key_groups for t in group]
        codes: np.ndarray | None = None
        seen: set[tuple[int, int]] = set()
        for record, head in self.heads:
            mask = record.rule.mask
            same = (id(record.batch_rule.mask), head if mask.edits or mask.given is not None else 0)
            if same in seen:
                continue
            seen.add(same)
            own = pack.reasons(record, tokens, keys, head)
            codes = own if codes is None else np.where(own == 0, 0, codes)
        assert codes is not None
        codes = codes.copy()
        codes[:, np.isin(keys, self.hide)] = HIDDEN
        if not self.merged:
            return codes
        by_key = np.add.reduceat(codes == 0, np.cumsum([0, *map(len, key_groups)])[:-1], axis=1)
        free = np.add.reduceat(by_key, np.cumsum([0, *map(len, groups)])[:-1], axis=0) > 0
        first = codes[np.ix_(np.cumsum([0, *map(len, groups)])[:-1], np.cumsum([0, *map(len, key_groups)])[:-1])]
        return np.where(free, 0, first).astype("u1")

    def sink(self) -> int:
        """The token that gets the most on average, hidden or not, over evenly spaced rows."""
        rows = _spread(self.attention.n_query, SINK_ROWS)
        weights = self.attention.pattern(self.head, rows)[0] if self.kind == "value" else self.together(rows)
        return int(measures.received(weights).argmax())


_norms: WeakKeyDictionary[Trace, dict[int, Tensor]] = WeakKeyDictionary()
_again = threading.Lock()  # values of a long run come from another pass: one at a time


def written(run: Trace, record: int) -> Tensor:
    """‖value · W_O‖ of each key as each head of a record would write it, [head, key]; kept for as long as the run is."""
    with _again:
        known = _norms.setdefault(run, {})
        if record not in known:
            known[record] = run.attention[record].value_norms()
        return known[record]


def held(record: AttentionRecord) -> AttentionRecord:
    """The same record with its values, which of a long run come from another pass, held."""
    with _again:
        return replace(record, values=Held(record.values()))


def tile(lens: Lens, *, rows: tuple[int, int], columns: tuple[int, int], cells: int = pack.TILE) -> bytes:
    """A region of the picture as a message: pack.tile for one head, and else the same with float32 values.

    The header adds the largest value of the region (top), what is left of each row where keys are hidden (left), and for
    the whole picture which token gets the most (most).
    """
    shape = (len(lens.queries), len(lens.keys))
    more: dict[str, Any] = {"most": lens.sink()} if (rows, columns) == ((0, shape[0]), (0, shape[1])) else {}
    if lens.is_plain:
        return pack.tile(lens.attention, lens.head, rows=rows, columns=columns, cells=cells, more=more)
    n_rows, n_columns = min(cells, rows[1] - rows[0]), min(cells, columns[1] - columns[0])
    exact = (n_rows, n_columns) == (rows[1] - rows[0], columns[1] - columns[0])

    def some(queries: Sequence[int]) -> Tensor:
        return lens.values(queries)[0][:, slice(*columns)]

    if exact:
        found = [lens.values(block) for block in _blocks(range(*rows))]
        values, how = torch.cat([part[:, slice(*columns)] for part, _ in found]), ""
        codes = lens.codes(range(*rows), range(*columns))
        more["left"] = torch.cat([left for _, left in found]).tolist() if lens.hide else None
    else:
        values, how = pack.pooled(some, rows, columns, n_rows, n_columns)
        middles = [pack.middles(*rows, n_rows), pack.middles(*columns, n_columns)]
        codes = np.where(values.cpu().numpy() > 0, 0, lens.codes(*middles)).astype("u1")
    if lens.kind == "value":
        how = how.replace("weight", "norm")
    header = {"rows": n_rows, "columns": n_columns, "exact": exact, "how": how, "numbers": "float32"} | more
    header["top"] = float(values.max())
    return pack.pack(header, pack.joined(values.cpu().numpy().astype("<f4"), codes))


def row(lens: Lens, query: int) -> bytes:
    """One row of the picture as a message: float32 values, then reasons; entropy and what is left in the header.

    The entropy is null where the values are no shares of one whole: of norms, and of a maximum.
    """
    if lens.is_plain:
        return pack.row(lens.attention, lens.head, query)
    values, left = lens.values([query])
    codes = lens.codes([query], range(len(lens.keys)))
    header = {
        "rows": 1,
        "columns": len(lens.keys),
        "numbers": "float32",
        "entropy": None if lens.kind in ("value", "max") else float(measures.entropy(values)[0]),
        "left": float(left[0]) if lens.hide else None,
    }
    return pack.pack(header, pack.joined(values.cpu().numpy().astype("<f4"), codes))


def column(lens: Lens, key: int) -> bytes:
    """Who looks at one column of the picture, as a message: float32 values, then reasons, both [row].

    Every row of the picture has to be worked out for it. Raises Refused where that would take too long.
    """
    rows = range(len(lens.queries))
    cells = len(lens.heads) * lens.attention.n_query * lens.attention.n_key
    if lens.rollout is None and cells > COLUMN_CELLS:
        raise Refused(words.ROUTE_COLUMN.format(cells=cells, most=COLUMN_CELLS))
    values = torch.cat([lens.values(block)[0][:, key] for block in _blocks(rows)])
    header = {"rows": len(rows), "columns": 1, "numbers": "float32"}
    return pack.pack(header, pack.joined(values.cpu().numpy().astype("<f4"), lens.codes(rows, [key])))


def first(run: Trace, record: int, head: int, query: int | None) -> tuple[list[Any], bytes]:
    """The head that is opened, and the row of its locked query, as the routes would answer, so that nobody asks them.

    [[path, parameters, offset, bytes], ...] and the answers one after the other; nothing where they are too large to come
    with the picture.
    """
    attention = run.attention[record]
    if attention.n_query * attention.n_key > FIRST_CELLS:
        return [], b""
    body = pack.Body()
    answers = opened(run, record, head, query)
    index = [[path, params, body.add(np.frombuffer(message, "u1")), len(message)] for path, params, message in answers]
    return index, body.bytes()


def opened(run: Trace, record: int, head: int, query: int | None) -> list[tuple[str, dict[str, int], bytes]]:
    """All of one head, and one row of it, as the routes would answer: path, parameters, message."""
    picture = Lens(run, record, head)
    n_query, n_key = picture.attention.n_query, picture.attention.n_key
    of = {"record": record, "head": head}
    all_of_it = of | {"q0": 0, "q1": n_query, "k0": 0, "k1": n_key}
    answers = [("tile", all_of_it, tile(picture, rows=(0, n_query), columns=(0, n_key)))]
    if query is not None:
        answers.append(("row", of | {"query": query}, row(picture, query)))
    return answers


def scores(record: AttentionRecord, head: int, query: int) -> bytes:
    """What the softmax of one row is made of, as a message: float32 q·k, then float32 (q·k · scale + bias) / temperature."""
    raw, scaled = record.raw(head, query)[0, 0], record.scores(head, query)[0, 0]
    header = {"columns": record.n_key, "biased": record.rule.bias is not None}
    return pack.pack(header, pack.joined(raw.cpu().numpy().astype("<f4"), scaled.cpu().numpy().astype("<f4")))


def metrics(run: Trace, place: pack.Place) -> dict[str, Any]:
    """What one number can say about each head, {metric: [layer][head]}, from evenly spaced rows; null where there is none.

    The definitions are core.measures'. Cross-attention looks from one text into another, so that only entropy and the
    share of the first token mean something there.
    """
    first = run.attention[place.records[0]]
    queries, keys = run.tokens_of(first)
    per_row = len(place.records) * first.n_heads * first.n_key
    n = max(1, min(METRIC_ROWS, METRIC_CELLS // per_row))
    rows = _spread(first.n_query, n)
    seen: dict[int, int] = {}
    repeats = []
    for i, token in enumerate(queries.ids):
        if token in seen:
            repeats.append(i)
        seen[token] = i
    echoes = [repeats[i] for i in _spread(len(repeats), n)] if queries is keys else []
    found: dict[str, list[list[float | None]]] = {name: [] for name in METRICS}
    for i in place.records:
        record, of = run.attention[i], torch.tensor(rows)
        numbers: dict[str, list[float | None]] = {name: [] for name in METRICS}
        for head in range(record.n_heads):
            pattern = record.pattern(head, rows)[0].cpu()
            sees = pattern.sum(-1) > 0
            numbers["entropy"].append(float(measures.entropy(pattern)[sees].mean()) if sees.any() else 0.0)
            numbers["sink"].append(float(measures.sink_share(pattern)))
            if queries is not keys:
                for name in ("distance", "previous", "induction", "diagonal"):
                    numbers[name].append(None)
                continue
            back = measures.distance(pattern, of)[sees]
            numbers["distance"].append(float(back.mean()) if sees.any() else 0.0)
            numbers["previous"].append(float(measures.previous_token(pattern, of)))
            numbers["diagonal"].append(float(measures.diagonal(pattern, of)))
            if echoes:
                again = record.pattern(head, echoes)[0].cpu()
                numbers["induction"].append(float(measures.induction(again, queries.ids, torch.tensor(echoes))))
            else:
                numbers["induction"].append(None)
        for name in METRICS:
            found[name].append(numbers[name])
    return {"rows": len(rows), "of": first.n_query, **found}


def _spread(n: int, most: int) -> list[int]:
    """At most `most` of n positions, evenly spaced."""
    return list(range(n)) if n <= most else pack.middles(0, n, most)


def _blocks(rows: range) -> list[range]:
    return [rows[i : i + pack.POOL_BLOCK] for i in range(0, len(rows), pack.POOL_BLOCK)]
