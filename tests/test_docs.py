"""The documentation builds without a warning, and its reference has every public name of `headlight` once, with its docstring."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import FunctionType

import pytest

import core
from core import old_names

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")


def documented() -> list[tuple[str, object]]:
    """The module and the object of each entry of the reference, in its order."""
    found = []
    for kind, path in re.findall(r"^\.\. auto(\w+):: (headlight[\w.]*)$", REFERENCE, re.MULTILINE):
        module, _, name = path.rpartition(".")
        found.append(
            ("headlight", import_module(path)) if kind == "module" else (module, getattr(import_module(module), name))
        )
    return found


def test_the_reference_names_everything_that_is_public_once() -> None:
    found = documented()
    top = [getattr(core, name) for name in core.__all__ if name != "__version__"]
    assert [each for _, each in found[: len(top)]] == top
    modules = [module for module, _ in groupby(module for module, _ in found)]
    submodules = ["headlight.edits", "headlight.errors", "headlight.patching"]
    assert modules == ["headlight", *submodules, *sorted(set(modules) - {"headlight", *submodules})]
    errors = [each for each in vars(core.errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    of_modules = [getattr(module, name) for module in (core.edits, core.patching) for name in module.__all__]
    public = [
        *top,
        *(each for each in of_modules if isinstance(each, type | FunctionType)),  # types and tables have no docstrings
        *errors,
        *(getattr(import_module(f"core.{module}".rstrip(".")), name) for module, name in old_names.NAMES.values()),
    ]
    ids = [id(each) for _, each in found]
    assert len(set(ids)) == len(ids) and set(ids) == {id(each) for each in public}
    assert errors and all(issubclass(error, core.HeadlightError) for error in errors)


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
    for named in (core.trace, core.Trace, core.from_attentions, core.generate, core.errors.TooLarge, core.edits.Ablate):
        first = " ".join((named.__doc__ or "").split(".")[0].replace("`", "").split())
        assert first in said.replace("“", '"').replace("”", '"').replace("’", "'"), named
    assert "headlight.trace(" in said and "core.trace(loaded" not in said


@pytest.mark.thorough
def test_each_page_of_the_folder_is_a_page_there(pages: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (pages / page.relative_to(ROOT / "docs").with_suffix(".html")).exists(), page
