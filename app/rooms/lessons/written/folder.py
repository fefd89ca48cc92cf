"""Lessons of the operator: the files in the folder that HEADLIGHT_LESSONS names; and the two examples that ship."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path

from app.rooms.lessons.written import words
from app.rooms.lessons.written.file import Offered, parse
from app.rooms.lessons.written.lesson import WrittenLesson

LESSONS = "HEADLIGHT_LESSONS"  # a folder
MOST_FILES = 50
MOST_BYTES = 64 << 10  # of a file
EXAMPLES = Path(__file__).parent / "examples"

log = logging.getLogger("headlight")


@cache
def lessons() -> dict[str, WrittenLesson]:
    """Those of HEADLIGHT_LESSONS by the names of their files, read once; none without it."""
    return read(os.environ.get(LESSONS, ""))


def read(folder: str, models: Offered | None = None) -> dict[str, WrittenLesson]:
    """The lessons in a folder, in the order of their names: files *.md that are in it themselves, at most MOST_FILES.

    A file with a fault is left out, and so is one that is too large, is no text in UTF-8, or is a link to a place outside of the
    folder. Each is logged for the operator, a fault with its line.
    """
    if not folder.strip():
        return {}
    place = Path(folder.strip())
    if not place.is_dir():
        log.warning("%s: there is no folder %s.", LESSONS, place)
        return {}
    those = files(place)
    if len(those) > MOST_FILES:
        log.warning(
            "%s: %s has %d files; those after %s are left out.", LESSONS, place, len(those), those[MOST_FILES - 1].name
        )
    found: dict[str, WrittenLesson] = {}
    for path in those[:MOST_FILES]:
        try:
            lesson = parse(text_of(path, place), models)
        except (OSError, ValueError) as error:
            log.warning("%s: %s is left out: %s", LESSONS, path.name, error)
            continue
        if isinstance(lesson, list):
            for fault in lesson:
                log.warning("%s: %s is left out: line %d: %s", LESSONS, path.name, fault.line, fault)
            continue
        for hint in lesson.hints:
            log.warning("%s: %s, line %d: %s", LESSONS, path.name, hint.line, hint)
        found[path.stem] = lesson
    return found


def files(place: Path) -> list[Path]:
    """The files *.md of a folder by their names, without hidden ones; of a file itself alone."""
    if not place.is_dir():
        return [place] if place.exists() else []
    return sorted(path for path in place.iterdir() if path.suffix == ".md" and not path.name.startswith("."))


def text_of(path: Path, folder: Path) -> str:
    """The text of a file. Raises ValueError with a sentence for one that is not read, and OSError."""
    whole = path.resolve()
    if not whole.is_relative_to(folder.resolve()) or not whole.is_file():
        raise ValueError(words.NO_FILE)
    with whole.open("rb") as file:
        body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(words.LARGE_FILE.format(most=MOST_BYTES))
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(words.NO_TEXT_FILE) from None


@cache
def examples() -> dict[str, str]:
    """The texts of the examples that ship, by the names of their files."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.md"))}
