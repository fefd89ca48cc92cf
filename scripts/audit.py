"""Ask the advisory database of PyPI about every package of every lock (pip-audit).

    python -m scripts.audit

0: it was asked about every package, and there is no advisory. 1: there is an advisory. 2: it could not be asked about every package.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.tools import NotInstalled, last_line, tools

ROOT = Path(__file__).resolve().parents[1]
FILES = (*sorted((ROOT / "locks").glob("*.txt")), ROOT / "requirements-models.txt")
OPTIONS = "--no-deps --disable-pip --progress-spinner off --format json"
UNKNOWN = 2  # exit status
SHOWN = 10  # packages without an answer


class NotAsked(Exception):
    """pip-audit gave no answer. The message is its reason."""


def pins(files: Iterable[Path] = FILES) -> set[tuple[str, str]]:
    """Name and version of every locked package, also of those for other systems, without the label of a build such as +cpu."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return set(re.findall(r"^([\w.-]+)==([\w.!]+)", text, re.MULTILINE))


def rounds(packages: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """The same packages in lists that have each name once, which pip-audit requires."""
    found: list[dict[str, str]] = []
    for name, version in sorted(packages):
        free = next((each for each in found if name not in each), None)
        if free is None:
            free = {}
            found.append(free)
        free[name] = version
    return found


def ask(pip_audit: Path, packages: dict[str, str]) -> list[dict[str, Any]]:
    """The answer of pip-audit about each package. Raises NotAsked."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("".join(f"{name}=={version}\n" for name, version in packages.items()), encoding="utf-8")
        done = subprocess.run([pip_audit, *OPTIONS.split(), "-r", file], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError) as error:
        raise NotAsked(last_line(done.stderr)) from error


def verdict(asked: set[tuple[str, str]], answers: list[dict[str, Any]]) -> int:
    """Print the advisories and the packages without an answer. Returns the exit status.

    For a package that the database does not have, and for all packages if there is no database, pip-audit reports success with a
    reason for skipping them.
    """
    answered = {
        (answer["name"], answer["version"]): answer["vulns"] for answer in answers if "skip_reason" not in answer
    }
    known = [(package, found) for package, vulns in answered.items() for found in vulns]
    for (name, version), found in known:
        print(f"{name} {version}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}")
    print(f"{len(known)} advisories for {len(answered)} of {len(asked)} locked packages.")
    missing = sorted(f"{name} {version}" for name, version in asked - set(answered))
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        print(f"Nothing is known about {', '.join(missing[:SHOWN])}{more}: the database gave no answer.")
    return 1 if known else UNKNOWN if missing or not asked else 0


def main() -> int:
    asked = pins()
    try:
        with tools() as commands:
            answers = [answer for each in rounds(asked) for answer in ask(commands / "pip-audit", each)]
    except (NotInstalled, NotAsked) as error:
        print(f"The advisory database was not asked, so nothing is known about {len(asked)} packages: {error}")
        return UNKNOWN
    return verdict(asked, answers)


if __name__ == "__main__":
    sys.exit(main())
