"""The parameters of a room: how a link says them, and what is shown where it says nothing.

A value is its text in the link, everywhere: the address, the browser and the session mean the same by it. A room's own functions
read what a text stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import languages
from app.kit import numbers, words
from app.session.link_names import PINNED

RESERVED = (
    "view",
    "model",
    "text",
    "target",
    "step",
    "with",
    "theme",
    "projector",
    "frozen",
    "spotlight",
    "embed",
    "lang",
)  # of the request and of the page
MOST = 4_000  # characters of one value


@dataclass(frozen=True)
class Param:
    """One thing that a visitor can choose in a room: its name in the link, and how its text is read.

    `read` gets the text and what the room shows, and returns the text as this room writes it; it raises ValueError. `default`
    and `allowed` (in words, for a link that asks for something else) may depend on what the room shows.
    """

    name: str
    default: str | Callable[[Any], str]
    read: Callable[[str, Any], str]
    allowed: str | Callable[[Any], str]
    title: str = ""  # by which a sentence names it, where that is not its name in the link
    # The value of a link that leaves it out, by all that it says; "" for the default
    implied: Callable[[Mapping[str, str]], str] | None = None

    def __post_init__(self) -> None:
        if self.name in RESERVED:
            raise ValueError(f"{self.name!r} is a name of the request or of the page")


def one_of(name: str, *values: str) -> Param:
    """One of some words, the first by default."""

    def read(text: str, _: Any) -> str:
        if text not in values:
            raise ValueError
        return text

    return Param(name, values[0], read, ", ".join(values))


def pinned() -> Param:
    """Whether the head stays when the text changes."""

    def read(text: str, _: Any) -> str:
        if text not in ("", "true"):
            raise ValueError
        return text

    return Param(PINNED, "", read, "true")


def whole(name: str, default: str | Callable[[Any], str], below: Callable[[Any], int], empty: bool = False) -> Param:
    """A whole number from 0 up to, and without, `below` of what the room shows; "" too if it may be `empty`."""

    def read(text: str, shown: Any) -> str:
        if empty and not text:
            return ""
        if not (text.isascii() and text.isdecimal() and len(text) <= 12 and int(text) < below(shown)):
            raise ValueError
        return str(int(text))

    return Param(name, default, read, lambda shown: words.WHOLE.format(most=below(shown) - 1))


def number(name: str, default: float, low: float, high: float) -> Param:
    """A number low ≤ x ≤ high, with a point."""

    def read(text: str, _: Any) -> str:
        value = float(text) if len(text) <= 12 else float("nan")
        if not low <= value <= high:
            raise ValueError
        return f"{value:g}"

    return Param(
        name, f"{default:g}", read, lambda _: words.NUMBER.format(low=numbers.plain(low), high=numbers.plain(high))
    )


def opening(params: Sequence[Param], shown: Any) -> dict[str, str]:
    """The text of every parameter by default."""
    return {param.name: param.default if isinstance(param.default, str) else param.default(shown) for param in params}


def read(params: Sequence[Param], shown: Any, said: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The text of every parameter as `said` asks for it, and a sentence for each that cannot be followed.

    `shown` is what the parameters are of, such as the facts of a run.
    """
    values, notes = opening(params, shown), []
    for param in params:
        text = said.get(param.name)
        if text is None and param.implied is not None:
            text = param.implied(said) or None
        if text is None:
            continue
        try:
            if len(text) > MOST:
                raise ValueError
            values[param.name] = param.read(text, shown)
        except (ValueError, KeyError, IndexError):
            allowed = param.allowed if isinstance(param.allowed, str) else param.allowed(shown)
            asked, instead = numbers.quoted(text), values[param.name] or words.NOTHING
            name, allowed = languages.translated(param.title or param.name), languages.translated(allowed)
            notes.append(words.UNKNOWN_PARAM.format(name=name, asked=asked, allowed=allowed, shown=instead))
    return values, notes
