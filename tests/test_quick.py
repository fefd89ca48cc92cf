"""`make quick` runs what it says, leaves out what tests/quick.py names and nothing else, and fails when a part of it does."""

from __future__ import annotations

import pytest

from scripts import quick
from tests.quick import ROOT, SLOW, is_slow


@pytest.mark.parametrize("name", sorted(SLOW))
def test_what_is_slow_is_there(name: str):
    assert (ROOT / f"{name}.py").is_file(), f"tests/quick.py names tests/{name}.py, which is not there"
    assert is_slow(ROOT / f"{name}.py")


@pytest.mark.parametrize("name", ["test_layering", "core/test_parity", "core/test_invariants", "js/test_browser_code"])
def test_what_is_always_asked_is_not_slow(name: str):
    assert (ROOT / f"{name}.py").is_file() and not is_slow(ROOT / f"{name}.py")


def test_every_part_runs_and_one_that_fails_is_told_with_what_it_said(capfd: pytest.CaptureFixture[str]):
    parts = {
        "good": ["-c", "print('quiet')"],
        "bad": ["-c", "print('what is wrong'); raise SystemExit(3)"],
        "last": ["-c", ""],
    }
    assert quick.main(parts) == 1
    out, err = capfd.readouterr()
    assert "what is wrong" in out and "quiet" not in out and "ok     last" in out and err == "failed: bad\n"
    assert quick.main({"good": ["-c", ""]}) == 0


def test_a_part_that_is_killed_has_failed(capfd: pytest.CaptureFixture[str]):
    assert quick.main({"gone": ["-c", "import os; os.kill(os.getpid(), 9)"]}) == 1
