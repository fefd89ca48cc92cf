"""deploy/start.py: nothing that it started stays, however it is ended."""

from __future__ import annotations

import os
import pty
import signal
import sys
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
