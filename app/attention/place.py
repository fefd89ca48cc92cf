"""The place on the screen: which head, which locked query; from a link, from the browser, and carried to the next picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.attention import words
from app.kit import numbers
from app.session import examples
from app.transport import limits

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
    """Where a picture opens when no place was asked for: by the rule of core.read.head_roles.openings, where that was looked for.

    Else, and so for the model's own examples, at the head that its first one shows.
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


def requested_place(header: Mapping[str, Any], params: Mapping[str, str]) -> tuple[Place, list[str]]:
    """The place that URL parameters ask for, with a sentence for each one that this picture cannot show."""
    opening, notes = opening_place(header), []
    sites = {site["id"]: site for site in header["sites"]}
    asked = params.get("site", opening.site)
    if asked not in sites:
        notes.append(
            words.UNKNOWN_SITE.format(asked=numbers.quoted(asked), model=header["model"], known=", ".join(sites))
        )
        asked = opening.site
    site = sites[asked]

    def number(what: str, size: int, default: int) -> int:
        text = params.get(what)
        if text is None:
            return min(default, size - 1)
        asked_for = limits.read(text)
        if asked_for is None:
            notes.append(words.UNREADABLE.format(what=what, asked=numbers.quoted(text), shown=min(default, size - 1)))
            return min(default, size - 1)
        if asked_for >= size:
            shown = min(default, size - 1)
            notes.append(
                words.UNKNOWN_PLACE.format(
                    what=what, asked=asked_for, model=header["model"], shown=shown, low=0, high=size - 1
                )
            )
            return shown
        return asked_for

    layer = number("layer", len(site["records"]), opening.layer)
    head = number("head", site["heads"], opening.head)
    query = None if params.get("query") == "none" else number("query", site["n_query"], opening.query or 0)
    return Place(asked, layer, head, query), notes


def label_of(header: Mapping[str, Any], place: Place) -> str | None:
    """What the locked token of a place reads; None where none is locked."""
    site = next(s for s in header["sites"] if s["id"] == place.site)
    return None if place.query is None else header["tokens"][site["query"]][place.query]


def carried_place(
    header: Mapping[str, Any], place: Place, label: str | None, begin: Callable[[int, int], int] | None = None
) -> Place:
    """The place of the picture before, on a new one: the same head if there is one, the same word if it is there.

    begin(record, head) says at which query to begin reading a head whose word is not there.
    """
    opening = opening_place(header)
    site = next((s for s in header["sites"] if s["id"] == place.site), header["sites"][0])
    layer, head = min(place.layer, len(site["records"]) - 1), min(place.head, site["heads"] - 1)
    labels = header["tokens"][site["query"]]
    query = place.query
    if query is not None and (query >= len(labels) or labels[query] != label):
        if label in labels:
            query = labels.index(label)
        elif begin is not None:
            query = begin(site["records"][layer], head)
        else:
            query = min(opening.query or 0, len(labels) - 1)
    return Place(site["id"], layer, head, query)


def reported_place(header: Mapping[str, Any], told: object) -> Place | None:
    """The place that the browser reports, or None where it does not fit this picture (it may be of the one before)."""
    if not isinstance(told, Mapping) or told.get("key") != header["key"]:
        return None
    site = next((s for s in header["sites"] if s["id"] == told.get("site")), None)
    if site is None:
        return None
    layer = _whole(told.get("layer"), len(site["records"]))
    head = _whole(told.get("head"), site["heads"])
    query = _whole(told.get("query"), site["n_query"])
    if layer is None or head is None or (query is None and told.get("query") is not None):
        return None
    return Place(site["id"], layer, head, query)


def _whole(value: object, size: int) -> int | None:
    """The whole number 0 ≤ value < size that JSON, which has one kind of number, may have made a float of."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < size else None
