"""The place on the screen: which head, which locked query; and where a picture opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.session import examples

# the place on the screen


@dataclass(frozen=True)
class Place:
    """Which head is on the screen, and which query is locked (None: no query)."""

    site: str
    layer: int
    head: int
    query: int | None

    def params(self) -> dict[str, str]:
        """As it stands in the URL."""
        query = "none" if self.query is None else str(self.query)
        return {"site": self.site, "layer": str(self.layer), "head": str(self.head), "query": query}


def opening_place(header: Mapping[str, Any]) -> Place:
    """Where a picture opens when no place was asked for: by the rule of core.read.head_roles.opening_edges, where that was looked for.

    Else, and so for the model's first example, at the head that this one shows.
    """
    example = examples.shown_for(header["model_id"])[0]
    openings = header.get("openings") or {}
    if openings:
        site = example.site if example.site in openings else next(iter(openings))
        layer, head, query, _ = openings[site]
        return Place(site, layer, head, query)
    place = example_place(header, example)
    if place.query is not None:
        return place
    site = next(s for s in header["sites"] if s["id"] == place.site)
    return replace(place, query=_last_word(header["tokens"][site["query"]]))


def _last_word(labels: list[str]) -> int:
    """The last token but one, or the nearest before it that has a letter: a full stop says nothing of a text."""
    last = max(0, len(labels) - 2)
    spoken = (i for i in range(last, 0, -1) if any(letter.isalnum() for letter in labels[i]))
    return next(spoken, last)


def example_place(header: Mapping[str, Any], example: examples.Example) -> Place:
    """The head and the token that an example is about, in this picture; no query where it has no such token."""
    site = next((s for s in header["sites"] if s["id"] == example.site), header["sites"][0])
    layer, head = min(example.layer, len(site["records"]) - 1), min(example.head, site["heads"] - 1)
    return Place(site["id"], layer, head, example.query_among(header["tokens"][site["query"]]))
