"""Processes of a test run share a server for each script, it ends with the run, and a traceback in its log fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.servers import ROOT, Trace

LOG = """Headlight starts
tests: test_a begins
tests: test_b begins
tests: test_a ends
Error in a script
Traceback (most recent call last):
  File "app/ui.py", line 3, in run
    show()

ValueError: no number
INFO continues
tests: test_b ends
╭──── Traceback (most recent call last) ────╮
│ app/ui.py                                 │
╰───────────────────────────────────────────╯
KeyError
"""
STUB = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/fail":
            print("Traceback (most recent call last):\\n  File 'x'\\nKeyError: asked", flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())

HTTPServer(("localhost", int(sys.argv[1])), Handler).serve_forever()
"""
CONFTEST = """
import sys
from pathlib import Path
from urllib.request import urlopen
import pytest
from tests import servers

pytest_plugins = ("tests.servers",)
servers.command = lambda script: [sys.executable, str(Path(__file__).with_name(script))]
servers.UNSHARED = ("own.py",)

@pytest.fixture(scope="module")
def ask(request):
    def ask(script, path=""):
        address, log = servers.shared(script, request.config)
        with servers.noted(log, request.module.__name__), urlopen(f"{address}/{path}") as answer:
            return answer.read().decode()
    return ask
"""
TEST = """
import os
from pathlib import Path

def test_it(ask):
    for script in ("shared.py", "own.py"):
        Path(__file__).with_suffix("." + script).write_text(ask(script))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two modules of tests. Each asks a shared server and its process's own server for their ids."""
    for name in ("shared.py", "own.py"):
        (tmp_path / name).write_text(STUB)
    for name, text in (("conftest", CONFTEST), ("test_a", TEST), ("test_b", TEST)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)


def ids(project: Path) -> dict[str, int]:
    """The process id of each server that a test asked; all of them have ended."""
    found = {path.name: int(path.read_text()) for path in project.glob("test_*.*.py")}
    assert found and all(servers.has_ended(pid) for pid in found.values())
    return found


@pytest.mark.thorough
def test_processes_share_a_server_and_the_run_stops_it(project: Path) -> None:
    done = run(project, "-n", "2", "--dist", "loadfile")
    assert done.returncode == 0, done.stdout
    found = ids(project)
    assert found["test_a.shared.py"] == found["test_b.shared.py"]
    assert found["test_a.own.py"] != found["test_b.own.py"]


@pytest.mark.thorough
def test_a_server_ends_although_the_process_that_started_it_crashed(project: Path) -> None:
    (project / "test_a.py").write_text(f"{TEST}    os._exit(3)\n")
    done = run(project, "-n", "1")
    assert done.returncode == 1 and "crashed" in done.stdout
    found = ids(project)
    assert found["test_a.shared.py"] == found["test_b.shared.py"]


@pytest.mark.thorough
def test_a_run_that_is_terminated_stops_its_server(project: Path) -> None:
    (project / "test_b.py").write_text(
        "import os, signal\n\ndef test_it():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = run(project, "-p", "no:xdist")
    assert done.returncode == pytest.ExitCode.INTERRUPTED and "1 passed" in done.stdout
    ids(project)


@pytest.mark.thorough
def test_a_traceback_fails_a_run_whose_tests_passed_and_names_the_module(project: Path) -> None:
    (project / "test_b.py").write_text('def test_it(ask):\n    ask("shared.py", "fail")\n')
    done = run(project, "-p", "no:xdist")
    assert done.returncode == 1 and "2 passed" in done.stdout
    assert "Traceback in the log of shared_py" in done.stdout and "KeyError: asked" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("During: ")] == ["During: test_b"]
    ids(project)


def test_tracebacks_are_found_with_the_modules_of_their_time() -> None:
    first, second = servers.traces(LOG)
    assert first.modules == ("test_b",) and first.text.startswith("Traceback") and first.text.endswith("no number")
    assert second == Trace((), LOG[LOG.index("╭") :].rstrip())
    assert not servers.traces("tests: test_a begins\nall is well\n")
