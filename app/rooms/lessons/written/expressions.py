"""Expressions over a run: a small grammar of numbers, sizes and measures, read by hand and never by Python.

    sum     = product (("+" | "-") product)*
    product = power (("*" | "/") power)*
    power   = sign ("^" power)?
    sign    = "-" sign | number | size | function "(" sum ")" | measure | "(" sum ")"
    measure = ("p" | "n" | "look") "." word ("@" text)?       p.are   p.are@"The key to the cabinet"   n.pilot@swap

A field in braces is one measure or one name. Texts and words are data: nothing in them is read as an expression or as markup.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.kit import numbers
from app.rooms.lessons.written import words

LONGEST = 200  # characters of an expression or a field
DEEPEST = 8  # brackets, signs and powers inside one another
MOST_SIGNS = 64
LARGEST = 1e12

Kind = Literal["p", "n", "look"]
KINDS: dict[str, Kind] = {"p": "p", "n": "n", "look": "look"}
SIZES = ("tokens", "layers", "heads", "kv_heads", "d_model", "d_head", "d_ff", "vocab")
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "log2": math.log2,
    "abs": abs,
    "round": lambda x: float(math.floor(x + 0.5)),
}
OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": math.pow,
}
SAME = {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}
SIGN = re.compile(
    r"\s*(?:(?P<number>\d{1,12}(?:\.\d{1,12})?)"
    r"|(?P<measure>(?:p|n|look)\.[\w'’-]{1,40}(?: \d{1,2})?(?:@(?:\w+|\"[^\"]*\"))?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>[-+*/^()×·÷−–]))"
)
FIELD_NAMES = ("said", "p", "n", "best", "second", "swap")
FIELD = re.compile(r"(?P<name>p|n|look)(?:\.(?P<word>[^@{}]+))?(?:@(?P<at>.+))?")


class Unreadable(ValueError):
    """An expression or a field that cannot be read: a sentence, and the known word that is nearest."""

    def __init__(self, sentence: str, wrong: str = "", known: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.wrong, self.known = wrong, known


@dataclass(frozen=True)
class Measure:
    """A number of a run: the probability of a word (p), in how many heads it gets more (n), or its weight in the step's head (look).

    `at` is "" for the step's text, "swap", the word of `also:`, or another text.
    """

    kind: Kind
    word: str
    at: str = ""


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Size:
    """A size of the run, by its name in SIZES."""

    name: str


@dataclass(frozen=True)
class Applied:
    """A function or an operation, by its name, of one part or of two; "-" of one part is its opposite."""

    name: str
    parts: tuple[Expression, ...]


Expression = Number | Size | Measure | Applied


@dataclass(frozen=True)
class Field:
    """A field in braces: said, best, second or swap, or a measure of a word; of the chosen option where `word` is ""."""

    name: str
    word: str = ""
    at: str = ""
    line: int = 0  # of the file


Pieces = tuple[str | Field, ...]  # a sentence


def read(text: str) -> Expression:
    """An expression. Raises Unreadable."""
    if len(text) > LONGEST:
        raise Unreadable(words.LONG_FIELD.format(n=len(text), most=LONGEST))
    reader = _Reader(text)
    found = reader.sum(0)
    reader.end()
    return found


def measures(of: Expression) -> Iterator[Measure]:
    """Every measure that an expression asks for."""
    if isinstance(of, Measure):
        yield of
    elif isinstance(of, Applied):
        for part in of.parts:
            yield from measures(part)


def value(of: Expression, sizes: Mapping[str, float], measured: Mapping[Measure, float]) -> float:
    """Its value. Raises ArithmeticError or ValueError where it has none, and ArithmeticError for one beyond LARGEST."""
    if isinstance(of, Number):
        found = of.value
    elif isinstance(of, Size):
        found = float(sizes[of.name])
    elif isinstance(of, Measure):
        found = measured[of]
    else:
        parts = [value(part, sizes, measured) for part in of.parts]
        if of.name in FUNCTIONS:
            found = FUNCTIONS[of.name](parts[0])
        else:
            found = -parts[0] if len(parts) == 1 else OPERATIONS[of.name](*parts)
    if not math.isfinite(found) or abs(found) > LARGEST:
        raise ArithmeticError
    return found


def sentence(text: str, most: int, line: int = 0) -> Pieces:
    """A sentence with its fields and their line. Raises Unreadable."""
    pieces: list[str | Field] = []
    at = 0
    while at < len(text):
        opens = text.find("{", at)
        plain = text[at:] if opens < 0 else text[at:opens]
        if "}" in plain:
            raise Unreadable(words.LONE_BRACE)
        if plain:
            pieces.append(plain)
        if opens < 0:
            break
        closes = text.find("}", opens)
        inside = text[opens + 1 : closes]
        if closes < 0 or "{" in inside:
            raise Unreadable(words.OPEN_BRACE)
        if sum(isinstance(piece, Field) for piece in pieces) == most:
            raise Unreadable(words.MANY_FIELDS.format(most=most))
        pieces.append(_field(inside.strip(), line))
        at = closes + 1
    return tuple(pieces)


def _field(inside: str, line: int) -> Field:
    if len(inside) > LONGEST:
        raise Unreadable(words.LONG_FIELD.format(n=len(inside), most=LONGEST))
    if inside in ("said", "best", "second", "swap"):
        return Field(inside, line=line)
    found = FIELD.fullmatch(inside)
    if found is None:
        shown = numbers.quoted(inside)
        raise Unreadable(words.FIELD.format(field=shown), re.split("[.@]", inside)[0], FIELD_NAMES)
    return Field(found["name"], (found["word"] or "").strip(), (found["at"] or "").strip().strip('"'), line)


class _Reader:
    """Reads an expression from left to right, one sign ahead."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.signs = text.rstrip(), 0, 0
        self.next: tuple[str, str] | None = None
        self._step()

    def _step(self) -> None:
        if self.at >= len(self.text):
            self.next = None
            return
        found = SIGN.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :].lstrip()
            raise Unreadable(words.OPEN_QUOTE if rest[0] == '"' else words.SIGN.format(sign=rest[0]))
        self.signs += 1
        if self.signs > MOST_SIGNS:
            raise Unreadable(words.MANY_SIGNS.format(most=MOST_SIGNS))
        kind = str(found.lastgroup)
        self.at, self.next = found.end(), (kind, SAME.get(found[kind], found[kind]))

    def _take(self) -> tuple[str, str]:
        if self.next is None:
            raise Unreadable(words.CUT)
        taken = self.next
        self._step()
        return taken

    def _is(self, *signs: str) -> bool:
        return self.next is not None and self.next[0] == "sign" and self.next[1] in signs

    def sum(self, depth: int) -> Expression:
        found = self.product(depth)
        while self._is("+", "-"):
            found = Applied(self._take()[1], (found, self.product(depth)))
        return found

    def product(self, depth: int) -> Expression:
        found = self.power(depth)
        while self._is("*", "/"):
            found = Applied(self._take()[1], (found, self.power(depth)))
        return found

    def power(self, depth: int) -> Expression:
        found = self.sign(depth)
        if not self._is("^"):
            return found
        self._take()
        return Applied("^", (found, self.power(depth + 1)))

    def sign(self, depth: int) -> Expression:
        if depth > DEEPEST:
            raise Unreadable(words.DEEP.format(most=DEEPEST))
        kind, text = self._take()
        if kind == "number":
            return Number(float(text))
        if kind == "measure":
            return _measure(text)
        if kind == "name":
            return self.named(text, depth)
        if text == "-":
            return Applied("-", (self.sign(depth + 1),))
        if text == "(":
            return self.bracket(depth)
        raise Unreadable(words.LEFT.format(sign=text))

    def named(self, name: str, depth: int) -> Expression:
        if name in SIZES:
            return Size(name)
        if name in FUNCTIONS:
            if not self._is("("):
                raise Unreadable(words.CUT)
            self._take()
            return Applied(name, (self.bracket(depth),))
        known = (*SIZES, *FUNCTIONS)
        said = ", ".join((*known, "p.word", "n.word", "look.word"))
        raise Unreadable(words.NAME.format(name=numbers.quoted(name), known=said), name, known)

    def bracket(self, depth: int) -> Expression:
        found = self.sum(depth + 1)
        if not self._is(")"):
            raise Unreadable(words.CLOSED)
        self._take()
        return found

    def end(self) -> None:
        if self.next is not None:
            raise Unreadable(words.LEFT.format(sign=self.next[1]))


def _measure(text: str) -> Measure:
    name, _, rest = text.partition(".")
    word, _, at = rest.partition("@")
    return Measure(KINDS[name], word, at.strip('"'))
