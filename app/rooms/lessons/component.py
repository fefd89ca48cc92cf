"""Registers the rail of a lesson, and what tells it the truth once the run on the screen is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app import languages
from app.kit import scripts, theme
from app.rooms.lessons import opening, words
from app.rooms.lessons.step import Step
from app.rooms.lessons.steps import LESSONS
from app.rooms.lessons.written import folder, table
from app.rooms.lessons.written.lesson import WrittenLesson
from app.session import found
from app.transport import modules

BROWSER = Path(__file__).parent / "browser"
WRITTEN = Path(__file__).parent / "written" / "browser"
ENTRY = "rooms/lessons/browser/lessons.js"
WRITE = "rooms/lessons/written/browser/write.js"
# What a step covers while its room still shows what can be pointed at, as an answer
POINTED = {("explore", "row"), ("explore", "heads"), ("generate", "bar"), ("step", "row"), ("masks", "row")}


def described(step: Step) -> dict[str, Any]:
    """A step as the browser knows it."""
    return {
        "title": step.title,
        "source": step.source,
        "room": step.room,
        "text": step.text,
        "question": step.question,
        "kind": step.kind,
        "cover": step.cover,
        "pointed": (step.room, step.cover) in POINTED,
        "values": dict(step.state),
        "model": step.model,
        "sentence": step.sentence,
        "target": step.target,
        "varied": dict(step.varied),
    }


def written(own: Mapping[str, WrittenLesson]) -> dict[str, Any]:
    """The lessons that teachers wrote, as their files are now, and the visitor's own: whatever they say is text, in the language that they name."""
    return {
        name: {
            "title": one.written.title,
            "language": one.written.language,
            "own": name.startswith(table.OWN),
            "steps": {step: described(of) for step, of in one.steps.items()},
        }
        for name, one in table.listed(own).items()
    }


scripts.add()
modules.add("rooms/lessons/browser", BROWSER)
modules.add_constants(
    "rooms/lessons/browser/constants.js",
    WORDS=lambda: words.COMPONENT,
    PALETTES=theme.PALETTES,
    LESSONS=lambda: languages.translated([lesson.title for lesson in LESSONS]),
    STEPS=lambda: {
        name: described(step)
        | {
            "title": languages.translated(step.title),
            "text": languages.translated(step.text),
            "question": languages.translated(step.question),
        }
        for name, step in opening.steps().items()
    },
    TEXTS=opening.TEXTS,
    STYLE=scripts.style(BROWSER / "lessons.css"),
    PAGE_STYLE=lambda: theme.variables() + (BROWSER / "page.css").read_text(encoding="utf-8"),
)
modules.add("rooms/lessons/written/browser", WRITTEN)
modules.add_constants(
    "rooms/lessons/written/browser/constants.js",
    WORDS=lambda: words.WRITE,
    STYLE=scripts.style(WRITTEN / "write.css"),
)
_rail = modules.component("lessons_rail", ENTRY, html=lambda: '<div class="hl lessons"></div>', host=scripts.HOST)
_truth = modules.component("lessons_truth", ENTRY, "truth", html=lambda: "<i></i>")

_write = modules.component("lessons_write", WRITE, html=lambda: '<div class="hl write"></div>', host=scripts.HOST)


def write() -> None:
    """Draw the screen on which a lesson is written. The text is the browser's; the examples are there to begin with."""
    _write(key="lessons_write", data={"opens": found.offered(), "examples": folder.examples()}, default={})


def rail(data: Mapping[str, Any]) -> None:
    """Draw the rail. It leads to every step by an address, as a link does; else it only tells that it asks again."""
    _rail(key="lessons_rail", data=data, default={"again": 0}, on_again_change=lambda: None)


def truth(data: Mapping[str, Any]) -> None:
    """What is true of the step on the screen, for the rail that is there already."""
    _truth(key="lessons_truth", data=data)
