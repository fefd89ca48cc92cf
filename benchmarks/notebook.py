"""A notebook's cell beside bertviz's and CircuitsVis's of the same attention, and the time to its picture in JupyterLab.

    python -m benchmarks.notebook [--tokens 128] [--lab lab/bin/python] [--rounds 5]

MiniLM, 72 heads. Bytes are of the HTML that each leaves in a notebook's file. Both others are fetched for this from PyPI, as
benchmarks.beside does. JupyterLab is no requirement of ours: `python -m venv lab && lab/bin/pip install jupyterlab anywidget` makes
an environment, whose server and kernel run, with our packages on the kernel's path. A cell of run.show() is run by Shift+Enter in headless
Chromium; the time is until the frame of its output has painted the picture, looked at every 10 ms, and has the kernel's work in it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import torch
from playwright.sync_api import Browser, Frame, Page, TimeoutError

import core
from app.notebook.cell import cell
from app.notebook.page import KEY, MOST, placed
from benchmarks.beside import circuitsvis
from benchmarks.capture import machine
from benchmarks.head_view import bertviz
from benchmarks.page import kB, median
from core.service import one_run
from scripts import browser as browsers
from tests.app.browsing import browsing

ROOT = Path(__file__).resolve().parents[1]
TEXT = ROOT / "tests" / "core" / "alice.txt"
PATIENCE = 120  # s
LOOK = 0.01  # s
ATTEMPTS = 8
SHIFT_ENTER = "Shift+Enter"
FACES = {"page in a frame": "cell.has_kernel = lambda: False", "live cell": ""}


def traced(tokens: int) -> core.Trace:
    """The first words of Alice that are so many tokens."""
    loaded, words = core.load("minilm"), TEXT.read_text(encoding="utf-8").split()
    n = next(n for n in range(len(words)) if len(loaded.tokens(" ".join(words[: n + 1]))) > tokens)
    return core.trace(loaded, " ".join(words[:n]))


def sizes(run: core.Trace) -> dict[str, int]:
    """Bytes of HTML in the notebook's file, by the function that made it."""
    attention = [record.pattern()[None] for record in run.attention]  # [1, head, query, key] a layer
    patterns, tokens = torch.cat([record.pattern() for record in run.attention]), list(run.source.labels)
    found = {"Headlight show()": len(cell(placed(one_run(run, KEY, MOST)), 640).encode())}
    with bertviz() as (head_view, _):
        views: Any = sys.modules[head_view.__module__.partition(".")[0]]
        for view in (views.model_view, views.head_view):
            html = view(attention=attention, tokens=tokens, html_action="return").data
            found[f"bertviz {view.__name__}"] = len(html.encode())
    with circuitsvis() as attention_heads:
        views = sys.modules[attention_heads.__module__]
        for view in (views.attention_heads, views.attention_patterns):
            html = view(attention=patterns, tokens=tokens)._repr_html_()
            found[f"CircuitsVis {view.__name__}"] = len(html.encode())
    return found


@contextmanager
def lab(python: Path, folder: Path) -> Iterator[str]:
    """A JupyterLab of another environment, whose kernel also has our packages."""
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    spec = folder / "share" / "kernels" / "ours"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    env = {"PYTHONPATH": os.pathsep.join((str(ROOT), ours))}
    spec.joinpath("kernel.json").write_text(json.dumps({"argv": argv, "display_name": "ours", "env": env}), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.token=",
        "--ServerApp.password=",
        "--expose-app-in-browser",
    ]
    command = [str(python), "-m", "jupyterlab", *settings, f"--port={port}", f"--ServerApp.root_dir={folder}"]
    environment = {**os.environ, "JUPYTER_PATH": str(folder / "share"), "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        address = f"http://127.0.0.1:{port}"
        waited(lambda: answers(f"{address}/api"), "JupyterLab does not start")
        yield address
    finally:
        server.terminate()
        server.wait(PATIENCE)


def answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=2) as response:
            return response.status == 200
    except (URLError, OSError):
        return False


def waited(found: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not found():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(LOOK)


def pictures(browser: Browser, address: str, folder: Path, run: core.Trace, rounds: int) -> dict[str, float]:
    """Seconds from Shift+Enter to the painted picture, by face: medians of as many cells."""
    found: dict[str, float] = {}
    for face, switch in FACES.items():
        first = f"import core\nfrom app.notebook import cell\n{switch}\nrun = core.trace(core.load('minilm'), {run.source.text!r})\nrun.show()\nprint('re' + 'ady')"
        source = [first, *["run.show()"] * rounds]
        name = f"{face.replace(' ', '_')}.ipynb"
        cells = [
            {"cell_type": "code", "id": f"c{i}", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
            for i, text in enumerate(source)
        ]
        kernel = {"kernelspec": {"name": "ours", "display_name": "ours", "language": "python"}}
        notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (folder / name).write_text(json.dumps(notebook), "utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(f"{address}/lab/workspaces/{face[:4]}/tree/{name}")
        for _ in range(ATTEMPTS):  # what is asked of a kernel that is not connected yet is lost
            page.locator(".jp-Notebook .jp-CodeCell").nth(0).locator(".cm-content").click()
            page.keyboard.press(SHIFT_ENTER)
            with suppress(TimeoutError):
                page.get_by_text("ready", exact=True).first.wait_for(timeout=PATIENCE * 1000 / ATTEMPTS)
                break
        found[face] = median([shown(page, i + 1) for i in range(rounds)])
        page.close()
    return found


def shown(page: Page, at: int) -> float:
    """Seconds from Shift+Enter in one cell to its picture."""
    page.locator(".jp-Notebook .jp-CodeCell").nth(at).locator(".cm-content").click()
    before = {*page.frames}
    began = time.perf_counter()
    page.keyboard.press(SHIFT_ENTER)

    def is_painted() -> bool:
        page.wait_for_timeout(LOOK * 1000)
        return any(painted(frame) for frame in page.frames if frame not in before)

    waited(is_painted, f"no picture in cell {at}")
    return time.perf_counter() - began


def painted(frame: Frame) -> bool:
    return frame.locator(".hl.explore[data-painted]").count() > 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notebook", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=128, metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lab", type=Path, metavar="PYTHON", help="of an environment with JupyterLab and anywidget")
    options = parser.parse_args()
    run = traced(options.tokens)
    heads = sum(record.n_heads for record in run.records)
    print(f"{machine()}; MiniLM, {heads} heads, {len(run.source)} tokens\n\n| cell | kB | ÷ Headlight |\n|---|---|---|")
    found = sizes(run)
    own = found["Headlight show()"]
    for name, size in found.items():
        print(f"| {name} | {kB(size)} | {size / own:.1f} |")
    path = browsers.find()
    if options.lab is None or path is None:
        return
    with tempfile.TemporaryDirectory() as temporary, browsing(path) as browser:
        folder = Path(temporary)
        with lab(options.lab.absolute(), folder) as address:
            times = pictures(browser, address, folder, run, options.rounds)
    print(f"\n| in JupyterLab, medians of {options.rounds} | Shift+Enter to the picture, s |\n|---|---|")
    for face, seconds in times.items():
        print(f"| {face} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
