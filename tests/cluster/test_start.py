"""deploy/start.py: nothing that it started stays, however it is ended."""

from __future__ import annotations

import os
import pty
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.browsing import ROOT


@pytest.mark.parametrize("ends", ["SIGTERM", "Ctrl-C", "a closed terminal"])
def test_whatever_ends_it_ends_all_that_it_started(ends: str, tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    # Each holds a pipe open, which ends with the last of them.
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    line = "exec 9>held; echo here; exec sleep 600"
    (tmp_path / "deploy" / "Procfile").write_text(f"one: {line}\ntwo: {line}\n")
    started, terminal = pty.fork()
    if not started:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, str(ROOT / "deploy" / "start.py")])
    said = b""
    while said.count(b"here") < 2:
        said += os.read(terminal, 4096)
    if ends == "SIGTERM":
        os.kill(started, signal.SIGTERM)
    elif ends == "Ctrl-C":
        os.write(terminal, b"\x03")
    else:
        os.close(terminal)
    os.set_blocking(held, True)
    assert os.read(held, 1) == b""
    os.waitpid(started, 0)
    os.close(held)
    if ends != "a closed terminal":
        os.close(terminal)


PARENT = """
import signal, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
child = subprocess.Popen([sys.executable, "child.py"], stdin=subprocess.PIPE)
signal.sigwait({signal.SIGTERM})
child.communicate()
print("the process has ended its child", flush=True)
"""
CHILD = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("the child was asked", flush=True))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
print("here", flush=True)
sys.stdin.read()
"""


def test_a_process_is_asked_alone_and_ends_what_it_started(tmp_path: Path) -> None:
    """As `python -m cluster` ends Ray's: asked all together, it would wait for answers of those that have gone."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "deploy" / "Procfile").write_text(f"one: exec {sys.executable} parent.py\n")
    started, terminal = pty.fork()
    if not started:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, str(ROOT / "deploy" / "start.py")])
    said = b""
    while b"here" not in said:
        said += os.read(terminal, 4096)
    os.kill(started, signal.SIGTERM)
    with suppress(OSError):  # nobody writes to it any more
        while more := os.read(terminal, 4096):
            said += more
    os.waitpid(started, 0)
    os.close(terminal)
    assert b"the process has ended its child" in said and b"the child was asked" not in said


def test_each_line_is_replaced_by_what_it_starts() -> None:
    """Else a shell would be asked to end, and what it started would stay."""
    for line in (ROOT / "deploy" / "Procfile").read_text().splitlines():
        assert re.fullmatch(r"\w+: (\w+=\S+ )*exec [^;&|]+", line), line
