"""docs/lessons.md, the part of the lessons: every row of the course with each step that is about it, its link and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.rooms.lessons.steps import LESSONS
from app.shell import registry

ROOT = Path(__file__).resolve().parents[2]
STEPS = {f"{i}.{k}": step for i, lesson in enumerate(LESSONS, 1) for k, step in enumerate(lesson.steps, 1)}
COUNTS = {"A": 7, "B": 6, "C": 6, "D": 7, "E": 11, "F": 23}
ROWS = [f"{part}{i}" for part, n in COUNTS.items() for i in range(1, n + 1)]
TITLES = {room.id: room.title for room in registry.rooms()}


def table() -> dict[str, list[str]]:
    """Row of the course -> its cells: steps, links, tests."""
    text = (ROOT / "docs/lessons.md").read_text(encoding="utf-8").partition("\n## Lessons\n")[2]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) == 4 and cells[0] in ROWS}


def test_every_row_of_the_course_is_there_in_its_order() -> None:
    assert list(table()) == ROWS


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_its_steps_their_links_and_its_tests(row: str) -> None:
    steps, links, tests = table()[row]
    about = {name: step for name, step in STEPS.items() if row in step.rows}
    said = "; ".join(f"{name} {step.title} ({TITLES[step.room]})" for name, step in about.items())
    assert about and steps == said
    assert links == ", ".join(f"`?view=lessons&lesson={name}`" for name in about)
    held = (ROOT / "tests/app/test_lesson_steps.py").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+)`", tests)
    assert named and all(f"def {name}(" in held for name in named)
