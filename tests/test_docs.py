"""The documentation builds without a warning, and its reference has every name of `headlight` once, with its docstring."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

import core

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")


def test_the_reference_names_everything_that_is_public_once() -> None:
    named = re.findall(r"^\.\. auto\w+:: headlight\.(?:read\.)?(\w+)$", REFERENCE, re.MULTILINE)
    assert sorted(named) == sorted(set(core.__all__) - {"__version__"})
    errors = re.findall(r"autoexception:: headlight\.(\w+)", REFERENCE)
    assert errors and all(issubclass(getattr(core, name), core.HeadlightError) for name in errors)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def words(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


@pytest.mark.thorough
def test_it_builds_without_a_warning_and_has_the_docstrings(pages: Path) -> None:
    said = " ".join(words(pages / "reference.html").split())
    for name in ("trace", "Trace", "from_attentions", "generate", "TooLarge"):
        first = " ".join((getattr(core, name).__doc__ or "").split(".")[0].replace("`", "").split())
        assert first in said.replace("“", '"').replace("”", '"').replace("’", "'"), name
    assert "headlight.trace(" in said and "core.trace(loaded" not in said


@pytest.mark.thorough
def test_each_page_of_the_folder_is_a_page_there(pages: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (pages / page.relative_to(ROOT / "docs").with_suffix(".html")).exists(), page
