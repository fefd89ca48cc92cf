"""A written lesson as a lesson of the room: each step in the room that shows its run, and its truth from the runs that it asks for."""

from __future__ import annotations

import math

from app.rooms.lessons import truths
from app.rooms.lessons.step import Ask, Candidate, Kind, Lesson, Shown, Step, Truth
from app.rooms.lessons.written import words
from app.rooms.lessons.written.decide import Decided, decide
from app.rooms.lessons.written.lesson import Written, WrittenLesson
from app.rooms.lessons.written.runs import Runs
from core.errors import Refused
from core.service import Service

SLIDER = 100  # places of the key on a slider, from one end to the other


async def lesson_of(written: WrittenLesson, service: Service) -> Lesson:
    """The lesson, with the row that each step is about found in its run. Raises Unfit, and what the service refuses."""
    return Lesson(written.title, tuple([await _step(written, at, service) for at in range(len(written.steps))]))


async def _step(written: WrittenLesson, at: int, service: Service) -> Step:
    of = written.steps[at]
    kind: Kind = "choose"
    if of.check in ("number", "shape"):
        kind = "drag" if of.check == "number" else "shape"
    elif of.check == "look" and not of.options:
        kind = "point"
    room, state, cover = "generate", {"n": "0", "how": "greedy"}, "column"
    if of.head is not None or of.check in ("heads", "shape"):
        runs = Runs(of, written.model, service)
        facts = await runs.facts(of.text)
        query = runs.query(facts.tokens(facts.sites[0].query), of.text)
        layer, head = of.head or (0, 0)
        room, state = "explore", {"layer": str(layer), "head": str(head), "query": str(query)}
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
        truth=_ask(written, at),
        model=written.model,
        sentence=of.text,
        target=of.target or "",
    )


def _ask(written: WrittenLesson, at: int) -> Ask:
    async def truth(shown: Shown) -> Truth:
        of = written.steps[at]
        if shown.facts is not None and shown.text and shown.text.strip() != of.text:
            raise Refused(words.OTHER_TEXT)
        return truth_of(of, await decide(written, at, shown.service))

    return truth


def truth_of(of: Written, decided: Decided) -> Truth:
    """The truth of a step as the room asks it; the end and what the runs cannot show are its reason."""
    question, footer = of.question, decided.footer
    reason = " ".join(filter(None, (decided.ending, decided.care)))
    if decided.number is not None:
        low, high, step = slider(decided.number)
        digits = max(0, 1 - math.floor(math.log10(step)))
        more = {"tolerance": max(decided.tolerance, step / 2), "step": step, "digits": digits}
        return truths.dragging(question, reason, footer, decided.number, (low, high), **more)
    if decided.shape:
        others = {int(size) for mistake in decided.mistakes for size in mistake.value}
        return truths.shaping(question, reason, footer, decided.shape, others)
    if decided.places:
        each = zip(decided.options, decided.places, decided.values, strict=True)
        candidates = [Candidate(label, (place,), value) for label, place, value in each]
        return truths.pointing(question, reason, footer, truths.Candidates(candidates, "token", share=True))
    options = {option: i in decided.right for i, option in enumerate(decided.options)}
    return truths.choosing(question, reason, footer, options)


def slider(number: float) -> tuple[float, float, float]:
    """Ends of a slider that has room for a number on either side, and how far one key press goes."""
    high = 10.0 ** math.ceil(math.log10(max(1.5 * abs(number), 1e-6)))
    return (-high if number < 0 else 0.0), high, high / SLIDER
