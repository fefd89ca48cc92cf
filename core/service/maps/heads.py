"""All heads of a run: every weight of small runs, one number about each head, and the first numbers of any tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ...memory import admit_large
from ...read import measures
from ...read.findings import opening_look
from ...read.head_roles import openings, roles_of
from ...read.sinks import sink
from ...read.spaced_rows import spread
from ...run.attention import AttentionRecord
from ...run.patterns import patterns_of
from ...trace import Trace
from ..answers import Site, Values
from .answers import Heads, Likeness, Measures, Thumbnails, WholeRun
from .compute import array, reasons

THUMBNAIL = 32  # pixels along a side of the small picture of a head
METRICS = ("entropy", "distance", "sink", "previous", "induction", "diagonal")
METRIC_CELLS = 48_000_000  # weights that are computed for the measures of one site
METRIC_ROWS = 256  # of each head, at most
OF_A_HEAD = ("q", "k", "scores", "mask", "weights", "z")  # tensors that have heads


def thumbnails_of(record: AttentionRecord) -> Thumbnails:
    """Of every head of one record."""
    small = record.thumbnail(THUMBNAIL)
    return Thumbnails(array(small.values), small.how)


def heads_of(run: Trace, site: Site) -> Heads:
    """Every weight of a site. Raises TooLarge."""
    _admit(site.weights)
    return _heads(run, site, [*patterns_of([run.attention[i] for i in site.records])])


def whole_of(run: Trace, sites: Sequence[Site], looks: bool = True) -> WholeRun:
    """All sites' heads, with the openings, roles and sinks of the run, and the look that it opens on unless `looks` is False: all that
    a picture is drawn from, from maps that are computed once. The look may take another pass. Raises TooLarge."""
    _admit(sum(site.weights for site in sites))
    patterns = [*patterns_of(run.attention)]  # of each: [head, query, key]
    look = opening_look(run, patterns) if looks else None
    return WholeRun(
        {site.id: _heads(run, site, [patterns[i] for i in site.records]) for site in sites},
        openings(run, patterns, look),
        roles_of(run, patterns),
        {
            site.id: sink([run.attention[i] for i in site.records], [patterns[i] for i in site.records])
            for site in sites
        },
        look,
    )


def _admit(weights: int) -> None:
    admit_large(weights * 8, torch.device("cpu"), "Every weight of these heads", "Ask for tiles of them instead.")


def _heads(run: Trace, site: Site, of_layers: Sequence[Tensor]) -> Heads:
    records = [run.attention[i] for i in site.records]
    patterns = torch.stack(list(of_layers))  # [layer, head, query, key]
    masks, mask_of = masks_of(records)
    return Heads(array(patterns), array(measures.entropy(patterns)), masks, mask_of)


def likeness_of(run: Trace, site: Site, query: int, weights: Sequence[float]) -> Likeness:
    """Of one query, beside weights [key]."""
    rows = torch.stack([run.attention[i].pattern(queries=[query])[:, 0] for i in site.records])  # [layer, head, key]
    return Likeness(
        array(rows), array(measures.overlap(rows, torch.tensor(list(weights), dtype=rows.dtype, device=rows.device)))
    )


def looks_at(run: Trace, site: Site, query: int, key: int) -> np.ndarray:
    """The weight of one cell by every head of a site, float32 [layer, head]: one row of each head is computed, and no map."""
    return array(torch.stack([run.attention[i].pattern(queries=[query])[:, 0, key] for i in site.records]))


def correlations(run: Trace, site: Site, layer: int, head: int, apart: int | None) -> np.ndarray:
    """How like the map of one head that of every head of a site is, float32 [layer, head]: see core.read.measures.correlation.

    Over the cells that this head may see, without the column of the key `apart`. Of a long text evenly spaced rows are compared.
    """
    one = run.attention[site.records[layer]]
    rows = _rows_of(one, len(site.records))
    cells = one.mask(queries=rows, head=head).clone()
    if apart is not None:
        cells[:, apart] = False
    pattern = one.pattern(head, rows)[0]
    each = [measures.correlation(run.attention[i].pattern(queries=rows), pattern, cells) for i in site.records]
    return array(torch.stack(each))


def masks_of(records: Sequence[AttentionRecord]) -> tuple[tuple[np.ndarray, ...], tuple[tuple[int, ...], ...]]:
    """The distinct masks, and which of them each layer has: one number, or one a head where heads differ."""
    found: list[np.ndarray] = []
    number: dict[bytes, int] = {}
    mask_of: list[tuple[int, ...]] = []
    known: dict[tuple[int, int], tuple[int, ...]] = {}  # of a mask that layers share, and a text
    for record in records:
        shared = id(record.batch_rule.mask), record.text
        if shared in known:
            mask_of.append(known[shared])
            continue
        queries, keys = range(record.n_query), range(record.n_key)
        row = []
        for head in range(record.n_heads if record.rule.mask.heads_differ else 1):
            codes = reasons(record, queries, keys, head)
            if not codes.any():
                row.append(-1)
                continue
            at = number.setdefault(codes.tobytes(), len(found))
            if at == len(found):
                found.append(codes)
            row.append(at)
        known[shared] = tuple(row)
        mask_of.append(known[shared])
    return tuple(found), tuple(mask_of)


def measures_of(run: Trace, site: Site) -> Measures:
    """What one number can say about each head, from evenly spaced rows; None where there is none.

    The definitions are core.measures'. Cross-attention looks from one text into another, so that only entropy and the
    share of the first token mean something there.
    """
    first = run.attention[site.records[0]]
    queries, keys = run.tokens_of(first)
    rows = _rows_of(first, len(site.records))
    n = len(rows)
    seen: dict[int, int] = {}
    repeats = []
    for i, token in enumerate(queries.ids):
        if token in seen:
            repeats.append(i)
        seen[token] = i
    echoes = [repeats[i] for i in spread(len(repeats), n)] if queries is keys else []
    found: dict[str, list[tuple[float | None, ...]]] = {name: [] for name in METRICS}
    for i in site.records:
        record = run.attention[i]
        each = [
            _measures_of_head(record, head, rows, echoes, queries.ids, queries is keys)
            for head in range(record.n_heads)
        ]
        for name in METRICS:
            found[name].append(tuple(numbers[name] for numbers in each))
    return Measures(len(rows), first.n_query, {name: tuple(layers) for name, layers in found.items()})


def _rows_of(record: AttentionRecord, layers: int) -> list[int]:
    """Evenly spaced rows of a map, as many as may be read of all heads of that many layers."""
    return spread(record.n_query, max(1, min(METRIC_ROWS, METRIC_CELLS // (layers * record.n_heads * record.n_key))))


def _measures_of_head(
    record: AttentionRecord, head: int, rows: list[int], echoes: list[int], ids: Sequence[int], within: bool
) -> dict[str, float | None]:
    pattern = record.pattern(head, rows)[0].cpu()
    of, sees = torch.tensor(rows), pattern.sum(-1) > 0
    numbers: dict[str, float | None] = dict.fromkeys(METRICS)
    numbers["entropy"] = float(measures.entropy(pattern)[sees].mean()) if sees.any() else 0.0
    numbers["sink"] = float(measures.sink_share(pattern))
    if within:
        numbers["distance"] = float(measures.distance(pattern, of)[sees].mean()) if sees.any() else 0.0
        numbers["previous"] = float(measures.previous_token(pattern, of))
        numbers["diagonal"] = float(measures.diagonal(pattern, of))
    if echoes:
        again = record.pattern(head, echoes)[0].cpu()
        numbers["induction"] = float(measures.induction(again, ids, torch.tensor(echoes)))
    return numbers


def values_of(record: AttentionRecord, what: str, head: int, most: int) -> Values:
    """The first `most` × `most` numbers of one tensor of an attention, one of OF_A_HEAD."""
    queries, keys = range(min(most, record.n_query)), range(min(most, record.n_key))
    shared = head // (record.n_heads // record.n_kv_heads)
    if what == "q":
        return small(record.q[head], most)
    if what == "k":
        return small(record.k[shared], most)
    if what == "z":
        v = record.v[shared].to(record.device).float()
        return Values(array((record.pattern(head, queries)[0] @ v)[:, :most]), record.n_query, v.shape[1])
    if what == "mask":
        found = record.mask(queries, keys, head=head)
    else:
        found = (record.scores if what == "scores" else record.pattern)(head, queries, keys)[0]
    return Values(array(found), record.n_query, record.n_key)


def small(tensor: Tensor, most: int) -> Values:
    """The first `most` × `most` numbers of a [row, column] tensor."""
    return Values(array(tensor[:most, :most]), *tensor.shape)
