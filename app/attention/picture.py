"""Attention as bytes for the browser: the picture of a run, all its heads, one tile of a large one, or one row.

A message is [u32 length of the header, little-endian][header: JSON, padded to 4 bytes][raw numbers]. Weights travel as
uint16, so a value on the screen is exact to 1/65535; pictures of heads that no one has opened yet travel as uint8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.attention import words
from app.transport import messages
from core.errors import HeadlightError
from core.model.rules import REASONS
from core.model.text import Tokens, shared_characters, visible
from core.read.head_roles import OpeningEdge, Role
from core.service import (
    AT_ONCE,
    THUMBNAIL,
    Column,
    Facts,
    Finding,
    HeadAdditions,
    Heads,
    HeadWords,
    MapTransform,
    NextWord,
    Receipt,
    ResidualProfile,
    Row,
    Scores,
    Sink,
    Site,
    SiteId,
    Thumbnails,
    Tile,
    word_groups,
)

WHOLE = 750_000  # weights up to which all follow the picture, so that switching heads needs no server; above, tiles are fetched


@dataclass(frozen=True, eq=False)
class Picture:
    """What the browser needs to draw a run, without anything that differs between visitors."""

    header: dict[str, Any]
    body: bytes


def whole_picture(
    run: Facts,
    heads: Mapping[SiteId, Heads],
    openings: Sequence[OpeningEdge] = (),
    roles: Sequence[Sequence[Role]] = (),
    look: Finding | None = None,
    sinks: Mapping[SiteId, Sink | None] | None = None,
) -> Picture:
    """Every head of a small run.

    openings are where it opens, by kind of attention; none: at the head of the model's example. roles are what each head of
    each record does; none: they are fetched. look is the one look that says most of this run. sinks are the tokens
    that heads rest on, by kind of attention.
    """
    parts = messages.Body()
    sites = [_site(site) | _heads(heads[site.id], parts) for site in run.sites]
    ran: dict[str, Any] = {"whole": True, "follows": False, "ids": _ids(run), "sites": sites, "ms": run.seconds * 1000}
    if roles:
        ran["roles"] = roles_message(roles)
    ran |= _opens(openings, look, sinks)
    return Picture(_about(run) | ran, parts.bytes())


def _opens(
    openings: Sequence[OpeningEdge], look: Finding | None, sinks: Mapping[SiteId, Sink | None] | None
) -> dict[str, Any]:
    found: dict[str, Any] = {"openings": {id_of(o): [o.layer, o.head, o.query, o.key] for o in openings}}
    if look is not None:
        found["look"] = finding_message(look)
    return found | {"sinks": {site: sink_message(sink) for site, sink in (sinks or {}).items()}}


def larger_picture(
    run: Facts,
    openings: Sequence[OpeningEdge] = (),
    look: Finding | None = None,
    sinks: Mapping[SiteId, Sink | None] | None = None,
) -> Picture:
    """A larger run without numbers: small pictures, maps and rows are fetched under its key. The rest as in whole_picture()."""
    return Picture(outline(run) | _opens(openings, look, sinks) | {"ms": run.seconds * 1000}, b"")


def with_small_pictures(picture: Picture, thumbnails: Sequence[Thumbnails]) -> Picture:
    """The same picture with the thumbnails of every record in its body, for who can fetch nothing more."""
    body, sites = bytearray(picture.header["size"]), [dict(site) for site in picture.header["sites"]]
    for site in sites:
        for layer, i in enumerate(site["records"]):
            at, data = drawn(site, layer, thumbnails[i])
            body[at : at + len(data)] = data
            site |= {"how": thumbnails[i].how, "has_small": True}
    return Picture(picture.header | {"sites": sites}, bytes(body))


def small_pictures_message(run: Facts, thumbnails: Sequence[Thumbnails], start: int = 0) -> bytes:
    """The small pictures of the records from `start` on, in the order of the pass: uint8 [head, row, column] of each.

    parts in the header are [kind of attention, layer, offset in the body, bytes, how it was made].
    """
    layers = layers_of(outline(run)["sites"])
    body, parts = messages.Body(), []
    for i in range(start, len(thumbnails)):
        site, layer = layers[i]
        _, data = drawn(site, layer, thumbnails[i])
        at = body.add(np.frombuffer(data, "u1"))
        parts.append((site["id"], layer, at, len(data), thumbnails[i].how))
    return messages.pack({"parts": parts}, body.bytes())


def layers_of(sites: Sequence[dict[str, Any]]) -> dict[int, tuple[dict[str, Any], int]]:
    """By record, in the order of the pass: its kind of attention and layer."""
    return {i: (site, layer) for site in sites for layer, i in enumerate(site["records"])}


def id_of(opening: OpeningEdge | Finding) -> SiteId:
    """The kind of attention that an opening or a finding is of."""
    return "cross" if opening.site == "cross_attn" else "encoder" if opening.stack == "encoder" else "decoder"


def is_whole(run: Facts) -> bool:
    """Whether every weight is part of the picture."""
    return run.weights <= AT_ONCE


def outline(run: Facts) -> dict[str, Any]:
    """The header of a larger run's picture, known before the pass begins; `size` is that of the body.

    `follows` says that the other weights come after it, as heads_message() has them.
    """
    sites, size = [_site(site) for site in run.sites], 0
    for site in sites:
        rows, columns = min(THUMBNAIL, site["n_query"]), min(THUMBNAIL, site["n_key"])
        site |= {"rows": rows, "columns": columns, "how": "", "thumbnails_at": size}
        size += len(site["records"]) * site["heads"] * rows * columns
        size += -size % 4
    return _about(run) | {
        "whole": False,
        "follows": run.weights <= WHOLE,
        "ids": None,
        "sites": sites,
        "size": size,
    }


def drawn(site: Mapping[str, Any], layer: int, thumbnails: Thumbnails) -> tuple[int, bytes]:
    """The thumbnails of one layer as they stand in a picture's body, and where."""
    data = messages.quantised(np.sqrt(thumbnails.values), 255).tobytes()
    return site["thumbnails_at"] + layer * len(data), data


def _about(run: Facts) -> dict[str, Any]:
    return {
        "key": run.key,
        "model": run.spec.title,
        "model_id": run.spec.id.partition("@")[0],  # the same at every point of its training
        "kind": run.config.kind,
        "tokens": {
            "source": list(run.source.labels),
            "target": None if run.target is None else list(run.target.labels),
        },
        "words": {"source": _words(run.source), "target": [] if run.target is None else _words(run.target)},
        "turns": {"source": turns(run.source), "target": []},
        "joins": {"source": joins(run.source), "target": [] if run.target is None else joins(run.target)},
        "reasons": REASONS,
        # of a model that takes longer texts too; one with a table of positions refuses them
        "learnt": None if run.config.has_position_table else run.config.n_ctx,
        "writes": run.writes,  # the next word, after each token that a decoder reads
        "device": run.device,
        "dtype": run.dtype,
        **({"brought": True} if run.spec.source == "weights" else {}),  # nothing but the weights is known
    }


def heads_message(run: Facts, heads: Mapping[SiteId, Heads]) -> bytes:
    """Every weight of every head: what the picture left out of a run that is neither small nor large."""
    body = messages.Body()
    sites = [{"id": site.id} | _heads(heads[site.id], body) for site in run.sites]
    return messages.pack({"ids": _ids(run), "sites": sites}, body.bytes())


def roles_message(roles: Sequence[Sequence[Role]]) -> list[list[tuple[str, float]]]:
    """By record and head the name of what it does, and the share of its average row that goes there."""
    return [[(role.name, round(role.share, 6)) for role in heads] for heads in roles]


def norms_message(norms: np.ndarray) -> bytes:
    """‖value · W_O‖ of each key as each head of a site would write it: float32 [layer, head, key]."""
    return messages.pack({}, messages.joined(messages.float32(norms)))


def joins(tokens: Tokens) -> list[int]:
    """The tokens with no space between them and the one before: pieces of a word, and punctuation after it.

    Not a part of a character, which is written as the whole character and which part of it this is.
    """
    found, parts = [], [n for _, n in shared_characters(tokens.offsets)]
    for i in range(1, len(tokens)):
        (_, before), (start, stop) = tokens.offsets[i - 1], tokens.offsets[i]
        named = tokens.special[i - 1] or tokens.special[i] or tokens.padding[i]
        if named or start == stop or start > before or before == 0 or parts[i] > 1 or parts[i - 1] > 1:
            continue
        if not tokens.text[start : start + 1].isspace() and not tokens.text[before - 1 : before].isspace():
            found.append(i)
    return found


def turns(tokens: Tokens) -> list[tuple[int, str]]:
    """Where each turn of a conversation begins, and whose it is; none of a text as it is."""
    if not tokens.is_chat:
        return []
    roles = (None, *tokens.roles)
    begins = [i for i, role in enumerate(tokens.roles) if role != roles[i]]
    return [(i, tokens.roles[i] or "") for i in begins]


def _words(tokens: Tokens) -> list[tuple[int, int, str]]:
    """First token, the one after the last, and text of each word that has more than one token."""
    merged = [group for group in word_groups(tokens) if len(group) > 1]
    return [(g.start, g.stop, visible(tokens.text[tokens.offsets[g[0]][0] : tokens.offsets[g[-1]][1]])) for g in merged]


def _ids(run: Facts) -> dict[str, list[int]]:
    return {"source": list(run.source.ids), "target": [] if run.target is None else list(run.target.ids)}


def _site(site: Site) -> dict[str, Any]:
    return {
        "id": site.id,
        "records": site.records,
        "heads": site.n_heads,
        "kv_heads": site.n_kv_heads,
        "query": site.query,
        "key": site.key,
        "n_query": site.n_query,
        "n_key": site.n_key,
    }


def _heads(heads: Heads, body: messages.Body) -> dict[str, Any]:
    weights = body.add(messages.quantised(heads.weights))
    bits = body.add(messages.float32(heads.entropy))
    masks = [body.add(mask) for mask in heads.masks]
    return {
        "weights_at": weights,
        "entropy_at": bits,
        "masks_at": masks,
        "mask_of": [list(of) for of in heads.mask_index],
    }


def tile_message(of: MapTransform, tile: Tile) -> bytes:
    """A region of a map: values, then uint8 reasons, both [row, column].

    Weights of one head as they are travel as uint16, everything else as float32, with the largest value (top) and what is
    left of each row where keys are hidden (left). `most` is the token that gets the most, of a whole map.
    """
    rows, columns = tile.values.shape
    header: dict[str, Any] = {"rows": rows, "columns": columns, "exact": tile.exact, "how": tile.how}
    header |= {} if tile.sink is None else {"most": tile.sink}
    if of.is_plain:
        return messages.pack(header, messages.joined(messages.quantised(tile.values), tile.reasons))
    header |= {"numbers": "float32", "top": float(tile.values.max())}
    header |= {"left": None if tile.visible is None else tile.visible.tolist()} if tile.exact else {}
    return messages.pack(header, messages.joined(messages.float32(tile.values), tile.reasons))


def row_message(of: MapTransform, row: Row) -> bytes:
    """One row of a map: values as in a tile, then reasons; its entropy and what is left of it in the header."""
    header: dict[str, Any] = {"rows": 1, "columns": len(row.values), "entropy": row.entropy, "left": row.visible}
    if of.is_plain:
        return messages.pack(header, messages.joined(messages.quantised(row.values), row.reasons))
    return messages.pack(header | {"numbers": "float32"}, messages.joined(messages.float32(row.values), row.reasons))


def column_message(column: Column) -> bytes:
    """Who looks at one column of a map: float32 values, then reasons, both [row]."""
    header = {"rows": len(column.values), "columns": 1, "numbers": "float32"}
    return messages.pack(header, messages.joined(messages.float32(column.values), column.reasons))


def heads_numbers_message(found: np.ndarray) -> bytes:
    """One number of every head, float32 [layer, head]: the weight of a cell, say."""
    return messages.pack({"layers": found.shape[0], "heads": found.shape[1]}, messages.joined(messages.float32(found)))


def finding_message(found: Finding) -> dict[str, Any]:
    """One look, its kind and its numbers; those that it does not have are left out."""
    said = {"kind": found.kind, "site": id_of(found), "layer": found.layer, "head": found.head}
    said |= {"query": found.query, "key": found.key, "weight": round(found.weight, 6), "word": found.word}
    numbers = {"addition": found.addition, "habit": found.habit, "mean": found.mean}
    return said | {name: round(x, 6) for name, x in numbers.items() if x is not None}


def additions_message(found: HeadAdditions, candidate: int | None = None) -> bytes:
    """The additions of all heads to the likeliest words, float32 [word, layer, head], and these words in the header.

    With a candidate the additions to that word alone, [layer, head]; of fewer words, to the last.
    """
    n_words, layers, heads = found.values.shape
    header = {"words": found.words, "layers": layers, "heads": heads}
    values = found.values if candidate is None else found.values[min(candidate, n_words - 1)]
    return messages.pack(header, messages.joined(messages.float32(values)))


def words_message(found: HeadWords) -> dict[str, Any]:
    """The additions of the looks of one head, by key, and the words that it raises and lowers."""
    additions = [round(x, 5) for x in found.additions.astype(float).tolist()]
    return {"additions": additions, "raised": found.raised, "lowered": found.lowered, "among": found.among}


def proof_message(found: Receipt) -> dict[str, float | None]:
    """The receipt of one record."""
    return {"sums": found.rows_sum_error, "masked": found.masked_max, "fused": found.fused_error, "rows": found.rows}


def sink_message(found: Sink | None) -> dict[str, Any]:
    """The token that heads rest on, and the share of each; without a key where no row may see two tokens."""
    if found is None:
        return {"key": None, "is": False, "between": [0, 0], "shares": []}
    shares = np.nan_to_num(found.shares.astype(float)).round(4).tolist()  # of a run whose numbers are not finite
    between = np.nan_to_num(found.between).tolist()
    return {"key": found.key, "is": found.is_sink, "between": between, "shares": shares}


def sink_packed(found: Sink | None) -> bytes:
    """The same with the shares as float32 [layer, head]: of thousands of heads half of the bytes."""
    said = sink_message(found)
    shares = np.array(said.pop("shares"), np.float32)
    layers, heads = shares.shape if shares.ndim == 2 else (0, 0)
    return messages.pack(said | {"layers": layers, "heads": heads}, messages.joined(messages.float32(shares)))


def strip_message(found: ResidualProfile) -> dict[str, Any]:
    """The whole model at one word, in five digits: a screen says three.

    Raises Refused where a number of it is infinite or undefined.
    """
    numbers = [
        found.stream,
        *found.lengths.values(),
        *(found.adds or {}).values(),
        *(() if found.wires is None else found.wires),
    ]
    if found.next_word is not None:
        numbers.append(np.array(found.next_word[1]))
    if not all(np.isfinite(values).all() for values in numbers):
        raise HeadlightError(words.ROUTE_STRIP)

    def rounded(values: np.ndarray) -> list[float]:
        return [float(f"{x:.5g}") for x in values.tolist()]

    return {
        "position": found.position,
        "stream": rounded(found.stream),
        "parts": [
            {
                "name": name,
                "lengths": rounded(lengths),
                "adds": None if found.adds is None else rounded(found.adds[name]),
            }
            for name, lengths in found.lengths.items()
        ],
        "next": found.next_word,
        "wires": None if found.wires is None else [rounded(row) for row in found.wires],
    }


def next_message(found: Sequence[NextWord], labels: Sequence[str]) -> dict[str, Any]:
    """What the model is about to write: by position its likeliest words and the text's own next one, [label, probability, rank]."""
    rows = {
        word.position: {
            "words": [[label, p] for label, p in word.words],
            "given": None if word.given is None else [labels[word.position + 1], *word.given],
        }
        for word in found
    }
    return {"rows": rows, "vocabulary": found[0].vocabulary if found else 0}


def scores_message(scores: Scores) -> bytes:
    """What the softmax of one row is made of: float32 q·k, then float32 (q·k · scale + bias) / temperature, then its terms."""
    header = {"columns": len(scores.raw), "biased": scores.biased, "terms": [*scores.terms]}
    parts = (scores.raw, scores.scaled, *scores.terms.values())
    return messages.pack(header, messages.joined(*map(messages.float32, parts)))
