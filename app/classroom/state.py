"""One class: its screen, its question, its votes and who is in it. Nothing here reads a clock, sends or waits."""

from __future__ import annotations

import hmac
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from app.classroom import codes
from app.classroom.steps import Step, StepQuestion
from core import secret

MOST_FOLLOWERS = 500
FOLLOWER = "follower"  # the purpose of a key
FIRST_WAIT = 60.0  # seconds that a new class waits for its teacher's stream, which the browser opens at once
WAITS = 600.0  # the same for a teacher who has been here
MOST_ROUNDS = 20  # questions whose counts are kept; the oldest goes first
MESSAGES, PER = 20, 10.0  # votes of one follower, in so many seconds

Topic = Literal["screen", "question", "votes", "class"]
TOPICS: tuple[Topic, ...] = ("screen", "question", "votes", "class")
Outcome = Literal["counted", "closed", "place", "often", "full", "outside"]
Move = Literal["votes", "again", "answer"]


@dataclass(frozen=True)
class Screen:
    """What everybody sees: a view, the picture that it is drawn from ("": none), and what is chosen in it."""

    view: str
    picture: str = ""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    cover: str = ""  # what of it no one sees yet: "", "head", "row", "step" or "lesson:part:row"; "code": who comes in now sees nothing of it
    packed: bytes | None = field(default=None, repr=False)  # what it is drawn from, where that is no run's picture


@dataclass(frozen=True)
class Asked:
    """What a question is about: a row of one head. `places` are those that it may look at and that can be said."""

    run: str
    site: str
    layer: int
    head: int
    query: int
    keys: int
    places: frozenset[int]

    def told(self) -> dict[str, Any]:
        """For the screen; the places are the picture's to show."""
        return {name: getattr(self, name) for name in ("site", "layer", "head", "query", "keys")} | {
            "picture": self.run
        }


@dataclass
class Question:
    """Asked of the class. Until it is revealed a vote belongs to a key; from then on there are only counts."""

    number: int
    asked: Asked
    votes: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] | None = None
    hidden: bool = True  # from the wall, until the teacher shows them: who sees the votes of others votes with them

    @property
    def is_open(self) -> bool:
        return self.counts is None

    @property
    def said(self) -> int:
        """How many have said."""
        return len(self.votes) if self.counts is None else sum(self.counts.values())

    def tally(self) -> dict[int, int]:
        """Votes by place, of places that have any."""
        return dict(Counter(self.votes.values())) if self.counts is None else dict(self.counts)

    def told(self, key: str) -> dict[str, Any]:
        """For the screen; with a follower's key also what the follower has said so far."""
        said = {"q": self.number, "open": self.is_open, "hidden": self.hidden, **self.asked.told()}
        return said | ({"mine": self.votes[key]} if key in self.votes else {})


@dataclass
class _Follower:
    streams: int = 0
    recent: list[float] = field(default_factory=list)  # when the last votes came


class Classroom:
    """A class from open() to its end. All methods may be called from any thread; `now` is in seconds, of one clock."""

    def __init__(self, code: str, random: codes.RandomBytes, screen: Screen, now: float) -> None:
        self.code = code
        self.teacher_key = secret.spelled(random(32))
        self._secret = random(32)
        self._lock = threading.RLock()
        self.screen, self.screens = screen, 1
        self.question: Question | StepQuestion | None = None
        self.asked = 0  # questions so far
        self.rounds: OrderedDict[int, Question] = OrderedDict()  # revealed ones, the newest last
        self.steps: OrderedDict[int, StepQuestion] = OrderedDict()  # steps whose answer was shown, the newest last
        self.door = True
        self.why_ended: Literal["", "end", "forgotten"] = ""
        self._inside: OrderedDict[str, _Follower] = OrderedDict()
        self._here = 0  # streams of the teacher
        self._away_since: float | None = now
        self._waits = FIRST_WAIT
        self._of = 0
        self.versions: dict[Topic, int] = dict.fromkeys(TOPICS, 1)
        self.changed: Callable[[], None] = lambda: None  # called after every change, from the thread that made it

    # who is who

    def is_teacher(self, key: str) -> bool:
        return hmac.compare_digest(key.encode(), self.teacher_key.encode())

    def is_follower(self, key: str) -> bool:
        """Whether this class gave the key, whether or not anybody follows with it now."""
        return secret.is_signed(key, FOLLOWER, self._secret)

    def join(self) -> str:
        """A key for a new follower. It takes no place: that is taken by who follows."""
        return secret.signed_name(FOLLOWER, self._secret)

    # coming and going

    def enter(self, key: str) -> bool:
        """A follower's stream begins. False where all places are taken."""
        with self._lock:
            found = self._inside.get(key)
            if found is None:
                if len(self._inside) >= MOST_FOLLOWERS and not self._make_room():
                    return False
                found = self._inside[key] = _Follower()
            found.streams += 1
            self._of += found.streams == 1
            self._bump("class", "votes")
            return True

    def leave(self, key: str) -> None:
        """A follower's stream has ended. The place is kept until another visitor needs it, so that a lost connection loses no vote."""
        with self._lock:
            found = self._inside[key]
            found.streams -= 1
            if found.streams == 0:
                self._of -= 1
                self._inside.move_to_end(key)  # of those who are gone, the first to go is the first to give way
            self._bump("class", "votes")

    def _make_room(self) -> bool:
        gone = next((key for key, follower in self._inside.items() if follower.streams == 0), None)
        if gone is None:
            return False
        del self._inside[gone]
        return True

    def teacher_enters(self) -> None:
        with self._lock:
            self._here, self._away_since, self._waits = self._here + 1, None, WAITS
            self._bump("class")

    def teacher_leaves(self, now: float) -> None:
        with self._lock:
            self._here -= 1
            if self._here == 0:
                self._away_since = now
                self._bump("class")

    @property
    def of(self) -> int:
        """How many follow now."""
        return self._of

    def left(self, now: float) -> float | None:
        """Seconds until the class is forgotten; None while its teacher is here."""
        since = self._away_since
        return None if since is None else max(0.0, since + self._waits - now)

    # what the teacher does

    def show(self, screen: Screen) -> None:
        """Everybody's screen."""
        with self._lock:
            if screen == self.screen:
                return
            self.screen, self.screens = screen, self.screens + 1
            self._bump("screen")

    def ask(self, asked: Asked) -> int:
        """Open a question. One before it is kept as a round where it was revealed, and dropped otherwise. Returns its number."""
        with self._lock:
            self.asked += 1
            self.question = Question(self.asked, asked)
            self._bump("question", "votes")
            return self.asked

    def ask_step(self, step: Step, picture: dict[str, Any] | None = None) -> int:
        """Open a question of a lesson's step, with what phones are shown to reason with. Returns its number."""
        with self._lock:
            self.asked += 1
            self.question = StepQuestion(self.asked, step, picture=picture)
            self._bump("question", "votes")
            return self.asked

    def move(self, number: int, to: Move) -> bool:
        """The next stage of a step's question. False where it is another question, or has no such stage next."""
        with self._lock:
            question = self.question
            if not isinstance(question, StepQuestion) or question.number != number:
                return False
            if not {"votes": question.close, "again": question.again, "answer": question.answer}[to]():
                return False
            if to == "answer":
                self.steps[number] = question
                while len(self.steps) > MOST_ROUNDS:
                    self.steps.popitem(last=False)
            self._bump("question", "votes")
            return True

    def hide(self, on: bool) -> bool:
        """Whether anybody sees more than how many have said, before the reveal. False where nothing is open."""
        with self._lock:
            if not isinstance(self.question, Question) or not self.question.is_open:
                return False
            self.question.hidden = on
            self._bump("question", "votes")
            return True

    def reveal(self, number: int) -> bool:
        """Counts for all, and only counts from now on. False where this is not the open question."""
        with self._lock:
            question = self.question
            if not isinstance(question, Question) or question.number != number or not question.is_open:
                return False
            question.counts, question.votes = question.tally(), {}
            self.rounds[number] = question
            while len(self.rounds) > MOST_ROUNDS:
                self.rounds.popitem(last=False)
            self._bump("question", "votes")
            return True

    def back(self) -> None:
        """No question any more."""
        with self._lock:
            self.question = None
            self._bump("question", "votes")

    def set_door(self, is_open: bool) -> None:
        with self._lock:
            self.door = is_open
            self._bump("class")

    def end(self, why: Literal["end", "forgotten"] = "end") -> None:
        """All is forgotten."""
        with self._lock:
            self.why_ended = self.why_ended or why
            self.question, self.screen = None, Screen(self.screen.view)
            self.rounds.clear()
            self.steps.clear()
            self._bump(*TOPICS)

    def ended(self, now: float) -> bool:
        """Whether it is over, by its teacher or because its teacher was away for too long."""
        if not self.why_ended and self.left(now) == 0:
            self.end("forgotten")
        return bool(self.why_ended)

    # what followers do

    def vote(self, key: str, number: int, place: int, now: float) -> Outcome:
        """One follower says one place. The last one before the reveal counts."""
        with self._lock:
            if refused := self._refused(key, now):
                return refused
            question = self.question
            if not isinstance(question, Question) or question.number != number or not question.is_open:
                return "closed"
            return self._count(question.votes, key, place) if place in question.asked.places else "place"

    def answer(self, key: str, number: int, round: int, said: object, now: float) -> Outcome:
        """The same of a step: an option by its place, or a number. The last one before voting is closed counts."""
        with self._lock:
            if refused := self._refused(key, now):
                return refused
            question = self.question
            if not isinstance(question, StepQuestion) or (question.number, question.round) != (number, round):
                return "closed"
            if not question.is_open:
                return "closed"
            return self._count(question.votes, key, said) if question.step.takes(said) else "place"

    def _refused(self, key: str, now: float) -> Literal["often", "outside"] | None:
        """Why nothing that this follower says counts now."""
        follower = self._inside.get(key)
        if follower is None:
            return "outside"
        follower.recent = [at for at in follower.recent if at > now - PER]
        if len(follower.recent) >= MESSAGES:
            return "often"
        follower.recent.append(now)
        return None

    def _count(self, votes: dict[str, Any], key: str, said: object) -> Outcome:
        if key not in votes and len(votes) >= MOST_FOLLOWERS:
            return "full"
        votes[key] = said
        self._bump("votes")
        return "counted"

    # what is told

    def round(self, number: int) -> Question | None:
        """A revealed question that is still kept."""
        with self._lock:
            return self.rounds.get(number)

    def before(self, number: int) -> Question | None:
        """The revealed question before this one."""
        with self._lock:
            return next((self.rounds[n] for n in reversed(self.rounds) if n < number), None)

    def runs(self) -> set[str]:
        """The runs whose pictures may be asked for: of the screen, of the question and of the rounds."""
        with self._lock:
            asked = [q.asked.run for q in self.rounds.values()]
            own = "" if self.screen.packed is not None else self.screen.picture
            open_now = [self.question.asked.run] if isinstance(self.question, Question) else []
            return {own, *asked, *open_now} - {""}

    def told_screen(self) -> dict[str, Any]:
        with self._lock:
            screen = self.screen
            said = {"n": self.screens, "view": screen.view, "picture": screen.picture, "cover": screen.cover}
            return said | dict(screen.chosen)

    def told_question(self, key: str = "") -> dict[str, Any] | None:
        """With a follower's key also what the follower has said so far."""
        with self._lock:
            return None if self.question is None else self.question.told(key)

    def step(self, number: int) -> StepQuestion | None:
        """The step that is asked under this number now."""
        with self._lock:
            question = self.question
            return question if isinstance(question, StepQuestion) and question.number == number else None

    def stage(self) -> dict[str, Any] | None:
        """Where the question of a step is, for a phone that says something too late."""
        with self._lock:
            return self.question.told() if isinstance(self.question, StepQuestion) else None

    def told_votes(self, to_teacher: bool, most: int) -> dict[str, Any] | None:
        """How many have said; what they said to all after the reveal, and before it to the teacher unless it is hidden."""
        with self._lock:
            question = self.question
            if question is None:
                return None
            is_step = isinstance(question, StepQuestion)  # whose votes come with its question
            seen = not is_step and (not question.is_open or (to_teacher and not question.hidden))
            voted_and_gone = sum(1 for key in question.votes if not (f := self._inside.get(key)) or not f.streams)
            said: dict[str, Any] = {
                "q": question.number,
                "said": question.said,
                "of": max(self._of + voted_and_gone, question.said),
                "votes": None,
                "others": 0,
            }
            if seen:
                ranked = ranked_votes(cast("Question", question).tally())
                said |= {"votes": ranked[:most], "others": sum(n for _, n in ranked[most:])}
            return said

    def told_class(self, now: float) -> dict[str, Any]:
        with self._lock:
            left = self.left(now)
            said = {"of": self._of, "door": self.door, "away": left is not None}
            return said if left is None else said | {"left": round(left)}

    def _bump(self, *topics: Topic) -> None:
        for topic in topics:
            self.versions[topic] += 1
        self.changed()


def ranked_votes(tally: Mapping[int, int]) -> list[Sequence[int]]:
    """[place, votes] with most votes first, and of as many the earlier place."""
    return [[place, n] for place, n in sorted(tally.items(), key=lambda item: (-item[1], item[0]))]
