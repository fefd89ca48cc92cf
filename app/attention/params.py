"""How a picture is shown, as a link says it and as the browser reports it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.attention import place as attention_place
from app.attention import words
from app.kit import numbers
from app.transport import limits

# the options beside the place: how the picture is shown
BOUND = re.compile(r"[0-9]{1,7}(\.[0-9]{1,20})?(e-[0-9]{1,2})?", re.ASCII)  # as a browser writes a number
MOST_BOUND = 1e6


@dataclass(frozen=True)
class Option:
    """One way to show a picture: its name in the URL, what it is where the URL says nothing, and how its text is read."""

    url: str
    default: Any
    read: Callable[[str, Mapping[str, Any]], Any]  # text, site of the header -> value; raises ValueError
    allowed: str  # in words, for a link that asks for something else


def _one_of(url: str, *values: str) -> Option:
    def read(text: str, _: Mapping[str, Any]) -> str:
        if text not in values:
            raise ValueError
        return text

    return Option(url, values[0], read, ", ".join(values))


def _flag(url: str) -> Option:
    def read(text: str, _: Mapping[str, Any]) -> bool:
        return {"true": True, "false": False}[text]  # KeyError is caught beside ValueError

    return Option(url, False, read, "true, false")


def _percent(text: str, _: Mapping[str, Any]) -> int:
    return _below(text, 101, 1)


def _members(text: str, site: Mapping[str, Any]) -> list[list[int]]:
    pairs = [part.split(".") for part in text.split(",")]
    found = [[_below(layer, len(site["records"])), _below(head, site["heads"])] for layer, head in pairs]
    return sorted({tuple(pair): pair for pair in found}.values())


def _key(text: str, site: Mapping[str, Any]) -> int:
    return _below(text, site["n_key"])


def _keys(text: str, site: Mapping[str, Any]) -> list[int]:
    found = sorted({_below(part, site["n_key"]) for part in text.split(",")})
    if len(found) == site["n_key"]:  # a picture of nothing
        raise ValueError
    return found


def _area(text: str, site: Mapping[str, Any]) -> list[int]:
    q0, q1, k0, k1 = text.split(",")
    rows, columns = site["n_query"] + 1, site["n_key"] + 1
    found = [_below(q0, rows), _below(q1, rows), _below(k0, columns), _below(k1, columns)]
    if not (found[0] < found[1] and found[2] < found[3]):
        raise ValueError
    return found


def bounds(text: str) -> tuple[float, float]:
    """The values at the two ends of the colours, "0.01,0.3". Raises ValueError."""
    parts = text.split(",")
    if len(parts) != 2 or not all(BOUND.fullmatch(part) for part in parts):
        raise ValueError
    low, high = map(float, parts)
    if not (0 <= low < high <= MOST_BOUND):
        raise ValueError
    return low, high


def _bounds(text: str, _: Mapping[str, Any]) -> list[float]:
    return [*bounds(text)]


def _below(text: str, high: int, low: int = 0) -> int:
    return limits.whole(text, low, high - 1)


OPTIONS: dict[str, Option] = {
    "show": _one_of("show", "map", "lines", "table"),
    "scale": _one_of("scale", "auto", "linear", "log", "row"),
    "bounds": Option("bounds", None, _bounds, words.OPTION_BOUNDS),  # values at the ends of the colours
    "kind": _one_of("kind", "head", "mean", "max", "rollout", "value"),
    "members": Option("heads", [], _members, words.OPTION_HEADS),
    "hide": Option("hide", [], _keys, words.OPTION_HIDE),
    "pin": Option("key", None, _key, words.OPTION_KEY),
    "words": _flag("words"),
    "widths": _one_of("columns", "words", "equal"),  # of a short text: as wide as its words, or all alike
    "whole": _flag("whole"),  # of a long text all of the map, and not the part that is unfolded
    "area": Option("zoom", None, _area, words.OPTION_ZOOM),  # the part of the map on the screen
    "keep": Option("keep", 80, _percent, words.OPTION_KEEP),
    "metric": _one_of(
        "metric", "auto", "roles", "maps", "entropy", "distance", "sink", "previous", "induction", "diagonal"
    ),
    "sort": _flag("sort"),
    "spotlight": _flag("spotlight"),
    "frozen": _flag("frozen"),
}


def default_options() -> dict[str, Any]:
    """Every option at its default."""
    return {name: option.default for name, option in OPTIONS.items()}


def requested_options(
    header: Mapping[str, Any], site: str, params: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """The options that URL parameters ask for, with a sentence for each one that cannot be followed."""
    shown, notes = default_options(), []
    where = next(s for s in header["sites"] if s["id"] == site)
    for name, option in OPTIONS.items():
        text = params.get(option.url)
        if text is None:
            continue
        try:
            shown[name] = option.read(text, where)
        except (ValueError, KeyError):
            asked = numbers.quoted(text)
            notes.append(words.UNKNOWN_OPTION.format(what=option.url, asked=asked, allowed=option.allowed))
    return shown, notes


def option_params(options: Mapping[str, Any]) -> dict[str, str]:
    """URL parameters of the options that differ from their defaults."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return ",".join(".".join(map(str, part)) if isinstance(part, list) else str(part) for part in value)
        return str(value)

    return {o.url: text(options[name]) for name, o in OPTIONS.items() if options[name] != o.default}


def reported_options(header: Mapping[str, Any], site: str, told: object) -> dict[str, Any] | None:
    """The options that the browser reports, in the URL's own words; None where they do not fit this picture."""
    if not isinstance(told, Mapping) or not all(isinstance(part, str) for pair in told.items() for part in pair):
        return None
    options, notes = requested_options(header, site, told)
    return None if notes else options


def carried_options(
    before: Mapping[str, Any],
    options: Mapping[str, Any],
    old: attention_place.Place,
    header: Mapping[str, Any],
    place: attention_place.Place,
) -> dict[str, Any]:
    """The options of the picture before (its header is `before`), on a new one: hidden tokens stay hidden where they are still there.

    Heads that were put together are of their model.
    """
    source = next((s for s in before["sites"] if s["id"] == old.site), None)
    site = next(s for s in header["sites"] if s["id"] == place.site)
    known = options["members"] if before["model_id"] == header["model_id"] else []
    members = [pair for pair in known if pair[0] < len(site["records"]) and pair[1] < site["heads"]]
    was = [] if source is None else before["tokens"][source["key"]]
    now = header["tokens"][site["key"]]

    def there(key: int) -> int | None:
        """Where the same token is, counted from the front or from the end."""
        places = (key, key - len(was) + len(now))
        return next((at for at in places if was and 0 <= at < len(now) and now[at] == was[key]), None)

    hide = sorted({at for key in options["hide"] if (at := there(key)) is not None})
    pin = None if options["pin"] is None else there(options["pin"])
    return {**options, "members": members, "hide": hide if len(hide) < site["n_key"] else [], "pin": pin, "area": None}
