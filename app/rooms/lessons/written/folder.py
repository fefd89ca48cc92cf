"""Lessons of the operator: the files in the folder that HEADLIGHT_LESSONS names; and the two examples that ship."""

from __future__ import annotations

import logging
import os
import threading
from functools import cache
from pathlib import Path

from app import languages
from app.rooms.lessons.written import words
from app.rooms.lessons.written.file import Offered, parse
from app.rooms.lessons.written.lesson import WrittenLesson

LESSONS = "HEADLIGHT_LESSONS"  # a folder
MOST_FILES = 50
MOST_BYTES = 64 << 10  # of a file
EXAMPLES = Path(__file__).parent / "examples"

log = logging.getLogger("headlight")


Stamp = tuple[int, int]  # when a file was changed, and its bytes


class Shelf:
    """The lessons of a folder, whose files may change: one is read again once it has, and what is wrong with it is logged once."""

    def __init__(self, models: Offered | None = None) -> None:
        self.models = models
        self.known: dict[Path, tuple[Stamp | None, WrittenLesson | None]] = {}  # None for one that is left out
        self.told: set[str] = set()  # of the folder itself

    def lessons(self, folder: str) -> dict[str, WrittenLesson]:
        """Those of now by the names of their files, in the order of these: files *.md that are in it themselves, at most MOST_FILES.

        A file with a fault is left out, and so is one that is too large, is no text in UTF-8, or is a link to a place outside of
        the folder. Each is logged for the operator, a fault with its line.
        """
        place = Path(folder.strip())
        those: list[Path] = []
        if folder.strip() and not place.is_dir():
            self._tell(f"there is no folder {place}.")
        elif folder.strip():
            try:
                those = files(place)
            except OSError as error:
                self._tell(f"{place} cannot be read: {error}")
        if len(those) > MOST_FILES:
            last = those[MOST_FILES - 1].name
            self._tell(f"{place} has {len(those)} files; those after {last} are left out.")
        those = those[:MOST_FILES]
        for path in self.known.keys() - set(those):
            del self.known[path]
        for path in those:
            stamp = _stamp(path)
            if path not in self.known or self.known[path][0] != stamp:
                self.known[path] = stamp, self._read(path, place)
        return {path.stem: lesson for path in those if (lesson := self.known[path][1]) is not None}

    def _tell(self, sentence: str) -> None:
        if sentence not in self.told:
            log.warning("%s: %s", LESSONS, sentence)
        self.told.add(sentence)

    def _read(self, path: Path, place: Path) -> WrittenLesson | None:
        """The lesson of a file; None for one that is left out."""
        try:
            lesson = parse(text_of(path, place), self.models)
        except (OSError, ValueError) as error:
            log.warning("%s: %s is left out: %s", LESSONS, path.name, error)
            return None
        if isinstance(lesson, list):
            for fault in lesson:
                log.warning("%s: %s is left out: line %d: %s", LESSONS, path.name, fault.line, fault)
            return None
        for hint in lesson.hints:
            log.warning("%s: %s, line %d: %s", LESSONS, path.name, hint.line, hint)
        return lesson


_shelf = Shelf()
_reading = threading.Lock()


def lessons() -> dict[str, WrittenLesson]:
    """Those of HEADLIGHT_LESSONS as its files are now; none without it."""
    with _reading, languages.speaking(languages.ENGLISH):  # the log is the operator's, and no visitor's
        return _shelf.lessons(os.environ.get(LESSONS, ""))


def read(folder: str, models: Offered | None = None) -> dict[str, WrittenLesson]:
    """Those of any folder."""
    return Shelf(models).lessons(folder)


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


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


@cache
def example_lessons() -> dict[str, WrittenLesson]:
    """Those of the examples whose model is offered here."""
    found = {name: parse(text) for name, text in examples().items()}
    return {name: lesson for name, lesson in found.items() if not isinstance(lesson, list)}
