"""`make quick`, `make check` and `make test` run all of their parts, and fail if one of them does."""

from __future__ import annotations

import pytest

from scripts import check, quick, test
from tests.quick import ROOT, SLOW, is_slow
from tests.thorough import of_part


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
    assert check.run_all(parts) == 1
    out, err = capfd.readouterr()
    assert "what is wrong" in out and "quiet" not in out and "ok     last" in out and err == "failed: bad\n"
    assert check.run_all({"good": ["-c", ""]}) == 0


def test_a_part_that_is_killed_has_failed(capfd: pytest.CaptureFixture[str]):
    assert check.run_all({"gone": ["-c", "import os; os.kill(os.getpid(), 9)"]}) == 1


def test_make_quick_asks_nothing_that_make_check_does_not():
    assert quick.PARTS.keys() - {"tests"} <= check.PARTS.keys()


@pytest.mark.parametrize(("tests", "checks", "status"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (5, 1, 5)])
def test_tests_and_checks_both_count(tests: int, checks: int, status: int, capfd: pytest.CaptureFixture[str]):
    said = ["-c", f"print('checked'); raise SystemExit({checks})"]
    asked = ["-c", f"import sys; print('tested', *sys.argv[1:]); raise SystemExit({tests})"]
    assert test.main(["-k", "a or b"], asked, said) == status
    assert capfd.readouterr().out == "tested -k a or b\nchecked\n"


def test_the_parts_of_a_run_are_all_files_once():
    files = [ROOT / f"test_{i}.py" for i in range(20)]
    parts = [of_part(reversed(files), f"{i}/6") for i in range(1, 7)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    assert {len(part) for part in parts} == {3, 4}
    assert of_part(files, "1/1") == {*files}
    for part in ("0/6", "7/6", "six"):
        with pytest.raises(ValueError):
            of_part(files, part)
