"""`make near`: run the tests closest to the changes since the branch left main, committed or not, in a few minutes.

ROWS maps files to tests. `make test` finds the rest.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "<plain>"  # files that test a room on a plain page
IMPORTS = "<imports>"  # files that import the module
MANY = 15  # test files; a module with more importers has only the tests of its row
# An expression for paths that changed, and patterns of the files of tests that belong to them; {1} is its first group. A path may
# match several rows.
ROWS: tuple[tuple[str, str], ...] = (
    (r"tests/(.*\btest_\w+\.py)", "{1}"),
    (r"tests/(?:app/)?(?:conftest|servers|browsing|pages)\.py", "test_servers.py app/test_pages.py app/test_bar.py"),
    (r"tests/(?!(?:app/)?(?:conftest|servers|browsing|pages)\.py)(?:.+/)?\w+\.py", IMPORTS),
    (
        r"tests/core/.+\.(?:txt|json|safetensors)",
        "core/test_findings.py core/test_transformer_lens.py core/test_text_training.py",
    ),
    (r"tests/app/walking\.js", "app/test_walks.py"),
    (r"tests/app/plain\.(?:html|js)", PLAIN),
    (r"tests/js/.+|app/.+\.js", "js/*.py"),
    (r"tests/gallery/.+|app/kit/.+\.(?:js|css)", "gallery/*.py"),
    (r"(?:app|core|cluster)/.+\.(?:py|js)", "test_layering.py"),
    (r"app/.+\.css", "app/test_styles.py app/test_theme.py"),
    (r"app/.+/words\.py|app/languages/.+", "test_languages.py app/test_words.py app/test_numbers_in_languages.py"),
    (r"app/rooms/(\w+)/.+", "app/test_{1}*.py"),
    (r"app/rooms/lessons/.+", "app/test_lesson*.py app/test_written_lessons*.py"),
    (
        r"app/(?:attention|rooms/explore)/.+",
        "app/test_explore.py app/test_overview.py app/test_lens*.py app/test_lines.py",
    ),
    (r"app/(?:attention|rooms/explore)/.+", "app/test_story.py app/test_strip.py app/test_kinds.py"),
    (r"app/sizes/.+|core/plan/.+", "app/test_memory.py app/test_compute.py app/test_shapes.py app/test_fit.py"),
    (
        r"app/(?:kit|transport|streamlit_edge)/.+",
        f"{PLAIN} app/test_streamlit_edge.py app/test_routes.py app/test_stage.py",
    ),
    (r"app/(?:shell|session)/.+|app/\w+\.py", "app/test_bar.py app/test_sentence.py app/test_links.py"),
    (r"app/(?:shell|session)/.+|app/\w+\.py", "app/test_screen.py app/test_resolving.py app/test_room_route.py"),
    (
        r"app/(?:shell|streamlit_edge|transport)/(?:.+/)?(?:away|handshakes|closing|ending|open_answers|admission)\.\w+",
        "app/test_closing.py app/test_restart.py",
    ),
    (r"app/classroom/.+", "app/test_classroom*.py"),
    (
        r"app/transport/(?:rate_limits|visitors)\.py",
        "app/test_hosted.py app/test_unknown_runs.py app/test_classroom_limits.py",
    ),
    (r"app/(export|notebook)/.+", "app/test_{1}.py app/test_films.py"),
    (r"core/(?:.+/)?(\w+)\.py", f"core/test_{{1}}*.py {IMPORTS}"),
    (r"core/plan/.+", "core/plan/*.py"),
    (
        r"core/(?:model|edits|run)/.+",
        "core/test_parity.py core/test_invariants.py core/test_interventions.py core/test_trace.py",
    ),
    (r"core/checkpoints/.+", "core/test_checkpoints.py core/test_families.py core/gguf/test_gguf_models.py"),
    (r"core/(?:read|patching|labs)/.+", "core/test_findings.py core/test_attribution.py core/test_sweeps.py"),
    (r"core/(?:write|learn)/.+", "core/test_writing.py core/test_training.py"),
    (r"core/service/.+", "core/test_service*.py"),
    (r"core/(?:peers/.+|[\w.]+)|headlight\.py", "core/test_peers.py core/test_library.py core/test_command_line.py"),
    (r"models/.+", "core/test_shipped.py app/test_models.py"),
    (r"cluster/.+|deploy/.+", "cluster/test_remote.py cluster/test_start.py cluster/test_wire.py"),
    (r"(?:scripts|benchmarks)/(?:.+/)?(\w+)\.\w+", f"test_{{1}}*.py test_scripts.py {IMPORTS}"),
    (r"(?:.+/)?[\w-]+\.md|docs/.+", "test_docs.py test_repository.py test_english.py"),
    (r"(?:locks|\.github)/.+|(?:requirements|Dockerfile|Makefile).*|scripts/install\.sh", "test_lock.py"),
    (r"[^/]+|\.(?:ci|github|streamlit)/.+", "test_repository.py test_package.py app/test_container.py"),
)


class Reason(NamedTuple):
    """Changed paths that match a row, and the tests that the row gives for them."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def fork() -> str:
    """The revision at which this branch left main; HEAD where there is no other branch to compare it with."""
    return next((found[0] for name in ("main", "origin/main") if (found := git("merge-base", "HEAD", name))), "HEAD")


def changed(base: str) -> list[str]:
    """Paths that differ from a revision, with those that are not committed or not tracked."""
    return sorted({*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")})


@cache
def files() -> dict[str, str]:
    """The text of every file of tests, by its path below tests/."""
    found = (ROOT / "tests").rglob("test_*.py")
    return {path.relative_to(ROOT / "tests").as_posix(): path.read_text(encoding="utf-8") for path in sorted(found)}


@cache
def importers() -> dict[str, list[str]]:
    """Files of tests by each module, or name of a module, that they import."""
    found: dict[str, list[str]] = {}
    for file, text in files().items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        for name in names:
            found.setdefault(name, []).append(file)
    return found


def importing(path: str) -> list[str]:
    """Test files that import the module at a path, or none if those are many."""
    found = importers().get(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."), [])
    return found if len(found) <= MANY else []


def tests_of(path: str, match: re.Match[str], pattern: str) -> list[str]:
    """The files of tests that a pattern of a row names for a path."""
    if pattern == PLAIN:
        return importers()["tests.app.plain"]
    if pattern == IMPORTS:
        return importing(path)
    wanted = pattern.replace("{1}", match[1] if match.re.groups else "")
    return [file for file in files() if fnmatch(file, wanted)]


def near(paths: Iterable[str]) -> list[Reason]:
    """For each row that a path matches, the tests of it that exist."""
    found = []
    for changes, patterns in ((changes, tests.split()) for changes, tests in ROWS):
        matches = {path: match for path in paths if (match := re.fullmatch(changes, path))}
        tests = {
            test for path, match in matches.items() for pattern in patterns for test in tests_of(path, match, pattern)
        }
        if tests:
            found.append(Reason(tuple(matches), tuple(sorted(tests))))
    return found


def named(paths: tuple[str, ...]) -> str:
    return ", ".join(paths[:2]) + (f" and {len(paths) - 2} more" if len(paths) > 2 else "")


def main(arguments: list[str]) -> int:
    base = arguments[0] if arguments else fork()
    paths = changed(base)
    reasons = near(paths)
    tests = sorted({test for reason in reasons for test in reason.tests})
    print(f"{len(paths)} files differ from {base[:12]}, and {len(tests)} files of tests are near:")
    for reason in reasons:
        print(f"  {named(reason.paths)}: {' '.join(reason.tests)}")
    sys.stdout.flush()
    if not tests:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    done = subprocess.run([*command, *(f"tests/{test}" for test in tests)], cwd=ROOT).returncode
    return 0 if done == 5 else done  # 5: every test of these files is left to `make thorough`


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
