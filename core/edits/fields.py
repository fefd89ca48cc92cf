"""Kinds of fields of an edit: validation of their values, and their format in links.

A kind normalises every accepted form of a value, so that equal edits compare equal. In a link a value consists of A-Z a-z 0-9 . and -,
and every kind recognises its values by their first letter or by a list of words.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from ..errors import InterventionError
from ..model.custom_mask import Cells, Spans

HIGHEST = 10**9  # largest layer, head, token or seed
MAX_PLACES = 1 << 20  # positions in a list


class Kind(Protocol):
    """One kind of field."""

    form: str  # an example of its format in a link, for error messages

    def kept(self, value: Any, name: str) -> Any:
        """The normalised value. Raises InterventionError, naming the field."""
        ...

    def text_of(self, value: Any) -> str:
        """A normalised value in the format of a link."""
        ...

    def read(self, token: str) -> Any:
        """The value of a token of a link; None if it is of another kind. Raises InterventionError."""
        ...


@dataclass(frozen=True)
class Word:
    """One of a few words; `words` maps each to its value."""

    words: Mapping[str, Any]

    @property
    def form(self) -> str:
        return " or ".join(self.words)

    def kept(self, value: Any, name: str) -> Any:
        for known in self.words.values():
            if type(value) is type(known) and value == known:
                return known
        allowed = ", ".join(map(repr, self.words.values()))
        raise InterventionError(f"{name} cannot be {shown(value)}. It is one of {allowed}.")

    def text_of(self, value: Any) -> str:
        return next(word for word, known in self.words.items() if known == value)

    def read(self, token: str) -> Any:
        return self.words.get(token)


@dataclass(frozen=True)
class Whole:
    """An integer after `letter`, at least `lowest`."""

    letter: str = ""
    lowest: int = 0

    @property
    def form(self) -> str:
        return f"{self.letter}3"

    def kept(self, value: Any, name: str) -> int:
        return _whole(value, name, self.lowest)

    def text_of(self, value: int) -> str:
        return f"{self.letter}{value}"

    def read(self, token: str) -> int | None:
        return int(token[len(self.letter) :]) if re.fullmatch(rf"{self.letter}-?[0-9]{{1,12}}", token) else None


@dataclass(frozen=True)
class Number:
    """A finite number above `above`."""

    above: float = -math.inf
    form: str = "0.5"

    def kept(self, value: Any, name: str) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, (str, bool)) or not self.above < number < math.inf:
            above = "" if self.above == -math.inf else f" above {self.above:g}"
            raise InterventionError(f"{name} must be a finite number{above}; {shown(value)} is not. Try 0.5 or 2.")
        return number

    def text_of(self, value: float) -> str:
        return repr(value).removesuffix(".0").replace("+", "")  # a + in a link means a space

    def read(self, token: str) -> float | None:
        number = re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?", token)
        return float(token) if number else None


@dataclass(frozen=True)
class Several:
    """Positions as runs of neighbours: an int, a range, a slice with both ends, or several of them."""

    letter: str

    @property
    def form(self) -> str:
        return f"{self.letter}3 or {self.letter}2-5.9"

    def kept(self, value: Any, name: str) -> Spans:
        return _spans(value, name)

    def text_of(self, value: Spans) -> str:
        return self.letter + ".".join(map(_run, value))

    def read(self, token: str) -> Spans | None:
        if not re.fullmatch(rf"{self.letter}[0-9][0-9.-]*", token):
            return None
        return tuple(_run_of(part, token) for part in token[len(self.letter) :].split("."))


@dataclass(frozen=True)
class SingleCells:
    """Cells (query, key); the key may be several positions, as in Several."""

    form: str = "11x3 or 11x3.12x3-5"

    def kept(self, value: Any, name: str) -> Cells:
        rows: dict[int, list[range]] = {}
        for cell in _each(value, name):
            pair = cell if isinstance(cell, (tuple, list)) else ()
            if len(pair) != 2:
                raise InterventionError(f"{name} holds {shown(cell)}, which is no cell. A cell is (query, key).")
            rows.setdefault(_whole(pair[0], f"A query of {name}"), []).extend(_spans(pair[1], f"A key of {name}"))
        return tuple((query, run) for query in sorted(rows) for run in _merged(rows[query]))

    def text_of(self, value: Cells) -> str:
        return ".".join(f"{query}x{_run(keys)}" for query, keys in value)

    def read(self, token: str) -> Cells | None:
        if not re.fullmatch(r"[0-9]+x[0-9][0-9x.-]*", token):
            return None
        cells = []
        for part in token.split("."):
            query, _, keys = part.partition("x")
            cells.append((_digits(query, token), _run_of(keys, token)))
        return tuple(cells)


@dataclass(frozen=True)
class Distances:
    """(first, last) of key − query. At most one of them is None, for no limit."""

    form: str = "d1.. or d-3..3"

    def kept(self, value: Any, name: str) -> tuple[int | None, int | None]:
        if not isinstance(value, (tuple, list)) or len(value) != 2 or (value[0] is None and value[1] is None):
            raise InterventionError(f"{name} are (first, last), and one may be None, not {shown(value)}.")
        first, last = (None if end is None else _whole(end, f"An end of {name}", -HIGHEST) for end in value)
        if first is not None and last is not None and first > last:
            raise InterventionError(f"{name} go from {first} to {last}, which is nothing. Give the lower one first.")
        return first, last

    def text_of(self, value: tuple[int | None, int | None]) -> str:
        first, last = ("" if end is None else str(end) for end in value)
        return f"d{first}..{last}"

    def read(self, token: str) -> tuple[int | None, int | None] | None:
        match = re.fullmatch(r"d(-?[0-9]{1,12})?\.\.(-?[0-9]{1,12})?", token)
        return tuple(None if end is None else int(end) for end in match.groups()) if match else None  # type: ignore[return-value]


@dataclass(frozen=True)
class Places:
    """A list of positions in the order of the tokens. Runs that rise by one are written as 0-7."""

    form: str = "0-3.5.4"

    def kept(self, value: Any, name: str) -> tuple[int, ...]:
        places: list[int] = []
        for part in _each(value, name):
            if isinstance(part, range):
                if len(part) > MAX_PLACES - len(places):
                    raise InterventionError(f"{name} has more than {MAX_PLACES:,} positions, which is the most.")
                places.extend(_whole(place, f"A position of {name}") for place in part)
            else:
                places.append(_whole(part, f"A position of {name}"))
        if not 0 < len(places) <= MAX_PLACES:
            raise InterventionError(
                f"{name} has {len(places):,} positions. Give 1 to {MAX_PLACES:,}, one for each token."
            )
        return tuple(places)

    def text_of(self, value: tuple[int, ...]) -> str:
        runs: list[range] = []
        for place in value:
            if runs and place == runs[-1].stop:
                runs[-1] = range(runs[-1].start, place + 1)
            else:
                runs.append(range(place, place + 1))
        return ".".join(map(_run, runs))

    def read(self, token: str) -> tuple[range, ...] | None:
        return (
            tuple(_run_of(part, token) for part in token.split(".")) if re.fullmatch(r"[0-9][0-9.-]*", token) else None
        )


def _whole(value: Any, name: str, lowest: int = 0) -> int:
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not lowest <= number <= HIGHEST:
        raise InterventionError(f"{name} must be a whole number from {lowest:,} to {HIGHEST:,}, not {shown(value)}.")
    return number


def _each(value: Any, name: str) -> Iterable[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InterventionError(f"{name} must be a list, not {shown(value)}.")
    return value


def _spans(value: Any, name: str) -> Spans:
    """Any spelling of several positions as sorted runs that do not touch."""
    if isinstance(value, slice):
        if value.stop is None or value.step not in (None, 1):
            raise InterventionError(f"{name} can be a slice with an end and without steps, not {shown(value)}.")
        value = range(value.start or 0, value.stop)
    several = isinstance(value, Iterable) and not isinstance(value, range)
    runs = [run for part in (_each(value, name) if several else [value]) for run in _runs(part, name)]
    if not runs:
        raise InterventionError(f"{name} is empty. Name at least one place, or leave it out to mean all.")
    return _merged(runs)


def _runs(part: Any, name: str) -> Iterable[range]:
    """One position, or a range of them, as runs of neighbours."""
    if not isinstance(part, range):
        position = _whole(part, name)
        return [range(position, position + 1)]
    if part and part.step == 1:
        return [range(_whole(part.start, name), _whole(part.stop - 1, name) + 1)]
    if len(part) > MAX_PLACES:
        raise InterventionError(f"{name} has {len(part):,} places, and {MAX_PLACES:,} is the most.")
    return [range(position, position + 1) for position in (_whole(p, name) for p in part)]


def _merged(runs: Iterable[range]) -> Spans:
    merged: list[range] = []
    for run in sorted(runs, key=lambda run: (run.start, run.stop)):
        if merged and run.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, run.stop))
        else:
            merged.append(range(run.start, run.stop))
    return tuple(merged)


def _run(span: range) -> str:
    return str(span.start) if len(span) == 1 else f"{span.start}-{span.stop - 1}"


def _run_of(part: str, token: str) -> range:
    first, dash, last = part.partition("-")
    start = _digits(first, token)
    stop = _digits(last, token) if dash else start
    if stop < start:
        raise InterventionError(f"“{short(token)}” goes from {start} to {stop}. Write the lower number first.")
    return range(start, stop + 1)


def _digits(text: str, token: str) -> int:
    if not re.fullmatch("[0-9]{1,12}", text):
        raise InterventionError(f"“{short(token)}” is no list of places. Write it like 3, 2-5 or 2-5.9.")
    return int(text)


def short(text: str) -> str:
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= 40 else text[:40] + "…"


def shown(value: Any) -> str:
    return short(repr(value))


StackName = Literal["encoder", "decoder"]
Site = Literal["attn", "cross_attn"]

_STACKS = Word({"encoder": "encoder", "decoder": "decoder"})
_SITES = Word({"self": "attn", "cross": "cross_attn"})

AnyStack = Annotated[StackName | None, _STACKS]
OneStack = Annotated[StackName, _STACKS]
AnySite = Annotated[Site | None, _SITES]
OneSite = Annotated[Site, _SITES]
AnyLayer = Annotated[int | None, Whole("L")]
OneLayer = Annotated[int, Whole("L")]
AnyHead = Annotated[int | None, Whole("H")]
OneHead = Annotated[int, Whole("H")]
