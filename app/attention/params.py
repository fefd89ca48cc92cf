"""What can be chosen in a picture of attention, as a link says it: which head, which token, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.attention import place as attention_place
from app.attention import words
from app.kit.params import Param, one_of, pinned
from app.transport import limits

BOUND = re.compile(r"[0-9]{1,7}(\.[0-9]{1,20})?(e-[0-9]{1,2})?", re.ASCII)  # as a browser writes a number
MOST_BOUND = 1e6
NO_QUERY = "none"


@dataclass(frozen=True)
class Shown:
    """What the parameters are of: the header of a picture, and what is asked of it.

    `begin` says at which query to begin reading a head of a record; None where that was not looked for.
    """

    header: Mapping[str, Any]
    said: Mapping[str, str] = field(default_factory=dict)
    begin: Callable[[int, int], int] | None = None

    @property
    def opening(self) -> attention_place.Place:
        """Where the picture opens by rule."""
        return attention_place.opening_place(self.header)

    @property
    def site(self) -> Mapping[str, Any]:
        """The kind of attention that is asked for, or the one it opens with."""
        sites = {site["id"]: site for site in self.header["sites"]}
        return sites.get(self.said.get("site", ""), sites[self.opening.site])

    @property
    def layers(self) -> int:
        return len(self.site["records"])

    def number(self, name: str, below: int, otherwise: int) -> int:
        """A number that is asked for, where the picture has it."""
        text = self.said.get(name, "")
        there = text.isascii() and text.isdecimal() and len(text) <= limits.MOST_DIGITS and int(text) < below
        return int(text) if there else min(otherwise, below - 1)

    @property
    def other_head(self) -> tuple[int, int] | None:
        """Record and head that are asked for; None for the head that the picture opens with, or where no rule says how others begin."""
        opening, site = self.opening, self.site
        layer = self.number("layer", self.layers, opening.layer)
        head = self.number("head", site["heads"], opening.head)
        at_opening = (site["id"], layer, head) == (opening.site, opening.layer, opening.head)
        return None if at_opening or not self.header.get("openings") else (site["records"][layer], head)

    @property
    def first_query(self) -> int:
        """The token at which the head that is asked for is read first."""
        other = self.other_head
        if self.begin is None or other is None:
            return min(self.opening.query or 0, self.site["n_query"] - 1)
        return self.begin(*other)


def _site(text: str, shown: Shown) -> str:
    if text not in {site["id"] for site in shown.header["sites"]}:
        raise ValueError
    return text


def _layer(text: str, shown: Shown) -> str:
    return str(_below(text, shown.layers))


def _head(text: str, shown: Shown) -> str:
    return str(_below(text, shown.site["heads"]))


def _query(text: str, shown: Shown) -> str:
    if text == NO_QUERY or shown.said.get("key"):  # one token is locked, of the two that a link may name the key
        return NO_QUERY
    return str(_below(text, shown.site["n_query"]))


def _flag(url: str) -> Param:
    return one_of(url, "false", "true")


def _percent(text: str, _: Shown) -> str:
    return str(_below(text, 101, 1))


def _members(text: str, shown: Shown) -> str:
    if not text:
        return ""
    pairs = [part.split(".") for part in text.split(",")]
    found = {(_below(layer, shown.layers), _below(head, shown.site["heads"])) for layer, head in pairs}
    return ",".join(f"{layer}.{head}" for layer, head in sorted(found))


def _key(text: str, shown: Shown) -> str:
    return str(_below(text, shown.site["n_key"])) if text else ""


def _keys(text: str, shown: Shown) -> str:
    if not text:
        return ""
    found = sorted({_below(part, shown.site["n_key"]) for part in text.split(",")})
    if len(found) == shown.site["n_key"]:  # a picture of nothing
        raise ValueError
    return ",".join(map(str, found))


def _area(text: str, shown: Shown) -> str:
    if not text:
        return ""
    q0, q1, k0, k1 = text.split(",")
    rows, columns = shown.site["n_query"] + 1, shown.site["n_key"] + 1
    found = [_below(q0, rows), _below(q1, rows), _below(k0, columns), _below(k1, columns)]
    if not (found[0] < found[1] and found[2] < found[3]):
        raise ValueError
    return ",".join(map(str, found))


def bounds(text: str) -> tuple[float, float]:
    """The values at the two ends of the colours, "0.01,0.3". Raises ValueError."""
    parts = text.split(",")
    if len(parts) != 2 or not all(BOUND.fullmatch(part) for part in parts):
        raise ValueError
    low, high = map(float, parts)
    if not (0 <= low < high <= MOST_BOUND):
        raise ValueError
    return low, high


def _bounds(text: str, _: Shown) -> str:
    if text:
        bounds(text)
    return text


def _below(text: str, high: int, low: int = 0) -> int:
    return limits.whole(text, low, high - 1)


def _up_to(most: Callable[[Shown], int]) -> Callable[[Shown], str]:
    return lambda shown: words.WHOLE_UP_TO.format(most=most(shown) - 1)


PLACE = (
    Param("site", lambda s: s.opening.site, _site, lambda s: ", ".join(site["id"] for site in s.header["sites"])),
    Param("layer", lambda s: str(min(s.opening.layer, s.layers - 1)), _layer, _up_to(lambda s: s.layers)),
    Param("head", lambda s: str(min(s.opening.head, s.site["heads"] - 1)), _head, _up_to(lambda s: s.site["heads"])),
    Param("query", lambda s: str(s.first_query), _query, _up_to(lambda s: s.site["n_query"])),
)
COLOURS = Param(  # whether they leave out the token that heads rest on: of a language model they do
    "sink",
    lambda s: "out" if s.header["writes"] and s.site["id"] != "encoder" else "in",
    one_of("sink", "in", "out").read,
    "in, out",
)
OPTIONS = (
    one_of("show", "map", "lines", "beside", "table"),
    one_of("scale", "auto", "linear", "log", "row"),
    Param("bounds", "", _bounds, words.OPTION_BOUNDS),  # values at the ends of the colours; "": as the scale has it
    one_of("kind", "head", "mean", "max", "rollout", "value"),
    Param("heads", "", _members, words.OPTION_HEADS),
    Param("hide", "", _keys, words.OPTION_HIDE),
    Param("key", "", _key, words.OPTION_KEY),
    _flag("words"),
    one_of("columns", "words", "equal"),  # of a short text: as wide as its words, or all alike
    _flag("whole"),  # of a long text all of the map, and not the part that is unfolded
    Param("zoom", "", _area, words.OPTION_ZOOM),  # the part of the map on the screen
    Param("keep", "80", _percent, words.OPTION_KEEP),
    one_of("metric", "auto", "roles", "maps", "entropy", "distance", "sink", "previous", "induction", "diagonal"),
    _flag("sort"),
    one_of(  # the number that colours the map of all heads
        "by", "auto", "adds", "look", "first", "back", "far", "spread", "like"
    ),
    one_of("candidate", "0", "1", "2", "3", "4"),  # for the next word, that heads add to
    one_of("low", "auto", "head", "looks", "maps"),  # what is below it: this head, the row, or small maps
    _flag("predict"),  # the next word is hidden until it is guessed
)
PARAMS = (*PLACE, pinned(), COLOURS, *OPTIONS)
OF_TEXT = ("zoom",)


def place_of(values: Mapping[str, str]) -> attention_place.Place:
    """The place that values of PARAMS say."""
    query = None if values["query"] == NO_QUERY else int(values["query"])
    return attention_place.Place(values["site"], int(values["layer"]), int(values["head"]), query)
