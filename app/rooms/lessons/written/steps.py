"""A written lesson as a lesson of the room: each step in the room that shows its run, and its truth from the runs that it asks for."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace

from app.rooms.lessons import truths
from app.rooms.lessons import words as lesson_words
from app.rooms.lessons.replies import reply
from app.rooms.lessons.step import Ask, Candidate, Kind, Shown, Step, Truth
from app.rooms.lessons.written import words
from app.rooms.lessons.written.decide import Decided, decide
from app.rooms.lessons.written.faults import Unfit
from app.rooms.lessons.written.lesson import Written, WrittenLesson
from app.rooms.lessons.written.runs import Runs
from core.errors import HeadlightError
from core.service import Service

log = logging.getLogger("headlight")
_logged: set[str] = set()


def step_of(written: WrittenLesson, at: int, rows: Mapping[tuple[str, str, str], int], name: str = "") -> Step:
    """The step `at`, from 0. `rows` has the rows of Explore that are known, by row_key(); `name` is what a log calls the lesson."""
    of = written.steps[at]
    kind: Kind = "choose"
    if of.check in ("number", "shape"):
        kind = "drag" if of.check == "number" else "shape"
    elif of.check == "look" and not of.options:
        kind = "point"
    room, state, cover = "generate", {"n": "0", "how": "greedy"}, "column"
    if has_row(of):
        layer, head = of.head or (0, 0)
        room, state = "explore", {"layer": str(layer), "head": str(head)}
        row = rows.get(row_key(written, at))
        state |= {} if row is None else {"query": str(row)}
        cover = "row" if of.check == "look" else ""
    return Step(
        title=of.title,
        source=written.title,
        room=room,
        state=state,
        text=of.paragraph,
        question=of.question,
        kind=kind,
        cover=cover,
        rows=(),
        truth=_ask(written, at, name or written.title),
        model=written.model,
        sentence=of.text,
        target=of.target or "",
    )


def has_row(of: Written) -> bool:
    """Whether a step is about the row of a word, which Explore shows."""
    return of.head is not None or of.check in ("heads", "shape")


def row_key(written: WrittenLesson, at: int) -> tuple[str, str, str]:
    """Whatever a row depends on: the model, the text and the word that looks."""
    of = written.steps[at]
    return written.model, of.text, of.at


async def row(written: WrittenLesson, at: int, service: Service) -> int:
    """The row of the word that looks, found in the run of the step. Raises Unfit."""
    of = written.steps[at]
    runs = Runs(of, written.model, service)
    facts = await runs.facts(of.text)
    return runs.query(facts.tokens(facts.sites[0].query), of.text)


def _ask(written: WrittenLesson, at: int, name: str) -> Ask:
    async def truth(shown: Shown) -> Truth:
        of = written.steps[at]
        if shown.facts is not None and shown.text and shown.text.strip() != of.text:
            raise HeadlightError(words.OTHER_TEXT)
        try:
            return truth_of(of, await decide(written, at, shown.service))
        except Unfit as unfit:
            if isinstance(unfit.__cause__, HeadlightError):  # of the service, which may be busy
                raise unfit.__cause__ from None
            said = f"{name}, line {unfit.fault.line}: {unfit.fault}"
            if said not in _logged:
                _logged.add(said)
                log.warning("A written lesson has a fault that its run shows. %s", said)
            raise HeadlightError(words.UNFIT) from unfit

    return truth


def truth_of(of: Written, decided: Decided) -> Truth:
    """The truth of a step as the room asks it; the end, other words that are shown, and what the runs cannot show, are its reason.

    The lesson's replies to wrong answers are mistakes, which are told before the answer is.
    """
    reason = " ".join(filter(None, (decided.ending, decided.also, decided.care)))
    said = (of.question, reason, decided.footer)
    if decided.number is not None:
        low, high, digits = between(decided.number)
        last = 10.0**-digits  # the last digit that is said
        more = {"tolerance": max(decided.tolerance, last / 2), "step": last, "digits": digits}
        mistakes = [
            (one.value[0], lesson_words.REPLY["high" if one.value[0] > decided.number else "low"], one.reply)
            for one in decided.mistakes
        ]
        found = truths.dragging(*said, decided.number, (low, high), mistakes=mistakes, **more)
    elif decided.shape:
        shapes = [([int(size) for size in one.value], one.reply) for one in decided.mistakes]
        others = {size for sizes, _ in shapes for size in sizes}
        bare = truths.shaping(*said, decided.shape, others)
        mistakes = [(sizes, wrong.name, told) for sizes, told in shapes if (wrong := reply(bare, sizes))]
        found = truths.shaping(*said, decided.shape, others, mistakes)
    else:
        other = lesson_words.REPLY["other"]
        own = {option.said for option in of.options if option.reply}  # without one, a right answer is told by the end
        remarks = tuple((decided.options[i], decided.replies[i]) for i in decided.right if decided.options[i] in own)
        if decided.places:
            each = list(zip(decided.options, decided.places, decided.values, strict=True))
            row = truths.Candidates([Candidate(label, (at,), value) for label, at, value in each], "token", share=True)
            mistakes = [((at,), other, told) for at, told in zip(decided.places, decided.replies, strict=True)]
            found = truths.pointing(*said, row, mistakes=mistakes, remarks=remarks)
        else:
            options = {option: i in decided.right for i, option in enumerate(decided.options)}
            wrong = [(other, told) for told in decided.replies]
            found = truths.choosing(*said, options, wrong=wrong, remarks=remarks)
    return replace(found, is_written=True)


def between(number: float) -> tuple[float, float, int]:
    """Two ends with room for a number on either side, and with how many decimals it is said."""
    size = math.ceil(math.log10(max(1.5 * abs(number), 1e-6)))
    return (-(10.0**size) if number < 0 else 0.0), 10.0**size, max(0, 3 - size)
