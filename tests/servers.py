"""Application servers that all processes of a test run share.

Starting a server takes ten seconds of a core. The first test that needs a script starts its server, and the process that began the
run stops all servers at the end. A traceback in the log of a server fails the run, since no single test can be blamed for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = pytest.StashKey[Path]()  # folder of the run, with a record, a lock and a log for each server
WORKER = pytest.StashKey[str]()  # name of this process in the run; empty in the process that began it
ENVIRONMENT = pytest.StashKey[dict[str, str]]()  # variables of the run, before any test changes them
UNSET = ("PYTHONPATH", "HEADLIGHT_OWN_MACHINE")  # variables of a developer's shell that servers must not have
# Tests change the state of these servers, so each process of the run starts its own.
UNSHARED = ("tests/app/slow.py",)
STOPPING = 20.0  # seconds that a server gets to finish its runs
TRACEBACK = re.compile(r"^.*Traceback.*\n(?:[ |+│╭╰].*\n|\n)*.*\n?", re.MULTILINE)
NOTE = re.compile(r"^tests: (\S+) (begins|ends)$", re.MULTILINE)

_processes: dict[int, subprocess.Popen[bytes]] = {}  # started here, by process id


class Server(NamedTuple):
    address: str
    log: Path


class Trace(NamedTuple):
    """A traceback in the log of a server, and the modules whose tests used the server at that moment."""

    modules: tuple[str, ...]
    text: str


def command(script: str, *options: str) -> list[str]:
    """`streamlit run <script>`, without its port, which comes last."""
    return [
        *(sys.executable, "-m", "streamlit", "run", script),
        *("--server.headless", "true", *options, "--server.port"),
    ]


def start(
    command: Sequence[str | Path], log: Path, folder: Path, environment: dict[str, str]
) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a command that serves at the port that is its last argument. Returns its address and its process."""
    with socket.socket() as free, log.open("a", encoding="utf-8") as out:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        process = subprocess.Popen(
            [*command, str(port)], cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    _processes[process.pid] = process
    return f"http://localhost:{port}", process


def wait_until_ready(address: str, pid: int, log: Path) -> None:
    """Wait until a server answers. Raises RuntimeError, with its log, if it stops or takes longer than a minute."""
    for _ in range(240):
        if has_ended(pid):
            raise RuntimeError(f"the server stopped: {log.read_text(encoding='utf-8')}")
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.25)
    raise RuntimeError(f"the server does not answer: {log.read_text(encoding='utf-8')}")


def has_ended(pid: int) -> bool:
    """True if a server has ended. A child of this process keeps its id until poll() collects its exit status."""
    if pid in _processes:
        return _processes[pid].poll() is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def stop(*pids: int) -> None:
    """Stop servers, and kill those that take too long."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOPPING
    for pid in pids:
        while not has_ended(pid):
            if time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.05)


def shared(script: str, config: pytest.Config) -> Server:
    """The server of a script in this run, started if no process of the run has done so yet."""
    folder, own = config.stash[FOLDER], config.stash[WORKER] if script in UNSHARED else ""
    name = re.sub(r"\W+", "_", f"{script} {own}".strip())
    record, log = folder / f"{name}.json", folder / f"{name}.log"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, also by a process that dies
        if not record.exists():
            address, process = start(command(script), log, ROOT, config.stash[ENVIRONMENT])
            record.write_text(json.dumps({"address": address, "pid": process.pid}), encoding="utf-8")
        found = json.loads(record.read_text(encoding="utf-8"))
        wait_until_ready(found["address"], found["pid"], log)
    return Server(found["address"], log)


@contextmanager
def noted(log: Path, module: str) -> Iterator[None]:
    """Write into a server's log when the tests of a module begin and end, so that a traceback can be attributed."""
    _append(log, f"tests: {module} begins\n")
    yield
    _append(log, f"tests: {module} ends\n")


def _append(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as out:
        out.write(line)


def traces(log: str) -> list[Trace]:
    """Every traceback in the text of a log."""
    found = []
    for match in TRACEBACK.finditer(log):
        running: list[str] = []
        for note in NOTE.finditer(log, 0, match.start()):
            if note[2] == "begins":
                running.append(note[1])
            elif note[1] in running:
                running.remove(note[1])
        found.append(Trace(tuple(running), match[0].rstrip()))
    return found


# Hooks of pytest; tests/conftest.py registers this module as a plugin.


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)  # pytest-xdist's, in a process that shares the tests
    if not given:
        signal.signal(signal.SIGTERM, _interrupt)  # a run that is terminated stops its servers, as at Ctrl-C
    config.stash[WORKER] = given["workerid"] if given else ""
    config.stash[ENVIRONMENT] = {name: value for name, value in os.environ.items() if name not in UNSET}
    config.stash[FOLDER] = Path(given["servers"] if given else tempfile.mkdtemp(prefix="headlight-servers-"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["servers"] = str(node.config.stash[FOLDER])


@pytest.hookimpl(trylast=True)  # after pytest-xdist has ended the other processes
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash[WORKER]:
        return
    folder = session.config.stash[FOLDER]
    stop(*(json.loads(record.read_text(encoding="utf-8"))["pid"] for record in folder.glob("*.json")))
    if session.exitstatus == pytest.ExitCode.OK and any(_all_traces(folder).values()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, found in _all_traces(config.stash[FOLDER]).items():
        for trace in found:
            during = ", ".join(trace.modules) or "no module: before the first test or after the last one"
            terminalreporter.section(f"Traceback in the log of {name}", red=True)
            terminalreporter.line(f"During: {during}")
            terminalreporter.line(trace.text)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not config.stash[WORKER]:
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _all_traces(folder: Path) -> dict[str, list[Trace]]:
    """The tracebacks of each server of a run, by the name of its log."""
    return {log.stem: traces(log.read_text(encoding="utf-8", errors="replace")) for log in sorted(folder.glob("*.log"))}
