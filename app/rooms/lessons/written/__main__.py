"""`python -m app.rooms.lessons.written FILE_OR_FOLDER`: reads lessons, runs each step once, and says every fault with its line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from app.rooms.lessons.written import folder, words
from app.rooms.lessons.written.decide import trial
from app.rooms.lessons.written.faults import Fault
from app.rooms.lessons.written.file import offered, parse
from app.rooms.lessons.written.rules import asked_texts
from app.session import service


def main(arguments: Sequence[str]) -> int:
    """0 where no lesson has a fault; 1 where one has, or where there is none."""
    files = [file for name in arguments for file in folder.files(Path(name))]
    faulty = False
    for path in files:
        try:
            found = parse(folder.text_of(path, path.parent))
        except (OSError, ValueError) as error:
            print(f"{path}: {error}")
            faulty = True
            continue
        known: list[Fault] = (
            found if isinstance(found, list) else service.calls().result(trial(found, service.service()))
        )
        hints = () if isinstance(found, list) else found.hints
        for fault in sorted([*known, *hints]):
            print(f"{path}:{fault.line}: {fault}")
        faulty = faulty or bool(known)
        if not isinstance(found, list) and not known:
            runs = len({text for step in found.steps for text in asked_texts(step)})
            model = offered().titles[found.model]
            print(f"{path}: {words.NO_FAULTS.format(steps=len(found.steps), runs=runs, model=model)}")
    if not files:
        print(words.NO_FILES)
    return int(faulty or not files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
