"""A step of a lesson that a class is asked: what its phones may know, what the server keeps until the answer, and the votes on it.

A room offers what may be asked of what is on its screen; the teacher's browser then names it by its key. So what is true comes from the
run that was checked, and never from a browser.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakValueDictionary

Stage = Literal["ask", "votes", "answer"]
Said = int | float  # the place of an option, or a number

MOST_OPTIONS = 160
MOST_ASKED = 4  # rounds of one step
MOST_REPLIES = 24  # answers that get a reply of their own, the commonest
LARGEST = 1e12  # a number that can be said


@dataclass(frozen=True)
class Reply:
    """The words to one answer."""

    right: bool
    words: tuple[str, ...]
    name: str = ""  # which mistake a wrong answer is, where that is known


@dataclass(frozen=True, eq=False)
class Step:
    """A step as it is asked of the run that is on its teacher's screen."""

    key: str
    number: str  # "1.2"
    title: str
    question: str
    options: tuple[str, ...]  # (): a number is asked for
    unit: str
    digits: int
    # what is kept until the answer is shown
    true: str  # in words
    right: tuple[int, ...]  # of options
    value: float  # of a number
    values: tuple[float, ...]  # what the run gives to each option, as shares of one; () where it gives none
    words: tuple[str, ...]  # why it is so, and what it was checked against
    reply: Callable[[Said], Reply] = field(repr=False)
    mistake: Callable[[Said], Reply | None] = field(
        repr=False
    )  # of a wrong answer what is wrong, and never what is true
    tokens: tuple[int, ...] = ()  # of options that are words of the text on the screen
    picture: Callable[[], Awaitable[dict[str, Any] | None]] | None = field(
        default=None, repr=False
    )  # what phones are shown to reason with
    language: str = ""  # of its words, where they are not in the visitor's

    def takes(self, said: object) -> bool:
        """Whether this is an answer: an option that there is, or a finite number."""
        if isinstance(said, bool) or not isinstance(said, int | float):
            return False
        if self.options:
            return isinstance(said, int) and 0 <= said < len(self.options)
        return abs(said) <= LARGEST  # which no infinity is, and no NaN

    def named(self, said: Said) -> str:
        """An answer as a table has it."""
        return self.options[int(said)] if self.options else f"{said:.12g}"


_offered: WeakValueDictionary[str, Step] = WeakValueDictionary()
_offering = threading.Lock()


def offer(step: Step) -> Step:
    """Let classes be asked this, for as long as a screen that shows it, or a class that was asked, holds the result."""
    with _offering:
        return _offered.setdefault(step.key, step)


def offered(key: str) -> Step | None:
    """A step that a visitor has on the screen now."""
    with _offering:
        return _offered.get(key)


@dataclass
class StepQuestion:
    """A step that a class is asked. A vote belongs to a key while voting is open; afterwards there are only counts."""

    number: int
    step: Step
    round: int = 1
    stage: Stage = "ask"
    votes: dict[str, Said] = field(default_factory=dict)
    counted: list[dict[Said, int]] = field(default_factory=list)  # of the rounds that were closed
    picture: dict[str, Any] | None = None  # nothing of it is covered

    @property
    def is_open(self) -> bool:
        return self.stage == "ask"

    @property
    def said(self) -> int:
        """How many have answered in this round."""
        return len(self.votes) if self.is_open else sum(self.counted[-1].values())

    def tally(self) -> dict[Said, int]:
        """Votes of this round by answer."""
        return dict(Counter(self.votes.values())) if self.is_open else dict(self.counted[-1])

    def close(self) -> bool:
        """Voting ends, and with it whose vote was whose."""
        if not self.is_open:
            return False
        self.counted.append(self.tally())
        self.votes.clear()
        self.stage = "votes"
        return True

    def again(self) -> bool:
        """One more round. False before voting was closed, once the answer is known, or after MOST_ASKED."""
        if self.stage != "votes" or self.round >= MOST_ASKED:
            return False
        self.round, self.stage = self.round + 1, "ask"
        return True

    def answer(self) -> bool:
        """Everybody sees what is true."""
        if self.stage != "votes":
            return False
        self.stage = "answer"
        return True

    def told(self, key: str = "") -> dict[str, Any]:
        """The message at every change; with a key also what its phone has said in this round."""
        said = {"q": self.number, "round": self.round, "stage": self.stage}
        return said | ({"mine": self.votes[key]} if key in self.votes else {})

    def asked(self) -> dict[str, Any]:
        """The question for phones: nothing of what is true before the answer, and then a reply for each answer that was given."""
        step = self.step
        said: dict[str, Any] = self.told() | {
            "step": step.number,
            "title": step.title,
            "question": step.question,
            "options": list(step.options),
            "unit": step.unit,
            "digits": step.digits,
            "language": step.language,
            "tokens": list(step.tokens),
            "picture": self.picture,
        }
        if self.stage != "answer":
            return said
        given = ranked(self.tally())[:MOST_REPLIES]
        replies = [(answer, n, step.reply(answer)) for answer, n in given]
        return said | {
            "true": step.true,
            "right": list(step.right),
            "value": step.value,
            "words": list(step.words),
            "values": [round(value, 4) for value in step.values],
            "replies": [[answer, n, reply.right, list(reply.words), reply.name] for answer, n, reply in replies],
        }

    def on_wall(self) -> dict[str, Any]:
        """The same for the teacher, with the votes once they may be seen, and at the answer what the run gives to each option."""
        before = self.counted[self.round - 2] if self.round > 1 else {}
        said = self.asked() | {
            "before": _pairs(before),
            "votes": None if self.is_open else _pairs(self.tally()),
        }
        return said | ({"mistake": self._commonest()} if self.stage == "votes" else {})

    def _commonest(self) -> list[Any] | None:
        """The wrong answer that most have given: how many, and which mistake it is."""
        for answer, n in ranked(self.tally()):
            if (found := self.step.mistake(answer)) is not None:
                return [answer, n, found.name, list(found.words)]
        return None


def ranked(tally: Mapping[Said, int]) -> list[tuple[Said, int]]:
    """Answers with most votes first, and of as many the smaller."""
    return sorted(tally.items(), key=lambda item: (-item[1], item[0]))


def _pairs(tally: Mapping[Said, int]) -> list[list[Said]]:
    return [[answer, n] for answer, n in sorted(tally.items())]
