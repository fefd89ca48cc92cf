"""The reply to a wrong answer: which mistake it is, with the numbers that it gives. It never says what is true. browser/reply.js does the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.rooms.lessons import words
from app.rooms.lessons.checks import check, number_words, places_of
from app.rooms.lessons.step import Mistake, Place, Truth
from app.transport import modules

modules.add("rooms/lessons/browser", Path(__file__).parent / "browser")

CLOSE = 0.1  # a number this near to what a mistake gives, as a share of it, is that mistake


@dataclass(frozen=True)
class Reply:
    """The words for a first wrong answer."""

    name: str  # which mistake it is; "" where the answer cannot be read
    sentence: str


def reply(truth: Truth, answer: object) -> Reply | None:
    """The reply to an answer as the browser sends it; None where it is right. One that cannot be read gets a sentence."""
    checked = check(truth, answer)
    if checked.right:
        return None
    if not checked.true and truth.kind != "do":
        return Reply("", checked.words[0])
    return {"point": _point, "drag": _drag, "shape": _shape, "choose": _choose, "do": _do}[truth.kind](truth, answer)


def written(answer: Any) -> str:
    """An answer as a link says it: "3", "1.0,1.1", "[4, 3, 2]" as "4,3,2"."""
    parts = answer if isinstance(answer, list | tuple) else [answer]
    return ",".join(".".join(map(str, part)) if isinstance(part, list | tuple) else str(part) for part in parts)


def _known(truth: Truth, *answers: str) -> Mistake | None:
    """The mistake that the first of these answers is, which is one."""
    known = {one.answer: one for one in truth.mistakes}
    return next((known[answer] for answer in answers if answer in known), None)


def _of(mistake: Mistake) -> Reply:
    return Reply(mistake.name, mistake.sentence)


def _point(truth: Truth, answer: object) -> Reply:
    said = places_of(answer, truth)
    right = {candidate.place for candidate in truth.candidates[: truth.best]}
    if truth.all_of:
        return _several(truth, said, right)
    if found := _known(truth, written(said)):
        return _of(found)
    chosen = check(truth, answer)
    return Reply(words.REPLY[truth.form], chosen.words[0])


def _several(truth: Truth, said: Sequence[Place], right: set[Place]) -> Reply:
    """Of several places: the first that does not belong there, or else that some are missing."""
    extra = sorted(place for place in said if place not in right)
    if found := _known(truth, written(sorted(said)), *(written([place]) for place in extra)):
        return _of(found)
    hit = sum(place in right for place in said)
    counted = words.ANSWER["all_said"].format(hit=hit, of=len(right), extra=len(extra))
    return Reply(words.REPLY["too_many" if extra else "missing"], counted)


def _drag(truth: Truth, answer: Any) -> Reply:
    said = float(answer)
    near = [one for one in truth.mistakes if abs(said - float(one.answer)) <= _reach(truth, float(one.answer))]
    if near:
        return _of(min(near, key=lambda one: abs(said - float(one.answer))))
    given = number_words(said, truth.unit, truth.digits)
    is_high = said > truth.number
    larger, smaller = max(said, truth.number), min(said, truth.number)
    far = "some"
    if smaller > 0 and truth.unit != "%":
        far = "ten" if larger > 10 * smaller else "two" if larger > 2 * smaller else "near"
    return Reply(words.REPLY["high" if is_high else "low"], words.REPLY[far].format(word=given))


def _reach(truth: Truth, number: float) -> float:
    """How near to what a mistake gives an answer is this mistake."""
    return max(truth.step, min(truth.tolerance, CLOSE * abs(number)))


def _shape(truth: Truth, answer: Any) -> Reply:
    sizes = [str(int(part)) if isinstance(part, int | float) else part for part in answer]
    if found := _known(truth, written(sizes)):
        return _of(found)
    if len(sizes) != len(truth.axes):
        return Reply(words.REPLY["axes"], words.REPLY["so_many"].format(n=len(sizes)))
    if sorted(sizes) == sorted(truth.axes):
        return Reply(words.REPLY["order"], words.REPLY["placed"].format(n=_placed(truth, sizes), of=len(sizes)))
    return Reply(words.REPLY["sizes"], words.REPLY["placed"].format(n=_placed(truth, sizes), of=len(sizes)))


def _placed(truth: Truth, sizes: Sequence[str]) -> int:
    return sum(size == axis for size, axis in zip(sizes, truth.axes, strict=True))


def _choose(truth: Truth, answer: Any) -> Reply:
    picked = sorted({int(part) for part in (answer if isinstance(answer, list | tuple) else [answer])})
    if found := _known(truth, *(str(i) for i in picked if i not in truth.right)):
        return _of(found)
    chosen = check(truth, answer).words[0]
    if not truth.all_of:
        return Reply(words.REPLY["other"], chosen)
    return Reply(words.REPLY["too_many" if set(picked) - set(truth.right) else "missing"], chosen)


def _do(truth: Truth, answer: object) -> Reply:
    return Reply(words.REPLY["not_yet"], words.ANSWER["not_done"])
