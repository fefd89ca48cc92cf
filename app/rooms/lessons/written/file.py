"""parse(): the text of a lesson becomes steps, or the faults that it has, each with its line.

The text is Markdown with a head between two lines of three dashes. A line that begins with # is a step, ? its question, - an option with
its reply after |, > the end that everybody reads; `key: value` says what runs and how the run decides. An indented line continues the
one before it. Nothing of it is code or markup.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from app.kit import numbers
from app.rooms.lessons.written import expressions, words
from app.rooms.lessons.written.expressions import Expression, Field, Pieces, Unreadable
from app.rooms.lessons.written.faults import Fault, nearest
from app.rooms.lessons.written.lesson import CHECKS, Check, Option, Written, WrittenLesson, pieces_of
from app.rooms.lessons.written.rules import Rules, nouns
from app.session.models import MODELS
from core.checkpoints.from_config import read_config
from core.errors import HeadlightError

HEAD_KEYS = ("lesson", "model", "language")
KEYS = ("text", "target", "show", "at", "head", "check", "swap", "also", "within", "care")
CONTINUED = ("text", "target", "care")  # keys whose value may continue in an indented line
DASHES = "---"
MOST = 60_000  # characters of a lesson
MOST_LINE = 500
MOST_STEPS = 20
MOST_OPTIONS = 6
MOST_TEXT = 2_000  # characters that a model reads
MOST_WORDS = 40  # of a paragraph
MOST_FIELDS = 12  # in braces, in one line
MOST_SIZES = 6  # of a shape
SEEN = "\t\u200c\u200d\u200e\u200f"  # joiners and marks of direction, which scripts and emoji need
KEY = re.compile(r"([a-z_]+):(?:\s+(.*))?")
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,2}")
WITHIN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(%)?")
PRONOUNS = {"he", "she", "him", "her", "his", "er", "sie", "ihn", "ihm", "ihr"}  # of people, in English and German


def sizes_here(model: str) -> tuple[int, int] | None:
    """How many layers and heads a model has whose files are here; None for one that would be fetched first."""
    spec = MODELS[model]
    if spec.source == "hub":
        return None
    try:
        config = read_config(model if spec.source in ("package", "shipped") else spec.location)
    except (HeadlightError, OSError):
        return None
    return max(config.n_encoder_layers, config.n_decoder_layers), config.n_heads


@dataclass(frozen=True)
class Offered:
    """The models that a lesson may be about: their titles by id, and how many layers and heads each has, None where unknown."""

    titles: Mapping[str, str]
    sizes: Callable[[str], tuple[int, int] | None]


@cache
def offered() -> Offered:
    """Those that visitors may choose."""
    return Offered({id: spec.title for id, spec in MODELS.items()}, cache(sizes_here))


def parse(text: str, models: Offered | None = None) -> WrittenLesson | list[Fault]:
    """A lesson, or its faults in the order of their lines. What only a run can find is left to decide.trial()."""
    return read_whole(text, models)[0]


@dataclass(frozen=True)
class Sketch:
    """The texts of a step, whether it has faults or none: as its author sees it while writing."""

    line: int
    title: str
    text: str
    question: str
    check: str
    options: tuple[str, ...]  # that are shown


def read_whole(text: str, models: Offered | None = None) -> tuple[WrittenLesson | list[Fault], list[Sketch]]:
    """The same as parse(), and what the file has of each step."""
    reader = _Reader(models or offered())
    found = reader.read(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    return found, [_sketch(draft) for draft in reader.drafts]


def _sketch(draft: _Draft) -> Sketch:
    check = draft.values.get("check", "").partition(" ")[0]
    options = () if check in ("number", "shape") else tuple(option.said for option in draft.options)
    return Sketch(draft.line, draft.title, " ".join(draft.paragraph), " ".join(draft.question), check, options)


@dataclass
class _Answer:
    """An option as it is read."""

    line: int
    said: str
    reply: list[tuple[int, str]] | None  # line, text


@dataclass
class _Draft:
    """A step as it is read."""

    line: int
    title: str
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    paragraph: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    options: list[_Answer] = field(default_factory=list)
    ending: list[tuple[int, str]] = field(default_factory=list)
    last: str = "paragraph"  # to which an indented line belongs


class _Reader:
    """Reads one text. A fault does not end it: all are told at once."""

    def __init__(self, models: Offered) -> None:
        self.models = models
        self.faults: list[Fault] = []
        self.hints: list[Fault] = []
        self.head: dict[str, tuple[int, str]] = {}
        self.drafts: list[_Draft] = []

    def fault(self, line: int, sentence: str, suggestion: str = "") -> None:
        self.faults.append(Fault(line, sentence, suggestion))

    def read(self, text: str) -> WrittenLesson | list[Fault]:
        if len(text) > MOST:
            return [Fault(1, words.TOO_LONG.format(most=MOST, n=len(text)))]
        lines = text.split("\n")
        for n, line in enumerate(lines, 1):
            self._visible(n, line)
        if self.faults:
            return self.faults
        body = self._head(lines)
        for n in range(body, len(lines)):
            self._line(n + 1, lines[n])
        model = self._model()
        if not self.drafts:
            self.fault(len(lines), words.NO_STEP)
        steps = [self._step(draft, model) for draft in self.drafts]
        if self.faults:
            return sorted({*self.faults, *self.hints})
        title = self.head["lesson"][1]
        language = self.head.get("language", (0, "en"))[1]
        made = tuple(step for step in steps if step is not None)
        return WrittenLesson(title, model, language, made, tuple(sorted(self.hints)))

    def _visible(self, n: int, line: str) -> None:
        """A line that cannot be seen whole is not read: a mark that turns the order of letters would hide what a line says."""
        if len(line) > MOST_LINE:
            self.fault(n, words.LONG_LINE.format(n=len(line), most=MOST_LINE))
        for at, letter in enumerate(line, 1):
            if letter not in SEEN and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
                self.fault(n, words.UNSEEN.format(at=at, code=f"{ord(letter):04X}"))
                return

    # the head

    def _head(self, lines: list[str]) -> int:
        """Reads the head, and says at which line the steps begin, from 0."""
        if lines[0].rstrip() != DASHES:
            self.fault(1, words.NO_HEAD)
            return 0
        for i in range(1, len(lines)):
            line = lines[i].rstrip()
            if line == DASHES:
                return i + 1
            if line.startswith("# "):
                self.fault(i + 1, words.OPEN_HEAD)
                return i
            if line:
                self._head_line(i + 1, line)
        self.fault(len(lines), words.OPEN_HEAD)
        return len(lines)

    def _head_line(self, n: int, line: str) -> None:
        found = KEY.fullmatch(line)
        if found is None:
            self.fault(n, words.HEAD_LINE)
            return
        key, said = found[1], (found[2] or "").strip()
        if key not in HEAD_KEYS:
            meant = nearest(key, HEAD_KEYS)
            self.fault(n, words.HEAD_KEY.format(key=numbers.quoted(key)), meant)
            if meant:
                self.head.setdefault(meant, (n, said))  # so that nothing else is wrong for its sake
        elif key in self.head:
            self.fault(n, words.TWICE.format(key=key, line=self.head[key][0]))
        else:
            self.head[key] = (n, said)
            if not said:
                self.fault(n, words.EMPTY.format(key=key))

    def _model(self) -> str:
        """The id of the model; "" where there is none."""
        if not self.head and self.faults:
            return ""  # there is no head, which was said
        for key in ("lesson", "model"):
            if key not in self.head:
                self.fault(1, words.HEAD_LACKS.format(key=key))
        line, language = self.head.get("language", (0, ""))
        if language and not LANGUAGE.fullmatch(language):
            self.fault(line, words.NO_LANGUAGE.format(language=numbers.quoted(language)))
        line, said = self.head.get("model", (0, ""))
        for id, title in self.models.titles.items():
            if said.casefold() in (id.casefold(), title.casefold()):
                return id
        if said:
            known = ", ".join(self.models.titles)
            names = (*self.models.titles, *self.models.titles.values())
            self.fault(line, words.NO_MODEL.format(model=numbers.quoted(said), models=known), nearest(said, names))
        return ""

    # lines of steps

    def _line(self, n: int, line: str) -> None:
        text = line.strip()
        if not text:
            return
        if line.startswith("# "):
            if len(self.drafts) == MOST_STEPS:
                self.fault(n, words.MANY_STEPS.format(most=MOST_STEPS))
            if len(self.drafts) <= MOST_STEPS:
                self.drafts.append(_Draft(n, text[2:].strip()))
            return
        if not self.drafts:
            if not self.faults or self.faults[-1].sentence != words.BEFORE_STEPS:
                self.fault(n, words.BEFORE_STEPS)
            return
        draft = self.drafts[-1]
        if line[0].isspace():
            self._continued(draft, n, text)
        elif line[0] == "?":
            if draft.question:
                self.fault(n, words.TWO_QUESTIONS)
            draft.question.append(text[1:].strip())
            draft.lines.setdefault("?", n)
            draft.last = "?"
        elif line.startswith("- "):
            said, bar, reply = text[2:].partition("|")
            draft.options.append(_Answer(n, said.strip(), [(n, reply.strip())] if bar else None))
            draft.last = "-"
        elif line[0] == ">":
            draft.ending.append((n, text[1:].strip()))
            draft.last = ">"
        elif found := KEY.fullmatch(text):
            self._value(draft, n, found[1], (found[2] or "").strip())
        elif draft.question:
            self.fault(n, words.NOWHERE)
        else:
            draft.paragraph.append(text)
            draft.last = "paragraph"

    def _continued(self, draft: _Draft, n: int, text: str) -> None:
        last = draft.last
        if last == "?":
            draft.question.append(text)
        elif last == ">":
            draft.ending.append((n, text))
        elif last == "-" and draft.options[-1].reply is not None:
            draft.options[-1].reply.append((n, text))
        elif last == "-" and text[0] == "|":
            draft.options[-1].reply = [(n, text[1:].strip())]
        elif last in CONTINUED and last in draft.values:
            draft.values[last] = f"{draft.values[last]} {text}".strip()
        elif last == "paragraph":
            draft.paragraph.append(text)
        else:
            self.fault(n, words.NOWHERE)

    def _value(self, draft: _Draft, n: int, key: str, said: str) -> None:
        draft.last = key
        if key not in KEYS:
            self.fault(n, words.STEP_KEY.format(key=numbers.quoted(key)), nearest(key, KEYS))
        elif key in draft.values:
            self.fault(n, words.TWICE.format(key=key, line=draft.lines[key]))
        else:
            draft.values[key], draft.lines[key] = said, n
            if not said and key not in CONTINUED:
                self.fault(n, words.EMPTY.format(key=key))

    # a whole step

    def _step(self, draft: _Draft, model: str) -> Written | None:
        """The step of a draft; None where it has faults."""
        before = len(self.faults)
        asked = " ".join(draft.question).strip()
        text = draft.values.get("text", "")
        title = numbers.quoted(draft.title)
        if not any(pieces_of(text)):
            text = ""
            self.fault(draft.lines.get("text", draft.line), words.NO_TEXT.format(title=title))
        for key in ("text", "target"):
            if len(draft.values.get(key, "")) > MOST_TEXT:
                self.fault(draft.lines[key], words.LONG_TEXT.format(n=len(draft.values[key]), most=MOST_TEXT))
        paragraph = " ".join(draft.paragraph)
        if (n := len(paragraph.split())) > MOST_WORDS:
            self.fault(draft.line, words.MANY_WORDS.format(most=MOST_WORDS, n=n))
        if not asked:
            self.fault(draft.lines.get("?", draft.line), words.NO_QUESTION.format(title=title))
        check, answer = self._check(draft)
        if check is None or not text or len(text) > MOST_TEXT:
            for line, said in self._sentences(draft):
                self._pieces(line, said)
            return None
        within, relative = self._within(draft, check)
        step = Written(
            line=draft.line,
            title=draft.title,
            text=text,
            check=check,
            question=asked,
            target=draft.values.get("target") or None,
            paragraph=paragraph,
            show=self._show(draft),
            at=draft.values.get("at", ""),
            head=self._head_of(draft, model),
            swap=self._swap(draft),
            also=self._also(draft),
            answer=answer,
            within=within,
            relative=relative,
            options=self._options(draft, check),
            ending=self._sentence(draft.ending),
            care=draft.values.get("care", ""),
            lines=draft.lines,
        )
        self.faults += Rules(step).faults()
        self._order(step)
        self._tells(step)
        return step if len(self.faults) == before else None

    def _check(self, draft: _Draft) -> tuple[Check | None, tuple[Expression, ...]]:
        said = draft.values.get("check", "")
        line = draft.lines.get("check", draft.lines.get("?", draft.line))
        name, _, rest = said.partition(" ")
        found = CHECKS.get(name)
        if "check" not in draft.values:
            if draft.question:
                self.fault(line, words.NO_CHECK)
        elif found is None and name:
            self.fault(line, words.CHECK.format(check=numbers.quoted(name)), nearest(name, CHECKS))
        elif found in ("number", "shape"):
            if not rest.strip():
                self.fault(line, words.NO_NUMBER if found == "number" else words.NO_SHAPE)
            return found, self._expressions(line, rest, found)
        elif rest.strip():
            self.fault(line, words.CHECK_ALONE.format(check=name))
        return found, ()

    def _expressions(self, line: int, said: str, check: Check) -> tuple[Expression, ...]:
        """Of a number one, of a shape one for each size."""
        parts = re.findall(r'(?:[^,"]|"[^"]*"?)+', said) if check == "shape" else [said] if said.strip() else []
        found = []
        for part in parts[:MOST_SIZES]:
            try:
                found.append(expressions.read(part))
            except Unreadable as error:
                self.fault(line, str(error), nearest(error.wrong, error.known))
        return tuple(found)

    def _within(self, draft: _Draft, check: Check) -> tuple[float, bool]:
        if "within" not in draft.values:
            return 0.01, True
        line = draft.lines["within"]
        if check != "number":
            self.fault(line, words.WITHIN_ALONE)
        found = WITHIN.fullmatch(draft.values["within"])
        if found is None:
            self.fault(line, words.WITHIN)
            return 0.01, True
        return (float(found[1]) / 100, True) if found[2] else (float(found[1]), False)

    def _show(self, draft: _Draft) -> tuple[str, ...]:
        shown = tuple(draft.values.get("show", "").split())
        if shown and shown[0] not in ("next", "heads"):
            self.fault(draft.lines["show"], words.SHOW, nearest(shown[0], ("next", "heads")))
        elif len(shown) == 1:
            self.fault(draft.lines["show"], words.SHOW)
        return shown

    def _head_of(self, draft: _Draft, model: str) -> tuple[int, int] | None:
        if not (said := draft.values.get("head")):
            return None
        found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", said)
        if found is None:
            self.fault(draft.lines["head"], words.HEAD_WRITTEN)
            return None
        layer, head = int(found[1]), int(found[2])
        sizes = self.models.sizes(model) if model else None
        if sizes is not None and (layer >= sizes[0] or head >= sizes[1]):
            title = self.models.titles[model]
            sentence = words.HEAD_RANGE.format(model=title, layers=sizes[0] - 1, heads=sizes[1] - 1)
            self.fault(draft.lines["head"], sentence)
        return layer, head

    def _swap(self, draft: _Draft) -> tuple[str, str] | None:
        if not (said := draft.values.get("swap")):
            return None
        parts = [part.strip() for part in said.split(",")]
        if len(parts) != 2 or not all(parts):
            self.fault(draft.lines["swap"], words.SWAP)
            return None
        if parts[0] == parts[1]:
            self.fault(draft.lines["swap"], words.SWAP_SAME)
        return parts[0], parts[1]

    def _also(self, draft: _Draft) -> str:
        said = draft.values.get("also", "")
        if len(said.split()) > 1 or said == "swap":
            self.fault(draft.lines["also"], words.ALSO)
        return said

    def _options(self, draft: _Draft, check: Check) -> tuple[Option, ...]:
        found: list[Option] = []
        for option in draft.options:
            reply = self._sentence(option.reply or [])
            if len(found) == MOST_OPTIONS:
                self.fault(option.line, words.MANY_OPTIONS.format(most=MOST_OPTIONS))
                break
            if before := next((one for one in found if one.said == option.said), None):
                said = numbers.quoted(option.said)
                self.fault(option.line, words.SAME_OPTION.format(option=said, line=before.line))
            value = ()
            if check in ("number", "shape"):
                value = self._expressions(option.line, option.said, check)
            found.append(Option(option.line, option.said, reply, value))
        return tuple(found)

    def _sentences(self, draft: _Draft) -> Iterable[tuple[int, str]]:
        for option in draft.options:
            yield from option.reply or []
        yield from draft.ending

    def _sentence(self, lines: list[tuple[int, str]]) -> Pieces:
        """A sentence of several lines; a field begins and ends in one of them."""
        found: list[str | expressions.Field] = []
        for line, said in lines:
            found += [" "] * bool(found) + [*self._pieces(line, said)]
        return tuple(found)

    def _pieces(self, line: int, said: str) -> Pieces:
        try:
            return expressions.sentence(said, MOST_FIELDS, line)
        except Unreadable as error:
            self.fault(line, str(error), nearest(error.wrong, error.known))
            return ()

    def _tells(self, step: Written) -> None:
        """A hint where a reply says what is right: a wrong answer hears it before its second try."""
        for piece in (piece for option in step.options for piece in option.reply):
            if isinstance(piece, Field) and "best" in (piece.name, piece.word):
                said = f"{piece.name}.{piece.word}" if piece.word else piece.name
                self.hints.append(Fault(piece.line, words.TELLS.format(field=said)))

    def _order(self, step: Written) -> None:
        """A hint where two people have one order, and a pronoun is asked for: the order alone may decide it."""
        asked = [option.said for option in step.options] if step.check == "next" else []
        if step.check == "heads":
            asked += [word for word, _, _ in pieces_of(step.text)][-1:]
        found = nouns(step.text)
        if step.swap is None and len(found) > 1 and PRONOUNS & {word.casefold() for word in asked}:
            self.hints.append(Fault(step.line_of("text"), words.ORDER.format(first=found[0], second=found[1])))
