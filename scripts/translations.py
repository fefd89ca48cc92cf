"""Every sentence that a visitor can read, and the files of app/languages with what each is in another language.

    python -m scripts.translations            brings app/languages/*.po up to date: new sentences without a translation, old ones gone
    python -m scripts.translations --check    1 where a file is out of date or lacks a translation
    python -m scripts.translations fr         begins app/languages/fr.po

A sentence is where it is used: a constant of a words.py, a step of a lesson, a refusal of core. This reads them from there, as
gettext's tools do; docs/languages.md says how a language is added.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from app.languages import FIELD, FOLDER, LETTERS, LINKS, PLACE, READ
from core import errors

ROOT = Path(__file__).resolve().parents[1]
REFUSALS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
# Beside the words.py: modules whose constants are words, and modules with sentences in the middle of what they compute
WORDS = ("app/classroom/sentences.py",)
WITH_SENTENCES = "app/rooms/lessons/*.py"
EXAMPLES = "app/session/examples.py"  # of whose examples the titles are words, and the texts are what a model reads
CATALOG = "core/checkpoints/catalog.py"  # whose models have a note each
FIXED = 14  # letters that a sentence has beside what is put into it: one of less would be found in any other
NOT_SEEN = (
    "core/__main__.py",
    "core/errors.py",
    "core/learn/training.py",
    "core/old_names.py",
    "core/peers/",
    "core/read/paper_figures.py",
    "core/read/report.py",
    "core/run/capture.py",
    "core/run/trace_record.py",
    "core/run/wrapped",
    "core/patching/atlas.py",
)  # of a notebook or a terminal, never on a screen
SENTENCE = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z“]{2,}")
# Lines of gettext's own that say nothing here, or another thing every day
OF_NO_USE = tuple(
    f'"{name}' for name in ("Project-Id", "Report-", "POT-", "PO-", "Last-", "Language-Team", "Generated-")
)
PO = """\
# Headlight in {name}.
# Every entry is a sentence of the screens: docs/languages.md says what to keep.
"""

Entry = str | tuple[str, str]  # a text, or the two forms of a counted one
Found = dict[Entry, list[str]]  # where each is used


def collected(root: Path = ROOT) -> Found:
    """Every text, in the order of the files."""
    found: Found = {}
    for path in sorted([*root.glob("app/**/words.py"), *(root / name for name in WORDS)]):
        name = path.relative_to(root).as_posix()
        module = import_module(name.removesuffix(".py").replace("/", "."))
        for constant, value in vars(module).items():
            if constant.isupper() and constant not in READ[module.__name__]:
                if constant in LINKS[module.__name__] and isinstance(
                    value, dict
                ):  # what is chosen is the text itself, or its name
                    value = [*value.values()] if all(isinstance(one, str) for one in value.values()) else [*value]
                for text in _texts(value, constant == "COUNTS"):
                    found.setdefault(text, []).append(f"{name} {constant}")
    for path in sorted(root.glob(WITH_SENTENCES)):
        if path.name != "words.py":
            _collect(found, path, root, [ast.parse(path.read_text(encoding="utf-8"))])
    tree = ast.parse((root / EXAMPLES).read_text(encoding="utf-8"))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Example"
    ]
    _collect(found, root / EXAMPLES, root, [node.args[0] for node in calls])
    for path in sorted(root.glob("core/**/*.py")):
        if not path.relative_to(root).as_posix().startswith(NOT_SEEN):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            _collect(found, path, root, [tree] if path == root / CATALOG else [*_refusals(tree)])
    return found


def _texts(value: Any, forms: bool = False) -> Iterator[Entry]:
    if isinstance(value, str):
        if LETTERS.search(FIELD.sub("", value)):
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, forms or name == "counts")
    elif isinstance(value, list | tuple):
        if (
            len(value) == 2
            and all(isinstance(one, str) for one in value)
            and (forms or ("{n}" in value[1] and " " in value[0]))
        ):
            yield value[0], value[1]
            return
        for inner in value:
            yield from _texts(inner)


def _refusals(tree: ast.Module) -> Iterator[ast.AST]:
    """The sentences of refusals, and the constants that they may be made of."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and getattr(node.exc.func, "id", "") in REFUSALS
        ):
            yield node
        if isinstance(node, ast.Return) and isinstance(
            node.value, ast.JoinedStr | ast.Constant | ast.IfExp | ast.BinOp
        ):
            yield node  # where a sentence is put together before it is said
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            yield node.value


def _collect(found: Found, path: Path, root: Path, trees: list[ast.AST]) -> None:
    for tree in trees:
        for text in _sentences(tree):
            place = path.relative_to(root).as_posix()
            if place not in found.setdefault(text, []):
                found[text].append(place)


def _sentences(tree: ast.AST) -> Iterator[str]:
    """Strings and f-strings that are sentences; what is put into one is {0}, {1} ..."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(one) for one in node.values}
            inside |= {id(x) for one in node.values if isinstance(one, ast.FormattedValue) and one.format_spec for x in ast.walk(one.format_spec)}  # fmt: skip
        if isinstance(node, ast.Expr):
            inside.add(id(node.value))  # a docstring
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            text, at = "", 0
            for one in node.values:
                if isinstance(one, ast.Constant):
                    text += str(one.value).replace("{", "{{").replace("}", "}}")
                else:
                    text += f"{{{at}}}"
                    at += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        bare = FIELD.sub("", text)
        if text.startswith("<"):  # of an object, for who writes Python
            continue
        if SENTENCE.search(PLACE.sub("ab", text)) and (bare == text or len(re.findall(r"[^\W\d_]", bare)) >= FIXED):
            yield text


def updated(language: str, found: Found) -> str:
    """The text of a language's file as it is to be."""
    path = FOLDER / f"{language}.po"
    known = Catalog(locale=language)
    if path.exists():
        with path.open("rb") as file:
            known = read_po(file, locale=language)
    made = Catalog(
        locale=language, header_comment=PO.format(name=known.locale.english_name if known.locale else language)
    )
    made.creation_date = made.revision_date = None  # type: ignore[assignment] - a date would differ every time
    for text, places in found.items():
        before = known.get(*_key(text))
        made.add(text, before.string if before else None, auto_comments=places[:3], context=_key(text)[1])
    file = io.BytesIO()
    write_po(file, made, width=0, omit_header=False, sort_output=False, ignore_obsolete=True)
    text = file.getvalue().decode()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(OF_NO_USE))


def _key(text: Entry) -> tuple[str, str | None]:
    """By which a catalogue knows it: a word may also stand alone, or with another form, elsewhere."""
    return (text, None) if isinstance(text, str) else text


def lacking(language: str, found: Found) -> list[Entry]:
    """The sentences for which a language has no translation."""
    with (FOLDER / f"{language}.po").open("rb") as file:
        known = read_po(file, locale=language)
    return [text for text in found if not _given(known, text)]


def _given(known: Catalog, text: Entry) -> bool:
    found = known.get(*_key(text))
    if found is None or found.fuzzy or not found.string:
        return False
    return all(found.string) if isinstance(found.string, tuple) else isinstance(text, str)


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    found = collected()
    wanted = {path.stem for path in FOLDER.glob("*.po")} | {one for one in arguments if not one.startswith("-")}
    failed = 0
    for language in sorted(wanted):
        path = FOLDER / f"{language}.po"
        text = updated(language, found)
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            print(f"{path.name} is out of date: `make format` writes today's sentences into it.")
            failed = 1
        elif not check:
            path.write_text(text, encoding="utf-8")
        missing = lacking(language, found) if path.exists() else list(found)
        if missing:
            print(f"{path.name} lacks {len(missing)} of {len(found)} sentences, such as {missing[0]!r}")
            failed = 1
    return failed if check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
