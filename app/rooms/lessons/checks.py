"""The check of an answer: what was said, what is true, and the same words for right and wrong. browser/check.js does the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from app.kit import numbers
from app.rooms.lessons import words
from app.rooms.lessons.step import Candidate, Place, Truth
from app.transport import modules

modules.add("rooms/lessons/browser", Path(__file__).parent / "browser")
modules.add_constants(
    "rooms/lessons/browser/words.js",
    ANSWER=lambda: words.ANSWER,
    NO_ANSWER=lambda: words.NO_ANSWER,
    REPLY=lambda: words.REPLY,
)

NEAR = 0.01  # two candidates this far apart, as a share of the larger, are a tie: both are right
LARGEST = 1e12  # a number that can be said
MOST_PARTS = 4000  # of an answer that names several things


@dataclass(frozen=True)
class Checked:
    """An answer beside what is true. `words` are whole sentences; right and wrong both get the reason and the footer."""

    said: str
    true: str
    rank: int | None  # of what was pointed at, 1 for the best; None for other kinds
    right: bool
    words: tuple[str, ...]


def check(truth: Truth, answer: object) -> Checked:
    """An answer as the browser sends it: places (point), a number (drag), sizes (shape), options by number (choose), or
    parameters of the room (do). What cannot be read is no answer and gets a sentence.
    """
    checked = {"point": _point, "drag": _drag, "shape": _shape, "choose": _choose, "do": _do}[truth.kind](truth, answer)
    if checked is None:
        return Checked("", "", None, False, (words.NO_ANSWER[truth.kind],))
    after = tuple(filter(None, (_remark(truth, checked), truth.reason, truth.slip, truth.footer)))
    return Checked(checked.said, checked.true, checked.rank, checked.right, (*checked.words, *after))


def _remark(truth: Truth, checked: Checked) -> str:
    """The sentence that a lesson has for this right answer; "" where it has none."""
    return next((sentence for said, sentence in truth.remarks if checked.right and said == checked.said), "")


def ties(values: Sequence[float]) -> int:
    """How many of the values, the best first, are the best: it and what is within NEAR of it."""
    return sum(abs(values[0] - value) <= NEAR * abs(values[0]) for value in values)


def _point(truth: Truth, answer: object) -> Checked | None:
    said = places_of(answer, truth)
    if not said:
        return None
    found = truth.candidates
    right = {candidate.place for candidate in found[: truth.best]}
    tops = named([candidate.label for candidate in found[: truth.best]])
    if truth.all_of:
        hit = sum(place in right for place in said)
        extra = len(said) - hit
        is_right = hit == len(right) and not extra
        first = words.ANSWER["all_right" if is_right else "all_said"].format(hit=hit, of=len(right), extra=extra)
        second = words.ANSWER["all_are"].format(true=tops)
        return Checked(words.ANSWER["places"].format(n=len(said)), tops, None, is_right, (first, second))
    chosen = next(candidate for candidate in found if candidate.place == said[0])
    is_right = said[0] in right
    rank = 1 if is_right else 1 + sum(candidate.value > chosen.value for candidate in found)
    return Checked(chosen.label, tops, rank, is_right, _pointed(truth, chosen, rank, tops, is_right))


def _pointed(truth: Truth, chosen: Candidate, rank: int, tops: str, is_right: bool) -> tuple[str, str]:
    """What is said to one thing that was pointed at."""
    names = {"word": chosen.label, "rank": rank, "n": len(truth.candidates), "top": tops}
    names |= {"value": _value(truth, chosen.value), "best": _value(truth, truth.candidates[0].value)}
    first = words.ANSWER[f"{truth.form}_said"].format(**names)
    if is_right and truth.best > 1:
        return first, words.ANSWER["tied"].format(**names)
    return first, words.ANSWER[f"{truth.form}_right" if is_right else f"{truth.form}_top"].format(**names)


def _value(truth: Truth, value: float) -> str:
    if not truth.share:
        return number_words(value, truth.unit, truth.digits)
    return words.ANSWER["nearly"] if 0.9995 <= value < 1 else number_words(100 * value, "%", 1)  # 100 % is all of it


def places_of(answer: object, truth: Truth) -> list[Place]:
    """The places that an answer names, each once, in order; [] where it cannot be read or names one that is not there."""
    if not _is_list(answer):
        answer = [answer]
    parts = [part for part in answer if _is_list(part)]
    listed = parts if len(parts) == len(answer) else [answer]
    known = {candidate.place for candidate in truth.candidates}
    found: list[Place] = []
    for part in listed[:MOST_PARTS]:
        place = tuple(whole for number in part if (whole := _whole(number)) is not None)
        if len(place) != len(part) or place not in known:
            return []
        if place not in found:
            found.append(place)
    return found if truth.all_of or len(found) == 1 else []


def _drag(truth: Truth, answer: object) -> Checked | None:
    said = _number(answer)
    if said is None:
        return None
    off = said - truth.number
    is_right = abs(off) <= truth.tolerance + 1e-9 * max(1.0, abs(truth.number))
    given, true = (number_words(value, truth.unit, truth.digits) for value in (said, truth.number))
    second = words.ANSWER["is"].format(true=true)
    if is_right:
        return Checked(given, true, None, True, (words.ANSWER["plain_said"].format(word=given), second))
    far = _between(abs(off), truth)
    first = words.ANSWER["too_much" if off > 0 else "too_little"].format(word=given, far=far)
    return Checked(given, true, None, False, (first, second))


def _between(off: float, truth: Truth) -> str:
    """How far apart two numbers are. Shares differ by percentage points: 12 % is 2 of them, and 20 %, above 10 %."""
    if truth.unit != "%":
        return number_words(off, truth.unit, truth.digits)
    said = number_words(off, "", truth.digits)
    return f"{said} {words.ANSWER['point' if said == '1' else 'points']}"


def _shape(truth: Truth, answer: object) -> Checked | None:
    if not _is_list(answer) or not 1 <= len(answer) <= 8:
        return None
    sizes = [str(_whole(part) if _whole(part) is not None else part) for part in answer if _is_size(part)]
    if len(sizes) != len(answer):
        return None
    said, true = shape_words(sizes), shape_words(truth.axes)
    is_right = tuple(sizes) == truth.axes
    first, second = (
        words.ANSWER["plain_said"].format(word=said),
        words.ANSWER["plain_right" if is_right else "plain_top"].format(top=true),
    )
    return Checked(said, true, None, is_right, (first, second))


def _choose(truth: Truth, answer: object) -> Checked | None:
    if not _is_list(answer):
        answer = [answer]
    picked = list(dict.fromkeys(_whole(part) for part in answer[:MOST_PARTS]))
    options = [part for part in picked if part is not None and part < len(truth.options)]
    if not options or len(options) != len(picked) or (len(options) > 1 and not truth.all_of):
        return None
    options.sort()
    last = words.ANSWER["and" if truth.all_of else "or"]
    said, true = (named([truth.options[i] for i in some], last) for some in (options, truth.right))
    is_right = options == sorted(truth.right) if truth.all_of else options[0] in truth.right
    first, second = (
        words.ANSWER["chosen"].format(word=said),
        words.ANSWER["chosen_right" if is_right else "chosen_top"].format(top=true),
    )
    return Checked(said, true, None, is_right, (first, second))


def _do(truth: Truth, answer: object) -> Checked | None:
    if not isinstance(answer, Mapping):
        return None
    wanted: Mapping[str, Any] = truth.values or {}
    is_right = all(answer.get(name) == value for name, value in wanted.items())
    return Checked("", "", None, is_right, (words.ANSWER["done" if is_right else "not_done"],))


def number_words(value: float, unit: str, digits: int) -> str:
    """A number as it is said: "30.566 MiB", "66.6 %", "623 tokens". Halves go up, here and in the browser."""
    rounded = math.floor(value * 10**digits + 0.5) / 10**digits
    text = numbers.fixed(abs(rounded), digits) + (f" {unit}" if unit else "")
    return f"−{text}" if rounded < 0 else text


def shape_words(axes: Sequence[str]) -> str:
    """ "[4, 3, 2]"."""
    return f"[{', '.join(axes)}]"


def named(labels: Sequence[str], last: str = "") -> str:
    """ "a", "a and b", "a, b and c"; of many the first three and how many more."""
    if len(labels) > 8:
        return words.ANSWER["more"].format(first=", ".join(labels[:3]), n=len(labels) - 3)
    return (last or words.ANSWER["and"]).join(filter(None, [", ".join(labels[:-1]), labels[-1]])) if labels else ""


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_size(value: object) -> bool:
    return _whole(value) is not None or (isinstance(value, str) and len(value) <= 40)


def _whole(value: object) -> int | None:
    """A whole number from 0 that JSON, which has one kind of number, may have made a float of."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def _number(value: object) -> float | None:
    """A finite number of a size that can be said."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST else None
