"""A server that is asked to end has ended soon, whatever answers are open, and so have the processes that it started."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests import servers
from tests.app.browsing import running
from tests.servers import ROOT

SCRIPT = "tests/app/ends_soon.py"
PATIENCE, LAST_WORDS, GRACE = 2.0, 0.5, 1.0  # seconds: the first two are set there
SLACK = 15.0  # seconds for a machine with other work


def get(address: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> http.client.HTTPConnection:
    """A request whose answer is not awaited."""
    asked = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    asked.request(method, f"/headlight/{path}", body, {"Cookie": "headlight=0123456789abcdefghijkl", **headers})
    return asked


def posted(address: str, path: str, body: bytes) -> dict[str, str]:
    with urlopen(Request(f"{address}/headlight/{path}", body, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)


def children(pid: int) -> list[int]:
    return [int(each) for each in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
