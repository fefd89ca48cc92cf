"""bertviz's head view in headless Chromium, by the same clock as benchmarks/page.py."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tarfile
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Route

import core
from benchmarks import gallery

BERTVIZ, D3, JQUERY, REQUIRE = "bertviz==1.4.1", "d3@5.7.0", "jquery@2.1.0", "requirejs@2.3.6"
PATIENCE = 180_000  # ms


@contextmanager
def bertviz() -> Iterator[tuple[Callable[..., Any], dict[str, Path]]]:
    """Its head_view, and the scripts that its page asks a CDN for, by a part of their address: {} without npm.

    It is fetched for this and goes again. Of IPython it wants two classes that hold a string.
    """
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, BERTVIZ]
        subprocess.run(pip, check=True, capture_output=True)
        holder = type("Held", (), {"__init__": lambda self, data: setattr(self, "data", data)})
        display = types.ModuleType("IPython.display")
        vars(display).update(HTML=holder, Javascript=holder, display=print)
        sys.modules |= {"IPython": types.ModuleType("IPython"), "IPython.display": display}
        sys.path.insert(0, folder)
        try:
            yield importlib.import_module("bertviz").head_view, scripts(Path(folder))
        finally:
            sys.path.remove(folder)
            for name in ("IPython", "IPython.display"):
                del sys.modules[name]


def scripts(folder: Path) -> dict[str, Path]:
    """What the page fetches from cdnjs, as the npm registry has it."""
    found = {"d3": "dist/d3.min.js", "jquery": "dist/jquery.min.js", "require": "require.js"}
    try:
        for name, package in zip(found, (D3, JQUERY, REQUIRE), strict=True):
            pack = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
            archive = folder / subprocess.run(pack, check=True, capture_output=True, text=True).stdout.split()[-1]
            with tarfile.open(archive) as files:
                files.extractall(folder / name, filter="data")
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {name: folder / name / "package" / path for name, path in found.items()}


class HeadView(NamedTuple):
    """bertviz's page: bytes; ms to draw it, to another layer, and to mark the lines of a token; None: not measured."""

    size: int
    drawn: float | None
    switched: float | None
    hovered: float | None


# The same clock: from the event until the frame after the one that drew.
AFTER_EVENT = """(name) => { window.waiting = new Promise((resolve) => addEventListener(name, ({ timeStamp }) =>
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - timeStamp))), { capture: true, once: true })); }"""


def head_view(
    browser: Browser, view: Callable[..., Any], local: dict[str, Path], run: core.Trace, rounds: int
) -> HeadView:
    """The page that bertviz makes of the attention of a run, opened from a file."""
    n = len(run.source)
    attention = [record.pattern()[None] for record in run.attention]  # [1, head, query, key] a layer
    html = view(attention=attention, tokens=list(run.source.labels), html_action="return").data
    size = len(html.encode())
    if not local:
        return HeadView(size, None, None, None)

    def answer(route: Route) -> None:
        name = next((name for name in local if name in route.request.url), None)
        route.fulfill(path=local[name]) if name else route.abort()

    drawn, steps, hovers = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head_view.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{html}', encoding="utf-8")
        for _ in range(rounds):
            context = browser.new_context(viewport={"width": 1280, "height": 720})
            context.set_default_timeout(PATIENCE)
            context.route("https://**/*", answer)
            page = context.new_page()
            page.goto(path.as_uri(), timeout=PATIENCE)
            lines = run.attention[0].n_heads * n * n
            page.wait_for_function(f"document.querySelectorAll('#attention line').length === {lines}")
            drawn.append(page.evaluate("new Promise((then) => requestAnimationFrame(() => then(performance.now())))"))
            page.evaluate(AFTER_EVENT, "change")
            page.select_option("#layer", "1")
            steps.append(page.evaluate("waiting"))
            token = page.locator("#left text").nth(min(5, n - 1)).bounding_box()
            assert token is not None
            page.mouse.move(token["x"] - 40, token["y"] - 200)
            page.evaluate(AFTER_EVENT, "mouseover")
            page.mouse.move(token["x"] + 8, token["y"] + token["height"] / 2)
            hovers.append(page.evaluate("waiting"))
            context.close()
    return HeadView(size, median(drawn), median(steps), median(hovers))


def print_bertviz(browser: Browser, lengths: Sequence[int], rounds: int) -> None:
    print("\n| tokens | bertviz's page, kB | drawn, ms | another layer, ms | hover, ms |\n|---|---|---|---|---|")
    with bertviz() as (view, local):
        for n in lengths:
            found = head_view(browser, view, local, core.trace(gallery.load(gallery.NAME), gallery.sentence(n)), rounds)
            times = ("–" if ms is None else f"{ms:,.0f}" for ms in found[1:])
            print(f"| {n:,} | {found.size / 1000:,.1f} | {' | '.join(times)} |", flush=True)
