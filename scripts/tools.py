"""A temporary environment with the tools of locks/tools.txt. They are no part of the environment that they work on."""

from __future__ import annotations

import subprocess
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "locks" / "tools.txt"


class NotInstalled(Exception):
    """pip could not install the tools. The message is the last line of its output."""


@contextmanager
def tools() -> Iterator[Path]:
    """Yield the folder with the commands of the tools."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        commands = Path(folder, "bin")
        install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--require-hashes"]
        done = subprocess.run([commands / "python", *install, "-r", LOCK], capture_output=True, text=True)
        if done.returncode:
            raise NotInstalled(last_line(done.stderr))
        yield commands


def last_line(text: str) -> str:
    return next((line.strip()[:160] for line in reversed(text.splitlines()) if line.strip()), "no output")
