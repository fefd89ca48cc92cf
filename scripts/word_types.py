"""Write the types of the words that browser files get from Python, so that tsc and an editor know every key.

    python -m scripts.word_types            writes app/**/browser/wordtypes.d.ts

Git ignores the files. `make check` writes them before it runs tsc (scripts/tsc.py).
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
HEAD = "// Written by `make check` from the words that Python gives to the browser (scripts/word_types.py).\n"


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


def main(root: Path = ROOT) -> int:
    """Write each file that has changed, and delete those of words that no longer exist."""
    wanted = files(root)
    for path in {*root.glob(f"app/**/{NAME}")} - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
