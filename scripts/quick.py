"""`make quick`: what can be known within a minute of any change. Types and style, layers, the core that loads nothing, the browser's logic."""

from __future__ import annotations

import sys

from scripts import check
from tests import quick

# No test among these asks what was logged, and to keep it for each of thousands takes a fifth of the time
TESTS = ["-m", "pytest", "-q", "-p", "no:logging", *map(str, quick.files())]
PARTS: dict[str, list[str]] = {
    "tests": TESTS,
    **{name: check.PARTS[name] for name in ("pyrefly", "tsc", "biome format", "ruff check", "ruff format")},
}

if __name__ == "__main__":
    sys.exit(check.run_all(PARTS))
