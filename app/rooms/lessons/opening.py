"""Which step an address asks for, and the address of a step: its room's own state, with the sentence that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from app.kit import numbers
from app.rooms.lessons import words
from app.rooms.lessons.step import Step
from app.rooms.lessons.steps import LESSONS
from app.rooms.lessons.written import table
from app.rooms.lessons.written.lesson import WrittenLesson

OWN = (
    "lesson",
    "recap",
    "said",
    "seen",
    "done",
    "contents",
    "write",
)  # in the address, of the lessons; "at" too, where it is a number
AGAIN = "r"  # after the number of a step in a recap, which asks it again: "1.2r"
TEXTS = {  # of each model the text that a recap asks about
    "minilm": "The nurse thanked the pilot because she had landed safely.",
    "storyteller": "Tom and Anna went to the old house by the sea",
    "translator": "Eine Frau liest ein Buch.",
    "": "",
}


@dataclass(frozen=True)
class Asked:
    """A step that an address asks for: "1.2", "1.2r" in a recap; "" where it leaves that to the visitor's progress.

    `fresh`: the step is to open in its own state, which the address does not have. An address that was written here says
    whether the step was looked at (`seen`), and is complete.
    """

    step: str
    fresh: bool
    seen: bool = False
    note: str = ""


@cache  # every script of a visit to Lessons asks for it
def steps() -> Mapping[str, Step]:
    """Every step of the course by its number: "1.1" is the first of the first lesson."""
    return {f"{i}.{k}": step for i, lesson in enumerate(LESSONS, 1) for k, step in enumerate(lesson.steps, 1)}


@cache
def every() -> Mapping[str, Step]:
    """The same, and those that a recap asks again, of another text or of other sizes."""
    again = {name + AGAIN: step.anew(TEXTS[step.model]) for name, step in steps().items()}
    return {**steps(), **{name: step for name, step in again.items() if step}}


def written_steps(own: Mapping[str, WrittenLesson] = table.NONE) -> dict[str, Step]:
    """Every step that a teacher wrote, by its name, as the files are now, and the visitor's own. No recap asks one again."""
    return {name: step for one in table.listed(own).values() for name, step in one.steps.items()}


def read(address: Mapping[str, str], own: Mapping[str, WrittenLesson] = table.NONE) -> Asked:
    """The step of `lesson=1.2`, or of `lesson=1&at=2` as people write it. An unknown one gets the first, and a sentence.

    With `recap=1` it is asked again; a lesson alone begins its recap, and a step that can be asked only once is asked as ever.
    """
    known, lesson, at = {**steps(), **written_steps(own)}, address.get("lesson", ""), address.get("at", "")
    first, seen = next(iter(known)), address.get("seen") == "1"
    if not lesson:
        return Asked("", fresh=True)
    if address.get("recap") == "1":
        named = lesson if lesson in known or not at else f"{lesson}.{at}"
        again = next((name for name in every() if name.endswith(AGAIN) and f"{name[:-1]}.".startswith(f"{named}.")), "")
        if again:
            return Asked(again, fresh=lesson not in known or "seen" not in address, seen=seen)
    if lesson in known:
        return Asked(lesson, fresh="seen" not in address, seen=seen)
    named = f"{lesson}.{at or 1}"
    if named in known:
        return Asked(named, fresh=True, seen=seen)
    asked = f"{lesson}, {at}" if at else lesson
    last = len(LESSONS)
    if lesson.startswith(f"{table.OWN}-"):
        return Asked(first, fresh=True, note=words.GONE.format(asked=numbers.quoted(lesson)))
    return Asked(first, fresh=True, note=words.UNKNOWN_STEP.format(asked=numbers.quoted(asked), shown=first, last=last))


def shown(step: Step, address: Mapping[str, str]) -> dict[str, str]:
    """What a room without a stage shows: the step's state, with what the address says by now."""
    return dict(step.state) | {name: text for name, text in address.items() if name not in OWN}


def own_texts(before: Mapping[str, str], model: str, text: str, ours: Sequence[str]) -> dict[str, str]:
    """The visitor's own sentence of each model, after they are seen with this one. `ours` are those that we put there."""
    rest = {name: own for name, own in before.items() if name != model}
    return rest if not text or text in ours else {**rest, model: text}
