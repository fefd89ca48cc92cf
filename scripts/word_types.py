"""The types of the words that browser files get from Python, so that tsc knows every key: a misspelt one fails there.

    python -m scripts.word_types            writes app/**/browser/wordtypes.d.ts
    python -m scripts.word_types --check    1 where one is not of today's words

The files are kept in the repository: tsc, and an editor, know the words without running Python.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from app.classroom import component
from app.shell import refused, registry
from app.transport import modules

ROOT = Path(__file__).resolve().parents[1]
NAME = "wordtypes.d.ts"
# Exports that are tables of words; of the others the types say more than JSON can.
WORDS = ("WORDS", "ANSWER", "NO_ANSWER", "REPLY")
HEAD = "// Written by `make format` from the words that Python gives to the browser (scripts/word_types.py).\n"
OLD = "out of date: {names}. `make format` writes the types of today's words."


def declared(value: Any) -> str:
    """The type of a value as JSON has it: {"a": ["x", 1]} -> { a: [string, number] }. Every key is named."""
    if isinstance(value, dict):
        return f"{{ {' '.join(f'{json.dumps(key)}: {declared(inner)};' for key, inner in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(declared, value))}]"
    return {str: "string", bool: "boolean", int: "number", float: "number"}[type(value)]


def table(name: str, words: dict[str, Any]) -> str:
    """The declaration of a table of words, a line for each key."""
    lines = "".join(f"  {json.dumps(key)}: {declared(value)};\n" for key, value in words.items())
    return f"export const {name}: {{\n{lines}}};\n"


def files(root: Path = ROOT) -> dict[Path, str]:
    """The text of every file of types, by its path."""
    registry.rooms()  # each puts its files into the registry
    # and so do the classroom and the page around them
    assert component.FOLLOW in modules.names() and refused.SCRIPT in modules.names()
    found: dict[Path, str] = {}
    for name in modules.names():
        for export, text in re.findall(r"^export const (\w+) = (.*);$", modules.source(name), re.MULTILINE):
            if export in WORDS and not (root / "app" / name).exists():  # a module that Python writes
                path = (root / "app" / name).with_name(NAME)
                found[path] = found.get(path, HEAD) + table(export, json.loads(text))
    return found


def main(arguments: list[str], root: Path = ROOT) -> int:
    wanted = files(root)
    there = {path: path.read_text(encoding="utf-8") for path in root.glob(f"app/**/{NAME}")}
    old = sorted(path for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path))
    if "--check" in arguments:
        if old:
            print(OLD.format(names=", ".join(path.relative_to(root).as_posix() for path in old)), file=sys.stderr)
        return 1 if old else 0
    for path in old:
        if path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
