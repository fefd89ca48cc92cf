"""A lesson that a teacher wrote, as plain data: what each step runs, shows and asks, and how a run decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from app.rooms.lessons.written.expressions import Expression, Pieces
from app.rooms.lessons.written.faults import Fault

Check = Literal["next", "look", "heads", "number", "shape"]
CHECKS: dict[str, Check] = {"next": "next", "look": "look", "heads": "heads", "number": "number", "shape": "shape"}


@dataclass(frozen=True)
class Option:
    """An answer to choose; of a number or a shape a mistake, which is not shown."""

    line: int
    said: str
    reply: Pieces = ()
    value: tuple[Expression, ...] = ()  # of a number or a shape


@dataclass(frozen=True)
class Written:
    """One step. Words are words of its text; `at` and the options of look may say which one is meant: "the 2"."""

    line: int
    title: str
    text: str
    check: Check
    question: str
    target: str | None = None
    paragraph: str = ""  # at most 40 words
    show: tuple[str, ...] = ()  # "next" or "heads", and words
    at: str = ""  # the word that looks; "" is the last one
    head: tuple[int, int] | None = None  # layer, head
    swap: tuple[str, str] | None = None
    also: str = ""  # takes the place of the last word
    answer: tuple[Expression, ...] = ()  # of number: one; of shape: its sizes
    within: float = 0.01  # how far off a number may be
    relative: bool = True  # `within` is a share of the number
    options: tuple[Option, ...] = ()
    ending: Pieces = ()
    care: str = ""
    lines: dict[str, int] = field(default_factory=dict)  # of keys; "?" as well

    def line_of(self, key: str) -> int:
        """The line of a key, or of the step where it has none."""
        return self.lines.get(key, self.line)

    @property
    def last(self) -> str:
        """The last word of the text; "" where it has none."""
        return ([""] + [word for word, _, _ in pieces_of(self.text)])[-1]

    def other(self, at: str) -> str:
        """The text that `@at` means: the step's own, with both words swapped, with `also` as its last word, or another text."""
        if at in ("", self.last):
            return self.text
        if at == "swap" and self.swap:
            return swapped(self.text, *self.swap)
        return ended(self.text, at) if self.also and at == self.also else at

    def texts(self) -> tuple[str, ...]:
        """The texts that a picture of the step shows: its own, with the other last word, and both with two words swapped."""
        own = [self.text, *([ended(self.text, self.also)] if self.also else [])]
        return (*own, *([swapped(text, *self.swap) for text in own] if self.swap else []))


@dataclass(frozen=True)
class WrittenLesson:
    """A lesson. `hints` are about what would make it better; it can be used as it is."""

    title: str
    model: str  # the id of one that is offered
    language: str
    steps: tuple[Written, ...]
    hints: tuple[Fault, ...] = ()


AROUND = ".,;:!?…\"'“”„‘’()[]"  # punctuation that is no part of a word


def pieces_of(text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text without the punctuation around them, each with its first character and the one after its last."""
    at = 0
    for part in text.split():
        start = text.index(part, at)
        at = start + len(part)
        left = len(part) - len(part.lstrip(AROUND))
        bare = part.strip(AROUND)
        if bare:
            yield bare, start + left, start + left + len(bare)


def swapped(text: str, one: str, other: str) -> str:
    """The text with two of its words in each other's place, wherever they are."""
    made, at = "", 0
    for word, start, end in pieces_of(text):
        made += text[at:start] + (other if word == one else one if word == other else word)
        at = end
    return made + text[at:]


def ended(text: str, word: str) -> str:
    """The text with another last word."""
    *_, (_, start, end) = pieces_of(text)
    return text[:start] + word + text[end:]
