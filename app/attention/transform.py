"""Maps as the screen names them: their axes of tokens or words, and the map that a visitor has opened, as the routes answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.attention import picture
from app.transport import messages
from core.model.text import Tokens, visible
from core.service import Facts, HeadDone, MapTransform, Service, word_groups

FIRST_CELLS = 192 * 192  # up to here the head that is opened comes with a picture that does not hold all of them


def axes(run: Facts, of: MapTransform) -> tuple[list[range], list[range]]:
    """The tokens of each row and of each column of a map."""
    queries, keys = run.tokens_of(of.record)
    return axis(queries, of.words), axis(keys, of.words)


def axis(tokens: Tokens, words: bool) -> list[range]:
    return word_groups(tokens) if words else [range(i, i + 1) for i in range(len(tokens))]


def size(run: Facts, of: MapTransform) -> tuple[int, int]:
    """How many rows and columns a map has."""
    if of.words:
        queries, keys = axes(run, of)
        return len(queries), len(keys)
    site = run.site_of(of.record)
    return site.n_query, site.n_key


def label(tokens: Tokens, group: range) -> str:
    """What stands on the axis for a token, or for the tokens of a word."""
    if len(group) == 1:
        return tokens.labels[group.start]
    return visible(tokens.text[tokens.offsets[group[0]][0] : tokens.offsets[group[-1]][1]])


async def first(service: Service, run: Facts, record: int, head: int, query: int | None) -> tuple[list[Any], bytes]:
    """The head that is opened, and the row of its locked query, as the routes would answer, so that no one asks them.

    [[path, parameters, offset, bytes], ...] and the answers one after the other; nothing where they are too large to come
    with the picture.
    """
    of, site = MapTransform(record, head), run.site_of(record)
    if site.n_query * site.n_key > FIRST_CELLS:
        return [], b""
    tile = await service.tile(run.key, of, (0, site.n_query), (0, site.n_key))
    row = None if query is None else await service.row(run.key, of, query)
    body = messages.Body()
    found = opened(HeadDone(record, head, query, (site.n_query, site.n_key), tile, row))
    index = [[path, params, body.add(np.frombuffer(message, "u1")), len(message)] for path, params, message in found]
    return index, body.bytes()


def opened(head: HeadDone) -> list[tuple[str, dict[str, int], bytes]]:
    """All of one head, and one row of it, as the routes would answer: path, parameters, message."""
    of, named = MapTransform(head.record, head.head), {"record": head.record, "head": head.head}
    n_query, n_key = head.reach
    all_of_it = named | {"q0": 0, "q1": n_query, "k0": 0, "k1": n_key}
    answers = [("tile", all_of_it, picture.tile_message(of, head.tile))]
    if head.query is not None and head.row is not None:
        answers.append(("row", named | {"query": head.query}, picture.row_message(of, head.row)))
    return answers
