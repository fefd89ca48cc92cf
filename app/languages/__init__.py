"""The languages of the interface: which one is spoken now, and what is said in it.

Every sentence is written in English where it is used: in a words.py, in a lesson, in a refusal of core. A language is one file of
this folder in gettext's format, de.po, which gives each of them by its English text. What it lacks stays English, and a test names it.
docs/languages.md says how to add one. Babel is imported for what is not English alone: a notebook shows a run without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

FOLDER = Path(__file__).parent
ENGLISH = "en"
# Every text of a words file in brackets, and longer: one that has none was never in a words file. No switch offers it.
PSEUDO = "en-XA"
CODES = (ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.po")))
KNOWN = (*CODES, PSEUDO)
PARAM = "lang"  # in the address
LETTERS = re.compile(r"[^\W\d_]{2,}")
PLACE = re.compile(r"\{(\d+)\}")  # in a sentence that is looked up with what was put into it
FIELD = re.compile(r"\{[^{}]*\}")
MARKS = {"de": "„“"}  # of a quotation, where they are not as in English; kit/browser/language.js has the same
NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
NUMBERS = re.compile(rf"(?<![\w.,-]){NUMBER.pattern}(?!\w|[.,]\d)")  # those of a text; no part of a name is one
VERSION = re.compile(r"\d+\.\d")  # as in "Llama 3.1", after a word
NAMED = re.compile(rf"(.+) ({NUMBER.pattern})")
LISTED = re.compile(r"(?<=[\d)%])(?:; |, (?![^(]*\)))")  # between numbers that are listed, each with what it is of

Anything = TypeVar("Anything")
_spoken: ContextVar[str | None] = ContextVar("language", default=None)
_of_visit: Callable[[], str | None] = lambda: None  # noqa: E731 - replaced by the session, which this module does not know


class Catalogue(NamedTuple):
    """A language: its text for an English one, its forms for an English pair of forms, and what to look up by a pattern."""

    texts: dict[str, str]
    forms: dict[tuple[str, str], list[str]]
    patterns: list[tuple[list[str], str]]  # what stands around its places, and their numbers; the text of the language


@cache
def names() -> dict[str, str]:
    """{code: what the language calls itself}, for a switch."""
    from babel import Locale

    own = {code: Locale.parse(code, sep="-").get_language_name(code) or code for code in CODES}
    return {code: name[:1].upper() + name[1:] for code, name in own.items()}


@cache
def catalogue(language: str) -> Catalogue:
    """A language as its file has it, read once; empty for English."""
    if language not in CODES or language == ENGLISH:
        return Catalogue({}, {}, [])
    from babel.messages.pofile import read_po

    with (FOLDER / f"{language}.po").open("rb") as file:
        entries = [one for one in read_po(file, locale=language) if one.id and not one.fuzzy]
    texts: dict[str, str] = {}
    forms: dict[tuple[str, str], list[str]] = {}
    for one in entries:
        if isinstance(one.id, tuple):
            given = [str(text) for text in cast("tuple[str, ...]", one.string)]
            if all(given):
                forms[str(one.id[0]), str(one.id[1])] = given
        elif one.string:
            texts[str(one.id)] = str(one.string)
    # One that says more is looked at first: it may be what another one has a place for.
    known = sorted(filter(PLACE.search, texts), key=lambda text: len(PLACE.sub("", text)), reverse=True)
    patterns = [(PLACE.split(text.replace("{{", "{").replace("}}", "}")), texts[text]) for text in known]
    return Catalogue(texts, forms, patterns)


def _filled(pieces: Sequence[str], text: str) -> dict[str, str] | None:
    """{place: what was put there} of a text that is a sentence, filled in; `pieces` are what stands around its places, and their numbers.

    Each piece is looked for once, from left to right, so that however long a visitor's words in it are, it takes no longer than they are.
    """
    if not (text.startswith(pieces[0]) and text.endswith(pieces[-1])):
        return None
    found: dict[str, str] = {}
    at = len(pieces[0])
    for i in range(1, len(pieces), 2):
        place, piece = pieces[i], pieces[i + 1]
        end = text.find(piece, at) if i + 2 < len(pieces) else len(text) - len(piece)
        if end < at or found.setdefault(place, text[at:end]) != text[at:end]:
            return None
        at = end + len(piece)
    return found


def asked(header: str) -> str:
    """The language to speak to a browser that sends this as Accept-Language: the first of its list that is known, else English.

    RFC 9110, section 12.5.4: "de-CH, fr;q=0.7"; a language is meant with all its regions.
    """
    wanted: list[tuple[float, str]] = []
    for part in header.split(",")[:20]:
        code, _, quality = part.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if weight > 0:
            wanted.append((-weight, code.strip()))
    for _, code in sorted(wanted, key=lambda one: one[0]):
        if code == PSEUDO:
            return code
        short = code.lower().partition("-")[0]
        if short in CODES:
            return short
    return ENGLISH


def chosen(said: str, header: str) -> str:
    """The language that an address asks for, where it is one that there is; else the one of the browser."""
    return said if said in KNOWN else asked(header)


def current() -> str:
    """The one that is spoken here: of the request that is answered, or of the visit whose script runs. English for all else."""
    return _spoken.get() or _of_visit() or ENGLISH


def listen(of_visit: Callable[[], str | None]) -> None:
    """From now on ask this for the language of the visitor whose script runs; None where none does."""
    global _of_visit
    _of_visit = of_visit


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Within, this one is spoken."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


def translated(value: Anything, language: str = "") -> Anything:
    """The same with each English text in it said in the language; keys, numbers and what the language lacks stay.

    A pair of forms, "{n} token" and "{n} tokens", becomes as many as the language has.
    """
    language = language or current()
    return value if language == ENGLISH else _translated(value, language)


def _translated(value: Any, language: str) -> Any:
    if isinstance(value, str):
        return _pseudo(value) if language == PSEUDO else catalogue(language).texts.get(value, value)
    if isinstance(value, dict):
        return {key: _translated(inner, language) for key, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        members = cast("list[Any] | tuple[Any, ...]", value)
        if len(members) == 2 and all(isinstance(one, str) for one in members):
            forms = catalogue(language).forms.get((members[0], members[1]))
            if forms:
                return forms if isinstance(value, list) else tuple(forms)
        return type(members)([_translated(one, language) for one in members])
    return value


def _pseudo(text: str) -> str:
    """Longer by a third, as other languages are, and in brackets that show where a sentence was put together of parts."""
    if text.startswith("⟦") or not LETTERS.search(FIELD.sub("", text)):
        return text
    return f"⟦{text}{'·' * (len(text) // 3)}⟧"


def said(sentence: object) -> str:
    """A finished sentence, such as a refusal of core, in the language: it is found by its English form, with what was put into it."""
    text, language = str(sentence), current()
    if language == ENGLISH:
        return text
    if language == PSEUDO:
        return _pseudo(text)
    known = catalogue(language)
    found = _known(text, known)
    return text if found is None else found


def part(text: str) -> str:
    """The same of what is no sentence: an option of a question, or what is put into a sentence. Numbers are as the language writes them."""
    language = current()
    if language == ENGLISH:
        return text
    return _pseudo(text) if language == PSEUDO else _part(text, catalogue(language))


def _known(text: str, known: Catalogue) -> str | None:
    """A sentence that the catalogue knows, by its pattern where it was filled in."""
    if text in known.texts:
        return known.texts[text]
    for pieces, given in known.patterns:
        if (filled := _filled(pieces, text)) is not None:
            parts = PLACE.split(given)
            parts[::2] = [piece.replace("{{", "{").replace("}}", "}") for piece in parts[::2]]
            parts[1::2] = [_part(filled[place], known) for place in parts[1::2]]
            return "".join(parts)
    return None


def _part(text: str, known: Catalogue) -> str:
    """One thing that was put into a sentence: a number as the language writes it, a phrase it knows, a visitor's own words, or several."""
    if NUMBER.fullmatch(text):
        return decimal(text)
    found = _known(text, known) if " " in text.strip() else None  # a single word may be a visitor's own token
    if found is not None:
        return found
    parts = LISTED.split(text)
    if len(parts) > 1:
        is_mistaken = decimal(".") == "," and sum("." in one for one in NUMBERS.findall(text)) > 1
        return ("; " if is_mistaken or "; " in text else ", ").join(_part(one, known) for one in parts)
    if (named := NAMED.fullmatch(text)) and named[1] in known.texts:
        return f"{known.texts[named[1]]} {decimal(named[2])}"
    return numbers(re.sub(r"\(([^()]+)\)", lambda inner: f"({known.texts.get(inner[1], inner[1])})", text))


def numbers(text: str) -> str:
    """A text in English with its numbers as the language writes them; the version in a name is none."""

    def said(number: re.Match[str]) -> str:
        before = text[: number.start()]
        is_version = before[-1:] == " " and before[-2:-1].isalpha() and VERSION.fullmatch(number[0])
        return number[0] if is_version else decimal(number[0])

    return NUMBERS.sub(said, text)


def quotation(text: str) -> str:
    """A quoted word or text, between the marks of the language."""
    opens, closes = MARKS.get(current(), "“”")
    return f"{opens}{text}{closes}"


def decimal(text: str) -> str:
    """Numbers written as English writes them, "1,234.5", with the signs of the language: "1.234,5"."""
    language = current()
    if language in (ENGLISH, PSEUDO):
        return text
    return text.translate(_signs(language))


@cache
def _signs(language: str) -> dict[int, str]:
    from babel.numbers import get_decimal_symbol, get_group_symbol

    return str.maketrans({",": get_group_symbol(language), ".": get_decimal_symbol(language)})


class Words(ModuleType):
    """A module of words, whose constants are in the language that is spoken where they are read.

    While a module is imported it gets them in English: what it makes of them is said in a language where it is shown.
    """

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not name.isupper():
            return value
        language = current()
        if language == ENGLISH or sys._getframe(1).f_code.co_name == "<module>":
            return value
        module: str = super().__getattribute__("__name__")
        if name in READ[module] or name in LINKS[module]:
            return value
        key = (language, module, name)
        kept = _kept.get(key)
        if kept is None or kept[0] is not value:
            kept = _kept[key] = (value, _translated(value, language))
        return kept[1]


READ: dict[str, frozenset[str]] = {}  # module of words -> its constants that a model reads
LINKS: dict[str, frozenset[str]] = {}  # and those that links know by their English text
_kept: dict[tuple[str, str, str], tuple[Any, Any]] = {}  # (language, module, name) -> the English value and the other


def of(module: str, read: Collection[str] = (), links: Collection[str] = ()) -> None:
    """The constants of this module are words. It says so in its last line: languages.of(__name__).

    Those named in `read` are texts that a model reads, and stay as they are. So do those in `links`, which links and choices know by
    their English text, with all keys of theirs: they are translated() where they are shown.
    """
    READ[module], LINKS[module] = frozenset(read), frozenset(links)
    sys.modules[module].__class__ = Words
