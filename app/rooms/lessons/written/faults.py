"""Fault: a mistake in a lesson that a teacher wrote, with its line; and the known word that a wrong one is nearest to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.rooms.lessons.written import words
from core.errors import HeadlightError

FAR = 2  # letters that a word may differ in, and still be meant
LONGEST = 40  # letters of a word that is compared


@dataclass(frozen=True, order=True)
class Fault:
    """A mistake. Lines count from 1; `suggestion` is what was probably meant, "" where nothing is near."""

    line: int
    sentence: str
    suggestion: str = ""

    def __str__(self) -> str:
        """As a person reads it, without the line."""
        return f"{self.sentence} {words.MEANT.format(word=self.suggestion)}" if self.suggestion else self.sentence


class Unfit(HeadlightError):
    """A fault that only a run can find: a word of several tokens, a tie."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word with the fewest letters to change; "" where that are more than FAR, or more than half of the word."""
    if len(word) > LONGEST:
        return ""
    found = sorted((changes(word.casefold(), one.casefold()), one) for one in known if len(one) <= LONGEST)
    return found[0][1] if found and found[0][0] <= min(FAR, len(word) / 2) else ""


def changes(one: str, other: str) -> int:
    """How many letters are to be put in, taken out or changed: Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, theirs in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != theirs))
    return row[-1]
