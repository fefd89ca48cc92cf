"""The written lessons that the room lists, by the names that an address says: the visitor's own, the operator's, and the examples that ship."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.rooms.lessons.step import Step
from app.rooms.lessons.written import folder, steps
from app.rooms.lessons.written.lesson import WrittenLesson
from core.errors import HeadlightError
from core.service import Service

UNNAMED = re.compile(r"[\W_]+")  # what no name in an address has: all but letters and digits
MOST_ROWS = 2000  # that are remembered
OWN = "own"  # what the names of a visitor's own lessons begin with
NONE: Mapping[str, WrittenLesson] = {}
_rows: dict[tuple[str, str, str], int] = {}


@dataclass(frozen=True)
class Listed:
    """A lesson of the list."""

    written: WrittenLesson
    steps: Mapping[str, Step]  # by name: "file-agreement.1" is the first of agreement.md


def named(kind: str, stem: str) -> str:
    """The name of a lesson in an address, of the name of its file without the ending."""
    return f"{kind}-{UNNAMED.sub('-', stem).strip('-').casefold()}".rstrip("-")


def listed(own: Mapping[str, WrittenLesson] = NONE) -> dict[str, Listed]:
    """Every one by its name, which no number and no name of the course is; as the files are now. `own` are the visitor's."""
    found: dict[str, Listed] = {}
    for kind, lessons in ((OWN, own), ("file", folder.lessons()), ("example", folder.example_lessons())):
        for stem, written in lessons.items():
            plain = name = named(kind, stem)
            n = 1
            while name in found:
                n += 1
                name = f"{plain}-{n}"
            made = {f"{name}.{at + 1}": steps.step_of(written, at, _rows, stem) for at in range(len(written.steps))}
            found[name] = Listed(written, made)
    return found


async def open_row(name: str, service: Service, own: Mapping[str, WrittenLesson] = NONE) -> None:
    """Find the row that a step opens at, where that is not known yet. What is refused is left to the step's truth, which says it."""
    lesson, _, number = name.rpartition(".")
    if (one := listed(own).get(lesson)) is None or name not in one.steps:
        return
    written, at = one.written, int(number) - 1
    key = steps.row_key(written, at)
    if not steps.has_row(written.steps[at]) or key in _rows:
        return
    try:
        found = await steps.row(written, at, service)
    except HeadlightError:
        return
    while len(_rows) >= MOST_ROWS:
        _rows.pop(next(iter(_rows)), None)
    _rows[key] = found
