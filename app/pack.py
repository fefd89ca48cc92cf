"""Attention as bytes for the browser: the picture of a run, all its heads, one tile of a large one, or one row.

A message is [u32 length of the header, little-endian][header: JSON, padded to 4 bytes][raw numbers]. Weights travel as
uint16, so a value on the screen is exact to 1/65535; pictures of heads that nobody has opened yet travel as uint8.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from core.attention import AttentionRecord, Thumbnail
from core.rules import REASONS
from core.text import Tokens, visible
from core.trace import Trace

AT_ONCE_BYTES = 300_000  # up to here every weight of every head is part of the picture
WHOLE_BYTES = 1_500_000  # up to here they follow it, so that switching heads needs no server; above, tiles are fetched
THUMBNAIL = 32  # pixels along a side of the small picture of a head
TILE = 512  # cells along a side of a tile; what is larger is pooled
POOL_ROWS = 1024  # a pooled tile looks at every query row up to here, and at evenly spaced ones above
POOL_BLOCK = 64  # rows of a pooled tile worked out together


@dataclass(frozen=True)
class Place:
    """One site of a model: the records, one a layer, that share a kind of attention."""

    id: str  # encoder, decoder or cross: also its name in the URL
    records: tuple[int, ...]  # indices into run.attention, by layer


def places(run: Trace) -> tuple[Place, ...]:
    """The sites of a run in the order of the pass, known before it begins."""
    found, start = [], 0
    for stack, layers in run.config.stacks:
        sites = (stack, "cross") if stack == "decoder" and run.config.kind == "encoder-decoder" else (stack,)
        stop = start + len(sites) * layers
        found += [Place(site, tuple(range(start + i, stop, len(sites)))) for i, site in enumerate(sites)]
        start = stop
    return tuple(found)


def pack(header: dict[str, Any], body: bytes) -> bytes:
    """One message."""
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % 4)  # JSON ignores it, and numbers in the body stay aligned
    return struct.pack("<I", len(head)) + head + body


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the body of a message."""
    (length,) = struct.unpack_from("<I", message)
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def quantised(weights: torch.Tensor, top: int = 65535) -> np.ndarray:
    """Weights in 0..1 as integers 0..top, rounded: uint16, or uint8 for a top of 255."""
    whole = (weights.clamp(0, 1).double() * top).round()
    return whole.cpu().numpy().astype("<u2" if top > 255 else "u1")


def reasons(record: AttentionRecord, queries: Sequence[int], keys: Sequence[int], head: int) -> np.ndarray:
    """[query, key] uint8: why each cell is masked, as an index into REASONS."""
    q, k = (torch.as_tensor(at, device=record.batch_q.device) for at in (queries, keys))
    return record.rule.mask.reasons(q, k, head).cpu().numpy()


class Body:
    """Raw numbers behind one header: each array goes in at a multiple of 4 bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, array: np.ndarray) -> int:
        """The offset at which the array starts."""
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 4)
        start = self.size
        self.parts.append(data)
        self.size += len(data)
        return start

    def bytes(self) -> bytes:
        return b"".join(self.parts)


@dataclass(frozen=True, eq=False)
class Picture:
    """What the browser needs to draw a run, without anything that differs between visitors."""

    header: dict[str, Any]
    body: bytes


def weight_bytes(run: Trace) -> int:
    """What every weight of a run takes on its way to the browser."""
    sites = [_site(run, place) for place in places(run)]
    return sum(2 * len(site["records"]) * site["heads"] * site["n_query"] * site["n_key"] for site in sites)


def picture(run: Trace, key: str, thumbnails: Sequence[Thumbnail] = ()) -> Picture:
    """Every head of a small run; of a larger one its thumbnails, the rest being fetched under `key`.

    `whole` says that all weights are here, `follows` that heads() gives them. `thumbnails` are those of every record where
    they are known already.
    """
    if weight_bytes(run) <= AT_ONCE_BYTES:
        parts = Body()
        sites = [_site(run, place) | _heads(run, place, parts) for place in places(run)]
        ran = {"whole": True, "follows": False, "ids": _ids(run), "sites": sites, "ms": run.seconds * 1000}
        return Picture(_about(run, key) | ran, parts.bytes())
    header = outline(run, key)
    body = bytearray(header.pop("size"))
    for site in header["sites"]:
        for layer, i in enumerate(site["records"]):
            small = thumbnails[i] if thumbnails else run.attention[i].thumbnail(THUMBNAIL)
            at, data = drawn(site, layer, small)
            body[at : at + len(data)] = data
            site["how"] = small.how
    return Picture(header | {"ms": run.seconds * 1000}, bytes(body))


def outline(run: Trace, key: str) -> dict[str, Any]:
    """The header of a larger run's picture, known before the pass begins; `size` is that of the body."""
    sites, size = [_site(run, place) for place in places(run)], 0
    for site in sites:
        rows, columns = min(THUMBNAIL, site["n_query"]), min(THUMBNAIL, site["n_key"])
        site |= {"rows": rows, "columns": columns, "how": "", "thumbnails_at": size}
        size += len(site["records"]) * site["heads"] * rows * columns
        size += -size % 4
    follows = weight_bytes(run) <= WHOLE_BYTES
    return _about(run, key) | {"whole": False, "follows": follows, "ids": None, "sites": sites, "size": size}


def drawn(site: Mapping[str, Any], layer: int, thumbnail: Thumbnail) -> tuple[int, bytes]:
    """The thumbnails of one layer as they stand in a picture's body, and where."""
    data = quantised(thumbnail.values.sqrt(), 255).tobytes()
    return site["thumbnails_at"] + layer * len(data), data


def _about(run: Trace, key: str) -> dict[str, Any]:
    return {
        "key": key,
        "model": run.spec.title,
        "model_id": run.spec.id.partition("@")[0],  # the same at every point of its training
        "kind": run.config.kind,
        "tokens": {
            "source": list(run.source.labels),
            "target": None if run.target is None else list(run.target.labels),
        },
        "words": {"source": _words(run.source), "target": [] if run.target is None else _words(run.target)},
        "joins": {"source": joins(run.source), "target": [] if run.target is None else joins(run.target)},
        "reasons": REASONS,
        "device": run.device,
        "dtype": run.dtype,
    }


def heads(run: Trace) -> bytes:
    """Every weight of every head, as a message: what `picture` left out of a run that is neither small nor large."""
    body = Body()
    sites = [{"id": place.id} | _heads(run, place, body) for place in places(run)]
    return pack({"ids": _ids(run), "sites": sites}, body.bytes())


def norms(run: Trace, place: Place) -> bytes:
    """‖value · W_O‖ of each key as each head of a kind of attention would write it: float32 [layer, head, key], as a message."""
    found = torch.stack([run.attention[i].value_norms() for i in place.records])
    return pack({}, joined(found.cpu().numpy().astype("<f4")))


def groups(tokens: Tokens) -> list[range]:
    """The tokens of each word, in order; a special token, or one that belongs to no word, stands alone."""
    found: list[range] = []
    for i, word in enumerate(tokens.word_ids):
        joins = i > 0 and word is not None and not tokens.special[i] and not tokens.special[i - 1]
        joins = joins and (word, tokens.sequence_ids[i]) == (tokens.word_ids[i - 1], tokens.sequence_ids[i - 1])
        if joins:
            found[-1] = range(found[-1].start, i + 1)
        else:
            found.append(range(i, i + 1))
    return found


def joins(tokens: Tokens) -> list[int]:
    """The tokens with no space between them and the one before: pieces of a word, and punctuation after it."""
    found = []
    for i in range(1, len(tokens)):
        (_, before), (start, stop) = tokens.offsets[i - 1], tokens.offsets[i]
        named = tokens.special[i - 1] or tokens.special[i] or tokens.padding[i]
        if named or start == stop or start > before or before == 0:
            continue
        if not tokens.text[start : start + 1].isspace() and not tokens.text[before - 1 : before].isspace():
            found.append(i)
    return found


def _words(tokens: Tokens) -> list[tuple[int, int, str]]:
    """First token, the one after the last, and text of each word that has more than one token."""
    merged = [group for group in groups(tokens) if len(group) > 1]
    return [(g.start, g.stop, visible(tokens.text[tokens.offsets[g[0]][0] : tokens.offsets[g[-1]][1]])) for g in merged]


def _ids(run: Trace) -> dict[str, list[int]]:
    return {"source": list(run.source.ids), "target": [] if run.target is None else list(run.target.ids)}


def _site(run: Trace, place: Place) -> dict[str, Any]:
    query = "source" if place.id == "encoder" or run.target is None else "target"
    key = "source" if place.id == "cross" else query
    size = {"source": len(run.source), "target": 0 if run.target is None else len(run.target)}
    return {
        "id": place.id,
        "records": place.records,
        "heads": run.config.n_heads,
        "kv_heads": run.config.n_kv_heads,
        "query": query,
        "key": key,
        "n_query": size[query],
        "n_key": size[key],
    }


def _heads(run: Trace, place: Place, body: Body) -> dict[str, Any]:
    records = [run.attention[i] for i in place.records]
    patterns = torch.stack([record.pattern() for record in records])  # [layer, head, query, key]
    weights = body.add(quantised(patterns))
    bits = body.add(entropy(patterns).cpu().numpy().astype("<f4"))
    masks, of = _masks(records, body)
    return {"weights_at": weights, "entropy_at": bits, "masks_at": masks, "mask_of": of}


def _masks(records: Sequence[AttentionRecord], body: Body) -> tuple[list[int], list[list[int]]]:
    """Offsets of the distinct masks, and which of them each layer has: one number, or one a head where heads differ.

    A mask that hides nothing is number -1 and is not sent.
    """
    offsets: list[int] = []
    number: dict[bytes, int] = {}
    of: list[list[int]] = []
    for record in records:
        queries, keys = range(record.n_query), range(record.n_key)
        apart = any(e.head is not None for e in record.rule.mask.edits) or record.rule.mask.given is not None
        row = []
        for head in range(record.n_heads if apart else 1):
            codes = reasons(record, queries, keys, head)
            if not codes.any():
                row.append(-1)
                continue
            data = codes.tobytes()
            if data not in number:
                number[data] = len(offsets)
                offsets.append(body.add(codes))
            row.append(number[data])
        of.append(row)
    return offsets, of


def entropy(pattern: torch.Tensor) -> torch.Tensor:
    """Bits of each row, [..., query] from [..., query, key]: −Σ p log₂ p."""
    return torch.special.entr(pattern).sum(-1) / np.log(2)


def receipt(record: AttentionRecord) -> dict[str, Any]:
    """The proofs on one record, as the component shows them."""
    proof = record.receipt()
    return {"sums": proof.rows_sum_error, "masked": proof.masked_max, "fused": proof.fused_error, "rows": proof.rows}


def tile(
    record: AttentionRecord,
    head: int,
    *,
    rows: tuple[int, int],
    columns: tuple[int, int],
    cells: int = TILE,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """The weights of one head for queries rows[0]..rows[1] and keys columns[0]..columns[1] (ends excluded), as a message.

    Up to cells × cells they are every weight. Larger regions are pooled to at most that: each cell the largest weight of
    its patch, and the header says how it was found, and whatever `more` adds. The body is uint16 weights, then uint8 reasons, both [row, column].
    """
    n_rows, n_columns = min(cells, rows[1] - rows[0]), min(cells, columns[1] - columns[0])
    exact = n_rows == rows[1] - rows[0] and n_columns == columns[1] - columns[0]
    if exact:
        values = record.pattern(head, slice(*rows), slice(*columns))[0]
        codes = reasons(record, range(*rows), range(*columns), head)
        how = ""
    else:

        def some(queries: Sequence[int]) -> torch.Tensor:
            return record.pattern(head, queries, slice(*columns))[0]

        values, how = pooled(some, rows, columns, n_rows, n_columns)
        between = [middles(*rows, n_rows), middles(*columns, n_columns)]
        # A patch counts as masked where its middle is and no weight was found in it.
        codes = np.where(values.cpu().numpy() > 0, 0, reasons(record, between[0], between[1], head)).astype("u1")
    header = {"rows": n_rows, "columns": n_columns, "exact": exact, "how": how} | dict(more or {})
    return pack(header, joined(quantised(values), codes))


def row(record: AttentionRecord, head: int, query: int) -> bytes:
    """Where one query looks, as a message: uint16 weights [key], then uint8 reasons [key]; its entropy in the header."""
    weights = record.row(head, query)
    codes = reasons(record, [query], range(record.n_key), head)[0]
    header = {"rows": 1, "columns": record.n_key, "entropy": float(entropy(weights)), "left": None}
    return pack(header, joined(quantised(weights), codes))


def joined(*arrays: np.ndarray) -> bytes:
    """Arrays one after the other, each at a multiple of 4 bytes."""
    body = Body()
    for array in arrays:
        body.add(array)
    return body.bytes()


def middles(start: int, stop: int, n: int) -> list[int]:
    """The middles of n equal parts of start..stop."""
    return [start + int((i + 0.5) * (stop - start) / n) for i in range(n)]


def pooled(
    some: Callable[[Sequence[int]], torch.Tensor],
    rows: tuple[int, int],
    columns: tuple[int, int],
    n_rows: int,
    n_columns: int,
) -> tuple[torch.Tensor, str]:
    """[n_rows, n_columns] largest weights of what `some` gives for queries, [query, column], and how they were found in words."""
    every = rows[1] - rows[0] <= POOL_ROWS
    queries = list(range(*rows)) if every else middles(*rows, n_rows)
    parts = []
    for start in range(0, len(queries), POOL_BLOCK):
        parts.append(F.adaptive_max_pool1d(some(queries[start : start + POOL_BLOCK]), n_columns))
    values = torch.cat(parts)  # [query, n_columns]
    if len(values) > n_rows:
        values = F.adaptive_max_pool1d(values.T, n_rows).T
    how = "the largest weight of each patch"
    if not every:
        how += f", looking at {n_rows} of {rows[1] - rows[0]:,} query rows"
    return values, how
