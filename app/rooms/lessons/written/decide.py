"""decide(): what is right in a written step, and what each answer is told, from the runs that it asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app import languages
from app.kit import numbers
from app.rooms.lessons import words as lesson_words
from app.rooms.lessons.checks import NEAR, named
from app.rooms.lessons.written import expressions, words
from app.rooms.lessons.written.expressions import KINDS, Expression, Field, Kind, Measure, Pieces
from app.rooms.lessons.written.faults import Fault, Unfit
from app.rooms.lessons.written.lesson import Option, Written, WrittenLesson
from app.rooms.lessons.written.rules import asked_measures
from app.rooms.lessons.written.runs import Runs, best_head
from core.errors import HeadlightError
from core.model.text import Tokens
from core.service import Service

LEAST = 0.001  # a share below it is not told by its digits


@dataclass(frozen=True)
class Mistake:
    """A wrong number or a wrong shape that the lesson knows, and what is said to it."""

    line: int
    value: tuple[float, ...]
    reply: str


@dataclass(frozen=True)
class Picture:
    """One text of a step, and the words that are shown of it: each with its chance as the next one, or its heads."""

    text: str
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Decided:
    """The answer of the runs to one step. A number and a shape have no options; their mistakes are those that the lesson names."""

    options: tuple[str, ...] = ()
    values: tuple[float, ...] = ()  # of each option: a share, or a count of heads
    places: tuple[int, ...] = ()  # of each option, where the options are the tokens of a row
    right: tuple[int, ...] = ()  # the best option, and those that tie with it
    replies: tuple[str, ...] = ()  # of each option
    number: float | None = None
    tolerance: float = 0.0
    shape: tuple[int, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    ending: str = ""  # for everybody, after the answer
    also: str = ""  # the numbers of words that the step shows, and that are no answers
    care: str = ""  # what the runs cannot show
    footer: str = ""
    pictures: tuple[Picture, ...] = ()  # of each text that the step shows

    def is_right(self, answer: int | float | Sequence[int]) -> bool:
        """Whether an option by its number, a number or a shape is right."""
        if self.options:
            return answer in self.right
        if self.number is not None and isinstance(answer, int | float):
            return abs(answer - self.number) <= self.tolerance
        return not isinstance(answer, int | float) and tuple(answer) == self.shape

    def reply(self, answer: int | float | Sequence[int]) -> str:
        """The sentence for an answer: of its option, or of the mistake that makes it; "" where the lesson has none."""
        if self.options:
            at = answer if isinstance(answer, int) else -1
            return self.replies[at] if 0 <= at < len(self.replies) else ""
        if self.is_right(answer):
            return ""
        if isinstance(answer, int | float):
            near = [one for one in self.mistakes if abs(one.value[0] - answer) <= max(self.tolerance, 1e-9)]
            near.sort(key=lambda one: abs(one.value[0] - answer))
        else:
            near = [one for one in self.mistakes if tuple(one.value) == tuple(answer)]
        return near[0].reply if near else ""


async def decide(lesson: WrittenLesson, at: int, service: Service) -> Decided:
    """Of the step `at`, from 0. Raises Unfit for what does not fit its runs, with the line, and whatever the service refuses."""
    return await _Step(lesson, lesson.steps[at], Runs(lesson.steps[at], lesson.model, service)).decided()


async def trial(lesson: WrittenLesson, service: Service) -> list[Fault]:
    """Every step run and decided once: the faults that no reading finds, a word of several tokens and a tie among them."""
    found: list[Fault] = []
    for at, step in enumerate(lesson.steps):
        try:
            decided = await decide(lesson, at, service)
        except Unfit as unfit:
            found.append(unfit.fault)
            continue
        except HeadlightError as refusal:
            found.append(Fault(step.line, str(refusal)))
            continue
        found += faults_of(step, decided)
    return found


def faults_of(step: Written, decided: Decided) -> list[Fault]:
    """Faults of a step that can be decided all the same: a tie, and a mistake that is as right as the answer."""
    found: list[Fault] = []
    if len(decided.right) > 1:
        tied = named([decided.options[i] for i in decided.right], lesson_words.ANSWER["and"])
        found.append(Fault(step.line_of("check"), words.TIE.format(words=tied)))
    for mistake in decided.mistakes:
        value = mistake.value[0] if decided.number is not None else [int(size) for size in mistake.value]
        if decided.is_right(value):
            option = next(option.said for option in step.options if option.line == mistake.line)
            found.append(Fault(mistake.line, words.RIGHT_TOO.format(option=numbers.quoted(option))))
    return found


@dataclass
class _Step:
    """One step as it is decided."""

    lesson: WrittenLesson
    step: Written
    runs: Runs

    async def decided(self) -> Decided:
        step = self.step
        for text in step.texts():
            await self.runs.facts(text)
        measured = await self.runs.measured(asked_measures(step))
        if step.check in ("number", "shape"):
            return await self._computed(measured)
        kind: Kind = "look" if step.check == "look" else "n" if step.check == "heads" else "p"
        options = step.options
        places: tuple[int, ...] = ()
        row: np.ndarray | None = None
        if step.check == "heads" and not options:
            options = tuple(Option(step.line_of("show"), word) for word in step.show[1:])
        if step.check == "look" and not options:
            row, keys = await self.runs.row(step.text)
            places = tuple(i for i, weight in enumerate(row) if not math.isnan(weight) and not keys.padding[i])
            labels = _told_apart(keys, places)
            options = tuple(Option(step.line_of("check"), label) for label in labels)
            values = [float(row[i]) for i in places]
        else:
            own = [Measure(kind, option.said) for option in options]
            measured |= await self.runs.measured(own)
            values = [measured[measure] for measure in own]
        order = sorted(range(len(options)), key=lambda i: -values[i])
        best = values[order[0]]
        near = 0.0 if step.check == "heads" else NEAR * abs(best)
        right = tuple(i for i in order if best - values[i] <= near)
        counts = step.check == "heads" or step.show[:1] == ("heads",) or any(m.kind == "n" for m in measured)
        of = await self.runs.n_heads() if counts else 0
        pictures = await self._pictures()
        with _speaking(self.lesson.language):
            filler = _Filler(self, measured, tuple(option.said for option in options), tuple(values), tuple(order), of)
            replies = [filler.filled(option.reply, i) for i, option in enumerate(options)]
            bare = [i for i, reply in enumerate(replies) if not reply]
            for i, reply in zip(bare, await self._own(filler, bare, places), strict=True):
                replies[i] = reply
            return Decided(
                options=tuple(option.said for option in options),
                values=tuple(values),
                places=places,
                right=right,
                replies=tuple(replies),
                ending=filler.filled(step.ending, None),
                also=self._also(pictures, of),
                care=step.care,
                footer=await self._footer(),
                pictures=pictures,
            )

    async def _own(self, filler: _Filler, bare: Sequence[int], places: tuple[int, ...]) -> list[str]:
        """Replies to options for which the lesson has none."""
        check = self.step.check
        if check == "look" and bare:
            rows, keys = await self.runs.every_head(self.step.text)
            found = []
            for i in bare:
                at = places[i] if places else self.runs.within(keys, self.step.text, filler.options[i])[-1]
                best = best_head(rows, at)
                more = {"layer": best.layer, "head": best.head, "most": share(best.weight)}
                found.append(words.GETS_LOOK.format(said=filler.options[i], p=share(filler.values[i]), **more))
            return found
        if check == "heads":
            return [words.GETS_HEADS.format(said=filler.options[i], n=filler.count(filler.values[i])) for i in bare]
        return [words.GETS.format(said=filler.options[i], p=share(filler.values[i])) for i in bare]

    async def _computed(self, measured: dict[Measure, float]) -> Decided:
        """Of a number or a shape."""
        step, sizes = self.step, await self.runs.sizes()
        line = step.line_of("check")
        answer = tuple(self._value(line, part, sizes, measured) for part in step.answer)
        is_shape = step.check == "shape"
        made: list[tuple[Option, tuple[float, ...]]] = [
            (option, tuple(self._value(option.line, part, sizes, measured) for part in option.value))
            for option in step.options
        ]
        if is_shape:
            answer = self._whole(line, answer)
            made = [(option, self._whole(option.line, value)) for option, value in made]
        counts = step.show[:1] == ("heads",) or any(measure.kind == "n" for measure in measured)
        of = await self.runs.n_heads() if counts else 0
        pictures = await self._pictures()
        with _speaking(self.lesson.language):
            filler = _Filler(self, measured, (), answer, (), of)
            mistakes = tuple(
                Mistake(option.line, value, filler.filled(option.reply, None, said=self._said(value)))
                for option, value in made
            )
            found: dict[str, Any] = {
                "mistakes": mistakes,
                "ending": filler.filled(step.ending, None, best=self._said(answer)),
                "also": self._also(pictures, of),
                "care": step.care,
                "footer": await self._footer(),
                "pictures": pictures,
            }
        if is_shape:
            return Decided(shape=tuple(int(size) for size in answer), **found)
        tolerance = step.within * abs(answer[0]) if step.relative else step.within
        return Decided(number=answer[0], tolerance=tolerance, **found)

    def _value(self, line: int, of: Expression, sizes: Mapping[str, float], measured: Mapping[Measure, float]) -> float:
        try:
            return expressions.value(of, sizes, measured)
        except (ArithmeticError, ValueError):
            said = self.step.check if line == self.step.line_of("check") else ""
            option = next((option.said for option in self.step.options if option.line == line), said)
            raise Unfit(Fault(line, words.NO_FINITE.format(expression=numbers.quoted(option)))) from None

    def _whole(self, line: int, value: tuple[float, ...]) -> tuple[float, ...]:
        if not all(size >= 1 and size == int(size) for size in value):
            raise Unfit(Fault(line, words.NO_SHAPE_OF))
        return value

    def _said(self, value: tuple[float, ...]) -> str:
        if self.step.check == "number":
            return numbers.digits(value[0], 4)
        return f"[{', '.join(str(int(size)) for size in value)}]"

    async def _pictures(self) -> tuple[Picture, ...]:
        """The words of `show` in each text of the step; where it names none, the answers of next and heads."""
        step = self.step
        shown = step.show[1:] or (
            tuple(option.said for option in step.options) if step.check in ("next", "heads") else ()
        )
        if not shown:
            return ()
        kind: Kind = "n" if (step.show[:1] or (step.check,)) == ("heads",) else "p"
        found: list[Picture] = []
        for text in step.texts():
            asked = [Measure(kind, word, text) for word in shown]
            measured = await self.runs.measured(asked)
            found.append(Picture(text, tuple((measure.word, measured[measure]) for measure in asked)))
        return tuple(found)

    def _also(self, pictures: tuple[Picture, ...], heads: int) -> str:
        """The words of `show` that are no answers, with their numbers in the step's own text."""
        step = self.step
        told = [
            f"{word} {words.OF.format(n=int(n), of=heads) if step.show[:1] == ('heads',) else share(n)}"
            for word, n in (pictures[0].words if step.show and pictures else ())
            if word not in (option.said for option in step.options)
        ]
        return words.ALSO_SHOWN.format(each=", ".join(told)) if told else ""

    async def _footer(self) -> str:
        """Says what the answer was checked against."""
        step = self.step
        facts = await self.runs.facts(step.text)
        short = step.text if len(step.text) <= 60 else f"… {step.text[-58:]}"
        layer, head = step.head or (0, 0)
        word = step.at or step.text.split()[-1]
        said = {
            "next": words.NEXT_FOOTER.format(text=short),
            "look": words.LOOK_FOOTER.format(layer=layer, head=head, word=word),
            "heads": words.HEADS_FOOTER.format(word=word),
        }.get(step.check, words.TEXT_FOOTER.format(text=short))
        if self.runs.n == 1:
            return lesson_words.FOOTER_RUN.format(what=said)
        return words.FOOTER_RUNS.format(n=self.runs.n, model=facts.spec.title, what=said)


@dataclass(frozen=True)
class _Filler:
    """Sentences with their fields filled in."""

    of_step: _Step
    measured: Mapping[Measure, float]
    options: tuple[str, ...]
    values: tuple[float, ...]
    order: tuple[int, ...]  # of the options, the best first
    heads: int

    def filled(self, pieces: Pieces, chosen: int | None, said: str = "", best: str = "") -> str:
        """A sentence, as it is told to who chose this option."""
        return "".join(
            piece if isinstance(piece, str) else self._field(piece, chosen, said, best) for piece in pieces
        ).strip()

    def count(self, n: float) -> str:
        return words.OF.format(n=int(n), of=self.heads)

    def _field(self, field: Field, chosen: int | None, said: str, best: str) -> str:
        step = self.of_step.step
        if field.name == "swap":
            kind: Kind = "n" if step.check == "heads" else "p"
            each = [f"{word} {self._told(Measure(kind, word, 'swap'))}" for word in self.options]
            return ", ".join(each)
        name = field.name if field.name in ("said", "best", "second") else field.word or "said"
        ranked = {"said": chosen, **dict(zip(("best", "second"), self.order, strict=False))}
        at = ranked.get(name) if name in ("said", "best", "second") else None
        if field.name in ("said", "best", "second"):
            return self.options[at] if at is not None else (said if name == "said" else best)
        kind = KINDS["look" if step.check == "look" and field.name == "p" else field.name]
        if at is None:
            return self._told(Measure(kind, field.word, field.at))
        if field.at:
            return self._told(Measure(kind, self.options[at], field.at))
        return self.count(self.values[at]) if kind == "n" else share(self.values[at])

    def _told(self, measure: Measure) -> str:
        found = self.measured[measure]
        return self.count(found) if measure.kind == "n" else share(found)


def share(p: float) -> str:
    """A share in per cent: "16 %", "2.7 %", "less than 0.1 %"; "100 %" only of the whole."""
    if 0 < p < LEAST:
        return words.LITTLE
    if 1 - LEAST / 2 < p < 1:
        return lesson_words.ANSWER["nearly"]
    return numbers.share(p, 1 if p < 0.0995 or 0.995 <= p < 1 else 0)


def _told_apart(keys: Tokens, places: Sequence[int]) -> list[str]:
    """The labels of tokens, with a number where a label is there several times: "the 2"."""
    labels = [keys.labels[i] for i in places]
    return [
        f"{label} {labels[: i + 1].count(label)}" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def _speaking(language: str) -> Any:
    """Numbers and sentences of ours in the lesson's language, where it is one of the screens'; else in the visitor's."""
    return languages.speaking(language if language in languages.CODES else languages.current())
