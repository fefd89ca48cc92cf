"""The style sheet of CONTRIBUTING.md, counted: each of its words may only become rarer, area by area.

`python -m tests.test_english` prints the counts of today as the table ALLOWED; `--write` lowers that table in this file to
them and raises none. `make format` then lays the table out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
AREAS = ("core", "app", "cluster", "benchmarks", "scripts", "deploy", "tests", "docs", "models")
AT_THE_ROOT = "root"  # README.md and the other pages beside it
SHOWN = 20  # lines that a message lists

# A row of the style sheet -> what is counted. Word order and sense are not: a curtain that hangs behind a window counts as
# well, so an area keeps as many of a word as it needs.
STYLE_SHEET: dict[str, str] = {
    "behind": r"\bbehind\b",
    "nobody": r"\bnobody\b",
    "somebody": r"\bsomebody\b",
    "whoever": r"\bwhoever\b",
    "worked out": r"\b(?:work|works|worked|working)\s+out\b",
    "anew": r"\banew\b",
    "stands in": r"\b(?:stand|stands|stood|standing)\s+(?:in|beside)\b",
    "goes on": r"\b(?:go|goes|went|going|gone)\s+on\b",
    "of which": r"\bof\s+(?:which|whom)\b",
    "as it stands": r"\bas\s+(?:it|they)\s+stands?\b",
    "shall": r"\bshall\b",
    "for ever": r"\bfor\s+ever\b",
    # A comment or a docstring that opens with a clause where a noun would do; "What if" is a room.
    "What …": r"\A\s*(?:What|Who|Whose|Whom|Of what)\b(?!\s+if\b)",
}
PATTERNS = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in STYLE_SHEET.items()} | {
    "What …": re.compile(STYLE_SHEET["What …"])
}

# How often each area may still use each word; an area that is not named may not use it. Only ever lower these numbers.
ALLOWED: dict[str, dict[str, int]] = {
    "behind": {
        "core": 16,
        "app": 16,
        "cluster": 2,
        "benchmarks": 5,
        "scripts": 13,
        "tests": 35,
        "docs": 7,
        "models": 1,
        "root": 1,
    },
    "nobody": {"core": 30, "app": 6, "cluster": 2, "benchmarks": 10, "scripts": 1, "tests": 42, "root": 1},
    "somebody": {"core": 13, "cluster": 3, "benchmarks": 2, "scripts": 1, "tests": 28},
    "whoever": {"core": 10, "cluster": 1, "benchmarks": 2, "scripts": 1, "deploy": 1, "tests": 9},
    "worked out": {"core": 4, "app": 2, "benchmarks": 3, "tests": 9, "root": 1},
    "anew": {"core": 3, "benchmarks": 4, "scripts": 7, "tests": 9},
    "stands in": {"core": 6, "app": 51, "scripts": 2, "tests": 13, "docs": 3, "models": 1},
    "goes on": {"core": 45, "app": 47, "benchmarks": 2, "scripts": 9, "tests": 23, "docs": 1, "models": 2},
    "of which": {"core": 7, "app": 6, "cluster": 1, "benchmarks": 2, "scripts": 1, "tests": 7, "models": 1},
    "as it stands": {"core": 2, "app": 6, "tests": 2},
    "shall": {"app": 1, "tests": 1},
    "for ever": {"core": 1, "app": 3, "tests": 2},
    "What …": {"core": 96, "app": 377, "cluster": 5, "benchmarks": 23, "scripts": 7, "tests": 98},
}


@dataclass(frozen=True)
class Prose:
    """A text that people read: where its first line is, and whether it is a comment, a docstring or another text."""

    line: int
    text: str
    kind: Literal["comment", "docstring", "text"]


def python_prose(source: str) -> Iterator[Prose]:
    """Comments, docstrings, and the strings that have a space in them; one without is a name."""
    nodes = list(ast.walk(ast.parse(source)))
    yield from joined(comments(source, nodes))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\S\s+\S", node.value):
            yield Prose(node.lineno, node.value, "docstring" if id(node) in docstrings else "text")


def comments(source: str, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """The comments of Python by line: what follows a # that is in no string. A tokenizer would take ten times as long."""
    quoted: dict[int, list[tuple[float, float]]] = defaultdict(list)  # by line, from column to column in bytes
    for node in nodes:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            first, last = node.lineno, node.end_lineno or node.lineno
            for line in range(first, last + 1):
                begin = node.col_offset if line == first else 0
                quoted[line].append((begin, node.end_col_offset or 0 if line == last else inf))
    for number, line in enumerate(source.splitlines(), 1):
        for found in re.finditer("#", line):
            column = len(line[: found.start()].encode())
            if not any(begin <= column < end for begin, end in quoted[number]):
                yield number, line[found.start() :].lstrip("#:! ")
                break


def joined(comments: Iterator[tuple[int, str]]) -> Iterator[Prose]:
    """Comments on consecutive lines are one text: "worked" may end a line and "out" begin the next."""
    lines: list[str] = []
    first = 0
    for number, text in comments:
        if lines and number != first + len(lines):
            yield Prose(first, "\n".join(lines), "comment")
            lines = []
        if not lines:
            first = number
        lines.append(text)
    if lines:
        yield Prose(first, "\n".join(lines), "comment")


def browser_prose(source: str) -> Iterator[Prose]:
    """Comments of JavaScript and CSS. `//` after a space begins one, so that of an address does not."""
    slashes: list[tuple[int, str]] = []
    for match in re.finditer(r"(?:^|(?<=\s))//+([^\n]*)|/\*(.*?)\*/", source, re.MULTILINE | re.DOTALL):
        line = source.count("\n", 0, match.start()) + 1
        if match[2] is None:
            slashes.append((line, match[1].strip()))
        else:
            yield Prose(line, re.sub(r"(?m)^[ \t]*\*", "", match[2]), "comment")
    yield from joined(iter(slashes))


def markdown_prose(source: str) -> Iterator[Prose]:
    """A page without its code: what is in backticks is somebody's name for something."""
    without = re.sub(r"```.*?```|`[^`\n]*`", lambda code: "\n" * code[0].count("\n"), source, flags=re.DOTALL)
    yield Prose(1, without, "text")


READERS = {
    ".py": python_prose,
    ".js": browser_prose,
    ".mjs": browser_prose,
    ".ts": browser_prose,
    ".css": browser_prose,
    ".md": markdown_prose,
}


def uses(prose: Prose) -> Iterator[tuple[str, int]]:
    """Every word of the style sheet in a text, with its line."""
    for word, pattern in PATTERNS.items():
        if word == "What …" and prose.kind == "text":
            continue  # on the screen and in a page it is a question
        for match in pattern.finditer(prose.text):
            yield word, prose.line + prose.text.count("\n", 0, match.start())


def files() -> Iterator[tuple[str, Path]]:
    """What people read and write, by area; this file names the words and is left out."""
    yield from ((AT_THE_ROOT, path) for path in sorted(ROOT.glob("*.md")))
    for area in AREAS:
        paths = (ROOT / area).glob("*/*.md") if area == "models" else (ROOT / area).rglob("*")
        for path in sorted(paths):
            if path.suffix in READERS and "__pycache__" not in path.parts and path != Path(__file__).resolve():
                yield area, path


@cache
def found() -> dict[tuple[str, str], list[tuple[Path, int]]]:
    """(word, area) -> where it is."""
    places: dict[tuple[str, str], list[tuple[Path, int]]] = defaultdict(list)
    for area, path in files():
        for prose in READERS[path.suffix](path.read_text(encoding="utf-8")):
            for word, line in uses(prose):
                places[word, area].append((path, line))
    return dict(places)


def counts() -> dict[str, dict[str, int]]:
    return {
        word: {area: len(found()[word, area]) for area in (*AREAS, AT_THE_ROOT) if (word, area) in found()}
        for word in STYLE_SHEET
    }


def newest_first(places: list[tuple[Path, int]]) -> list[str]:
    """Where a word is, the files that were changed last before the others: a new use is most likely in these."""
    ordered = sorted(places, key=lambda place: (-place[0].stat().st_mtime, place))
    return [f"{path.relative_to(ROOT)}:{line}" for path, line in ordered]


def test_no_word_of_the_style_sheet_becomes_more_frequent() -> None:
    more = []
    for word, by_area in counts().items():
        for area, count in by_area.items():
            allowed = ALLOWED.get(word, {}).get(area, 0)
            if count <= allowed:
                continue
            places = newest_first(found()[word, area])
            rest = f"\n  and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            more.append(
                f"“{word}” {count} times in {area}, where {allowed} are allowed (CONTRIBUTING.md, Style sheet); "
                "last changed first:\n  " + "\n  ".join(places[:SHOWN]) + rest
            )
    assert not more, "\n".join(more)


def test_the_style_sheet_has_a_row_for_each_word_that_is_counted() -> None:
    sheet = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Style sheet")[1].split("\n## ")[0]
    assert not [word for word in STYLE_SHEET if f"`{word}" not in sheet]


def lines_of(suffix: str, source: str) -> Counter[tuple[str, int]]:
    return Counter(use for prose in READERS[suffix](source) for use in uses(prose))


def test_comments_docstrings_and_strings_of_python_are_read() -> None:
    source = '''"""What lives here, worked
out."""
nobody = "nobody"  # a name is no text: somebody
print(f"the row {nobody} stands beside it", "what of it")
# goes
# on
# What if: a room
"""Who"""
'''
    assert lines_of(".py", source) == {
        ("What …", 1): 1,
        ("worked out", 1): 1,
        ("somebody", 3): 1,
        ("stands in", 4): 1,
        ("goes on", 5): 1,
    }


def test_comments_of_browser_files_and_pages_without_their_code_are_read() -> None:
    source = 'const nobody = "http://anew"; // worked\n// out anew\n/** Who\n * is behind */\nanew();\n'
    assert lines_of(".js", source) == {("worked out", 1): 1, ("anew", 2): 1, ("What …", 3): 1, ("behind", 4): 1}
    assert lines_of(".css", ".behind { } /* behind\n   Behindhand */") == {("behind", 1): 1}
    page = "What is behind\n\n```\nbehind\n```\n`nobody` and Whoever\n"
    assert lines_of(".md", page) == {("behind", 1): 1, ("whoever", 6): 1}


def table(numbers: dict[str, dict[str, int]]) -> str:
    """The counts as the source of ALLOWED, before `make format`."""
    rows = []
    for word, areas in numbers.items():
        inside = ", ".join(f'"{area}": {count}' for area, count in areas.items() if count)
        rows.append(f'    "{word}": {{{inside}}},\n')
    return "ALLOWED: dict[str, dict[str, int]] = {\n" + "".join(rows) + "}\n"


def lowered() -> dict[str, dict[str, int]]:
    """The counts of today where they are below what is allowed."""
    return {
        word: {area: min(count, ALLOWED.get(word, {}).get(area, 0)) for area, count in areas.items()}
        for word, areas in counts().items()
    }


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        here = Path(__file__).resolve()
        start, end = (here.read_text(encoding="utf-8").find(mark) for mark in ("ALLOWED: dict", "\n\n\n@dataclass"))
        text = here.read_text(encoding="utf-8")
        here.write_text(text[:start] + table(lowered()) + text[end + 1 :], encoding="utf-8")
    else:
        print(table(counts()), end="")
