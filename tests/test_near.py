"""`make near` finds the tests of changed files: every file of the repository has a row in its table, and every row names tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import near

TRACKED = near.git("ls-files")


def found_for(*paths: str) -> set[str]:
    return {test for reason in near.near(paths) for test in reason.tests}


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("tests/core/test_looks.py", {"core/test_looks.py"}),
        ("app/rooms/step/view.py", {"app/test_step.py", "test_layering.py"}),
        ("app/rooms/step/browser/step.js", {"app/test_step.py", "js/test_browser_code.py"}),
        ("app/kit/browser/stage.css", {"app/test_styles.py", "gallery/test_gallery.py"}),
        ("core/plan/parameters.py", {"core/plan/test_weights.py", "core/plan/test_plan.py", "app/test_memory.py"}),
        ("core/read/edge_attribution.py", {"core/test_looks.py"}),
        ("core/model/transformer.py", {"core/test_parity.py"}),
        ("scripts/near.py", {"test_near.py"}),
        ("docs/memory.md", {"test_docs.py", "test_repository.py"}),
        ("models/copy/config.json", {"core/test_shipped.py"}),
        ("Makefile", {"test_repository.py"}),
    ],
)
def test_a_path_has_the_tests_that_are_about_it(path: str, wanted: set[str]) -> None:
    found = found_for(path)
    assert wanted <= found
    assert len(found) < len(near.files()) / 4


def test_every_file_of_the_repository_has_a_row() -> None:
    assert not [path for path in TRACKED if not any(re.fullmatch(changes, path) for changes, _ in near.ROWS)]


def test_every_row_is_of_files_that_exist_and_names_tests_that_exist() -> None:
    for changes, patterns in near.ROWS:
        paths = [path for path in TRACKED if re.fullmatch(changes, path)]
        assert paths, f"no file is like {changes}"
        for pattern in patterns.split():
            if pattern not in (near.PLAIN, near.IMPORTS) and "{1}" not in pattern:
                match = re.fullmatch(changes, paths[0])
                assert match and near.tests_of(paths[0], match, pattern), f"{changes}: there is no {pattern}"


def test_a_module_that_most_tests_import_has_only_those_of_its_row() -> None:
    assert near.importing("core/read/edge_attribution.py") and not near.importing("core/model/config.py")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A branch with a commit, an edit that is not committed, and a file that git does not know."""
    assert near.files()  # they are read before the root is another one
    monkeypatch.setattr(near, "ROOT", tmp_path)
    for name in ("old.md", "both.md"):
        (tmp_path / name).write_text("before")
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    for change, name in ((None, "all"), ("committed.md", "more")):
        if change:
            near.git("checkout", "-q", "-b", "own")
            (tmp_path / change).write_text("after")
        near.git("add", ".")
        near.git(*identity, "commit", "-q", "-m", name)
    (tmp_path / "both.md").write_text("edited")
    (tmp_path / "unknown.md").write_text("new")
    return tmp_path


def test_what_changed_is_committed_edited_or_new(repository: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert near.changed(near.fork()) == ["both.md", "committed.md", "unknown.md"]
    assert near.changed("HEAD") == ["both.md", "unknown.md"]
    ran: list[list[str]] = []
    main = near.git("rev-parse", "main")[0]
    real = subprocess.run

    def run(command: list[str], **options):
        if command[0] != sys.executable:
            return real(command, **options)
        ran.append(command)
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.setattr(near.subprocess, "run", run)
    assert near.main([]) == 0  # 5 of pytest: all of them are left to `make thorough`
    said = capsys.readouterr().out
    assert said.startswith(f"3 files differ from {main[:12]}, and ") and "both.md, committed.md and 1 more" in said
    assert "tests/test_docs.py" in ran[0]
