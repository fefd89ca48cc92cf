"""Rules: what the parts of one written step must be to each other, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from app.kit import numbers
from app.rooms.lessons.written import words
from app.rooms.lessons.written.expressions import KINDS, Field, Measure, measures
from app.rooms.lessons.written.faults import Fault, nearest
from app.rooms.lessons.written.lesson import Option, Written, pieces_of

MOST_RUNS = 12  # of one step
LISTED = 12  # words that a sentence lists
NUMBERED = re.compile(r"(.+) (\d{1,2})")
ARTICLES = {"the", "a", "an", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem"}
SORTED = ("next", "look", "heads")  # checks whose options have an order, so that there is a best and a second one


def place(text: str, said: str) -> tuple[int, int]:
    """The first character of a word of the text, and the one after its last; "the 2" is the second "the".

    Raises LookupError with a sentence, and the word that was probably meant or "".
    """
    found = [(start, end) for word, start, end in pieces_of(text) if word == said]
    which = 1
    if not found and (numbered := NUMBERED.fullmatch(said)):
        bare, which = numbered[1].strip(), int(numbered[2])
        found = [(start, end) for word, start, end in pieces_of(text) if word == bare]
        if found and not 1 <= which <= len(found):
            raise LookupError(words.NO_SUCH_ONE.format(word=numbers.quoted(bare), n=len(found), which=which), "")
        return found[which - 1] if found else _nowhere(text, said)
    if not found:
        return _nowhere(text, said)
    if len(found) > 1:
        raise LookupError(words.WHICH_ONE.format(word=numbers.quoted(said), n=len(found)), "")
    return found[0]


def _nowhere(text: str, said: str) -> tuple[int, int]:
    known = [word for word, _, _ in pieces_of(text)]
    listed = ", ".join(known[:LISTED]) + (" …" if len(known) > LISTED else "")
    raise LookupError(
        words.NOT_AMONG.format(word=numbers.quoted(said), n=len(known), words=listed), nearest(said, known)
    )


def nouns(text: str) -> list[str]:
    """The words after an article, each once: mostly they are nouns."""
    known = [word for word, _, _ in pieces_of(text)]
    after = [word for before, word in pairwise(known) if before.casefold() in ARTICLES]
    return list(dict.fromkeys(after))


class Rules:
    """Of one step whose lines could all be read."""

    def __init__(self, step: Written) -> None:
        self.step = step
        self.found: list[Fault] = []

    def fault(self, line: int, sentence: str, suggestion: str = "") -> None:
        self.found.append(Fault(line, sentence, suggestion))

    def faults(self) -> list[Fault]:
        """All of them."""
        step = self.step
        if step.swap:
            for word in step.swap:
                self.word(step.line_of("swap"), step.text, word, repeated=True)
        if step.at:
            self.word(step.line_of("at"), step.text, step.at)
        if step.check == "look" and (step.head is None or not step.at):
            self.fault(step.line_of("check"), words.NO_LOOK)
        if step.show[:1] == ("heads",):
            for word in step.show[1:]:
                self.word(step.line_of("show"), step.text, word)
        self.options()
        if self.found:
            return self.found
        for expression in step.answer:
            self.measures(step.line_of("check"), measures(expression))
        for option in step.options:
            for expression in option.value:
                self.measures(option.line, measures(expression))
            self.sentence(option.reply, is_reply=True)
        self.sentence(step.ending, is_reply=False)
        if not self.found and (n := len(set(asked_texts(step)))) > MOST_RUNS:
            self.fault(step.line, words.MANY_RUNS.format(most=MOST_RUNS, n=n))
        return self.found

    def word(self, line: int, text: str, said: str, repeated: bool = False) -> None:
        """A word must be in the text, and only once unless it may be repeated."""
        try:
            place(text, said)
        except LookupError as error:
            if not (repeated and said in (word for word, _, _ in pieces_of(text))):
                self.fault(line, *error.args)

    def options(self) -> None:
        step = self.step
        if step.check in ("number", "shape"):
            for option in step.options:
                if not option.reply:
                    self.fault(option.line, words.NO_REPLY)
            return
        if len(step.options) == 1:
            self.fault(step.options[0].line, words.ONE_OPTION)
        if not step.options and not (step.check == "look" or (step.check == "heads" and len(compared(step)) > 1)):
            self.fault(step.line_of("?"), words.NO_OPTION)
        for option in step.options:
            if step.check == "next":
                if (n := len(option.said.split())) != 1:
                    self.fault(option.line, words.SPACED_OPTION.format(option=numbers.quoted(option.said), n=n))
            else:
                self.word(option.line, step.text, option.said)

    def measures(self, line: int, asked: Iterable[Measure]) -> None:
        for measure in asked:
            self.measure(line, measure)

    def measure(self, line: int, asked: Measure) -> None:
        """Its text must be known, its word in it, and what it needs of the step there."""
        step = self.step
        if asked.at == "swap" and step.swap is None:
            self.fault(line, words.NO_SWAP.format(said="@swap"))
            return
        if asked.at and asked.at not in ("swap", step.also, step.last) and len(asked.at.split()) < 2:
            self.fault(line, words.AT.format(said=numbers.quoted(f"@{asked.at}")))
            return
        if asked.kind == "look" and (step.head is None or not step.at):
            self.fault(line, words.NEEDS_HEAD.format(said=f"{asked.kind}.{numbers.quoted(asked.word)}"))
        elif asked.kind == "n" and len(compared(step)) < 2:
            self.fault(line, words.NEEDS_HEADS.format(said=f"{asked.kind}.{numbers.quoted(asked.word)}"))
        elif asked.kind == "n" and asked.word not in compared(step):
            known = compared(step)
            sentence = words.NOT_COMPARED.format(word=numbers.quoted(asked.word), words=", ".join(known))
            self.fault(line, sentence, nearest(asked.word, known))
        elif asked.kind != "p":
            text = step.other(asked.at)
            for word in (asked.word, *([step.at] if step.at else []), *(compared(step) if asked.kind == "n" else ())):
                self.word(line, text, word)

    def sentence(self, pieces: Sequence[str | Field], is_reply: bool) -> None:
        step = self.step
        for field in pieces:
            if isinstance(field, str):
                continue
            name, line = field.name, field.line
            shown = numbers.quoted(f"{name}.{field.word}" if field.word else name)
            own = name == "said" or field.word == "said" or (name in KINDS and not field.word)
            if own and not is_reply:
                self.fault(line, words.IN_REPLY.format(field=shown))
            elif not _fits(step, field):
                self.fault(line, words.FIELD_OF.format(field=shown, check=step.check))
            elif name == "swap" and step.swap is None:
                self.fault(line, words.NO_SWAP.format(said="{swap}"))
            elif name in KINDS:
                self.measures(line, asked_by(step, field, step.options))


def _fits(step: Written, field: Field) -> bool:
    """Whether a field says something with the step's check."""
    ranked = field.name if field.name in ("best", "second") else field.word
    if ranked == "second" or (ranked == "best" and field.word):
        return step.check in SORTED
    if field.name == "swap":
        return step.check in ("next", "heads")
    if field.name in KINDS and field.word in ("", "said"):
        return step.check in {"p": ("next", "look"), "n": ("heads",), "look": ("look",)}[field.name]
    return True


def compared(step: Written) -> tuple[str, ...]:
    """The words that heads are counted for: a head counts for the one that gets most."""
    if step.show[:1] == ("heads",):
        return step.show[1:]
    return tuple(option.said for option in step.options) if step.check == "heads" else ()


def asked_by(step: Written, field: Field, options: Sequence[Option]) -> Iterator[Measure]:
    """The measures that a field may come to: of its word, or of every option where it names the chosen, the best or the second one."""
    at = field.at
    if field.name == "swap":
        kind, at = KINDS["p" if step.check == "next" else "n"], "swap"
    elif field.name in KINDS:
        kind = KINDS["look" if step.check == "look" and field.name == "p" else field.name]
        if field.word not in ("", "said", "best", "second"):
            yield Measure(kind, field.word, at)
            return
    else:
        return
    for option in options:
        yield Measure(kind, option.said, at)


def asked_measures(step: Written) -> Iterator[Measure]:
    """Every measure that the step asks for, beside the values of its options."""
    for expression in (*step.answer, *(part for option in step.options for part in option.value)):
        yield from measures(expression)
    for pieces in (*(option.reply for option in step.options), step.ending):
        for field in pieces:
            if isinstance(field, Field):
                yield from asked_by(step, field, step.options)


def asked_texts(step: Written) -> Iterator[str]:
    """The texts that are run: those that the picture shows, and those that a measure names."""
    yield from step.texts()
    yield from (step.other(measure.at) for measure in asked_measures(step))
