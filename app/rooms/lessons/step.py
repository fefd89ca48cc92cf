"""What a step of a lesson is: what it shows and asks, and what is true of the run that is on the screen when it asks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from app import languages
from core.service import Facts, Service

Kind = Literal["point", "drag", "shape", "choose", "do"]
Form = Literal[
    "row", "ranked", "plain"
]  # how what was pointed at is said: a share of a row, a value among others, a name alone
Place = tuple[int, ...]  # what is pointed at: (token,), (layer, head), (digit,) ..., as the truth's `places` says


@dataclass(frozen=True)
class Candidate:
    """One thing that can be pointed at: what it is called, where it is, and its value in the run."""

    label: str
    place: Place
    value: float


@dataclass(frozen=True)
class Mistake:
    """A wrong answer with a reason: what it is called, and a sentence with the numbers it gives. Neither says what is true."""

    answer: (
        str | float
    )  # of drag the number that it gives; else places, sizes or options as a link says them: "1.0", "2,4,3"
    name: str
    sentence: str


@dataclass(frozen=True)
class Truth:
    """What is true of the run on the screen, as plain data.

    Of `candidates`, which are sorted with the best in front, the first `best` are right: near-ties all are. Of options, those
    that `right` counts. With `all_of` an answer names everything that is right, else any one of it will do.
    """

    kind: Kind
    question: str  # as it is asked of this run; the words of the text in it
    reason: str  # why it is so; said after every answer, right or wrong
    footer: str  # what it was checked against
    candidates: tuple[Candidate, ...] = ()  # of point, best first
    places: str = ""  # of point: what the places count: "token", "layer, head"
    best: int = 1  # of point: so many candidates are right
    form: Form = "row"  # of point
    share: bool = False  # of point: values are shares of one, and are said in per cent
    options: tuple[str, ...] = ()  # of choose; the tiles of shape
    right: tuple[int, ...] = ()  # of choose: which options
    all_of: bool = False  # of point and choose
    axes: tuple[str, ...] = ()  # of shape
    number: float = 0.0  # of drag
    unit: str = ""  # of drag, and of the values of point: "%", "bits", "MiB", "tokens", "steps", ""
    low: float = 0.0  # of drag: the range in which it lies
    high: float = 0.0
    step: float = 0.0  # of drag: how far one key press goes
    tolerance: float = 0.0  # of drag: so far off is still right
    digits: int = 0  # of drag and point: decimals that are said
    values: Mapping[str, str] | None = None  # of do: parameters of the room that an answer must have
    mistakes: tuple[Mistake, ...] = ()  # that are known; replies.py has a rule for the others
    slip: str = ""  # where a lesson's figure is off: the sentence that says the true one
    remarks: tuple[tuple[str, str], ...] = ()  # right answers as they are said, each with a sentence of its own
    is_written: bool = False  # whether its sentences are a teacher's own, and stay as they are in every language
    hint: str = ""  # said with a first wrong answer: a way to the right one, never the answer

    def json(self) -> dict[str, Any]:
        """The same for the browser, in the language of the visitor; browser/check.js reads it."""
        return asdict(self.spoken())

    def spoken(self) -> Truth:
        """The same in the language of the visitor."""
        if self.is_written:
            return self
        said = {
            name: languages.said(getattr(self, name))
            for name in ("question", "reason", "slip", "hint")
            if getattr(self, name)
        }
        mistakes = [
            replace(one, name=languages.said(one.name), sentence=languages.said(one.sentence)) for one in self.mistakes
        ]
        return replace(self, **said, options=tuple(map(languages.part, self.options)), mistakes=tuple(mistakes))


@dataclass(frozen=True)
class Unanswerable:
    """Why what is on the screen cannot answer a step, as a sentence, and the step's own model and text, which can."""

    sentence: str
    model: str = ""
    text: str = ""


@dataclass(frozen=True)
class Shown:
    """What is on the screen when a step asks: its room's parameters as they are there, and the run where there is one."""

    service: Service
    values: Mapping[str, str]  # the step's state, with what the visitor changed in it
    facts: Facts | None = None
    text: str = ""  # what the request box says


Ask = Callable[[Shown], Coroutine[Any, Any, Truth | Unanswerable]]
"""What is true of a step. Raises Refused, with the reason as a sentence, where what is on the screen cannot answer it."""


@dataclass(frozen=True)
class Step:
    """One step: what it shows, what it asks, and how what is true is found."""

    title: str
    source: str  # the lesson that it comes from, as its first line says
    room: str  # key of the registry
    state: Mapping[str, str]  # the room's own parameters, as its links say them
    text: str  # at most 40 words
    question: str  # as it is asked before there is a run; the truth's `question` has the words of the text in it
    kind: Kind
    cover: (
        str  # what of the room's picture is covered until the answer: "row", "number", "shape" ...; "" where nothing is
    )
    rows: tuple[str, ...]  # of the plan of the lessons: "C1"
    truth: Ask
    model: str = ""  # id of the model whose run it is about; "" where the room shows no run
    sentence: str = ""  # the text it asks about where the visitor brought none
    target: str = ""  # of an encoder-decoder
    hint: str = ""  # the truth's
    varied: Mapping[str, str] = field(
        default_factory=dict
    )  # of the state where the step is asked again; {} where it never is

    def anew(self, text: str) -> Step | None:
        """The same question of another text, or of other sizes where it reads none; None where that would be no other question."""
        if not self.varied:
            return None
        state = {**self.state, **self.varied}
        return replace(self, state=state, sentence=text, target="") if self.model else replace(self, state=state)


@dataclass(frozen=True)
class Lesson:
    """One of them: its title and its steps in order."""

    title: str
    steps: tuple[Step, ...]
