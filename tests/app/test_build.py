"""The commit that /healthz names: of the image, or of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.transport import build

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]


def test_an_image_names_the_commit_that_it_was_built_from(tmp_path: Path):
    assert build.commit(COMMIT, tmp_path) == COMMIT
    for other in ("", "$COMMIT", "main", "unknown\n", "0123"):
        assert build.commit(other, tmp_path) == ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_names_its_commit_and_a_folder_in_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GIT_DIR", raising=False)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*GIT, "-C", str(tmp_path), *command], check=True)
    head = subprocess.check_output(["git", "-C", str(tmp_path), "rev-parse", "HEAD"], text=True).strip()
    assert build.commit("", tmp_path) == head
    (tmp_path / "installed").mkdir()
    assert build.commit("", tmp_path / "installed") == ""


def test_without_git_no_commit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", os.devnull)
    assert build.commit("", tmp_path) == ""


def test_git_is_asked_once(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(build, "commit", lambda given: asked.append(given) or COMMIT)
    build.build.cache_clear()
    try:
        assert build.build() == build.build() and build.build()["commit"] == COMMIT
    finally:
        build.build.cache_clear()
    assert len(asked) == 1
