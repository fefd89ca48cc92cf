"""The picture that a class reasons with on its phones: rows of the head that is asked about, without the one that is covered."""

from __future__ import annotations

from typing import Any

from app.rooms.lessons import truths
from app.rooms.lessons.step import Shown
from core.service import MapTransform

MOST = 24  # rows and columns that a phone has room for
SIGNS = "0123456789abcdefghijklmnopqrstuvwxyz"  # a weight is one sign, from none of the row to all of it


async def rows(shown: Shown) -> dict[str, Any] | None:
    """Of each row its weights, a sign each; nothing of the row on the screen. None where the text is too long for a phone."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    if max(of.n_query, of.n_key) > MOST:
        return None
    record, _, head, asked = truths.record_of(shown, of)
    queries, keys = facts.tokens_of(record)
    found = []
    for query in range(of.n_query):
        if query == asked:
            found.append("")
            continue
        values = (await shown.service.row(facts.key, MapTransform(record, head), query)).values
        found.append("".join(SIGNS[round((len(SIGNS) - 1) * min(1.0, max(0.0, float(value))))] for value in values))
    return {"queries": list(queries.labels), "keys": list(keys.labels), "row": asked, "rows": found}
