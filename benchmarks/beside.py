"""Explore beside bertviz's head view and CircuitsVis's attention heads, on the same patterns of the language model that opens.

    python -m benchmarks.beside [--lengths 16 64 128] [--rounds 3]

Both are fetched for this from PyPI, without what they ask for, and go again; what bertviz's page asks a CDN for comes from npm.
To look at one of them: `pip install --target FOLDER bertviz==1.4.1 circuitsvis==1.43.3`. Here a sentence is typed in a page that
is open, and the time, from Enter to the frame after the picture, has the run of the model in it; there a page of patterns that
are computed already is opened from a file, from the start of the navigation to the frame after all of it is drawn. Bytes are what
came for the sentence until a second after the last, and the size of that file, without what the page fetches. Ratios are of medians of
one run, in which the three take turns.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser, Page

import core
from benchmarks.capture import machine
from benchmarks.explore_bytes import ROUTES, sentence
from benchmarks.head_view import AFTER_EVENT, PATIENCE, bertviz, head_view
from benchmarks.page import address_of, entered, forward, kB, median, opened, visiting
from scripts import browser as browsers
from tests.app.browsing import browsing, serving

MODEL = "smollm2"
LENGTHS = (16, 64, 128)
CIRCUITSVIS = "circuitsvis==1.43.3"
FRAME = "new Promise((then) => requestAnimationFrame(() => then(performance.now())))"


class Cost(NamedTuple):
    """One page: bytes; ms until all of it is drawn; ms to another head."""

    size: float
    drawn: float
    head: float
    run: float = 0.0  # ms of drawn in which the model ran


class Others(NamedTuple):
    """Functions that make the pages of the other two, and the scripts that bertviz's page fetches."""

    head_view: Callable[..., Any]
    scripts: dict[str, Path]
    attention_heads: Callable[..., Any]


@contextmanager
def circuitsvis() -> Iterator[Callable[..., Any]]:
    """Its attention_heads, from PyPI. Of importlib_metadata it wants the version of itself, which Python has."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, CIRCUITSVIS]
        subprocess.run(pip, check=True, capture_output=True)
        stand_in = types.ModuleType("importlib_metadata")
        vars(stand_in).update(version=importlib.metadata.version)
        given = sys.modules.setdefault("importlib_metadata", stand_in)
        sys.path.insert(0, folder)
        try:
            yield importlib.import_module("circuitsvis.attention").attention_heads
        finally:
            sys.path.remove(folder)
            if given is stand_in:
                del sys.modules["importlib_metadata"]


def headlight(page: Page, text: str) -> Cost:
    """A sentence that is typed where another one was, then the next head by its key, by the page's own clock."""
    since, received, painted = entered(page, text)
    routes = sum(size for _, size in page.evaluate(ROUTES, since))
    size = page.evaluate("bench.received") - received + routes
    page.evaluate("() => { bench.root().dataset.ms = ''; }")
    page.locator(".hl .headmap .grid").focus()
    page.keyboard.press("ArrowUp" if page.evaluate("Number(bench.root().dataset.head)") else "ArrowDown")
    page.wait_for_function("bench.root().dataset.ms !== ''", timeout=PATIENCE)
    return Cost(size, painted, float(page.evaluate("bench.root().dataset.ms")), forward(page))


def heads_page(browser: Browser, view: Callable[..., Any], run: core.Trace) -> Cost:
    """CircuitsVis's page of every head, its scripts in it; another head is pointed at."""
    patterns = torch.cat([record.pattern() for record in run.attention])  # [layer · head, query, key]
    html = view(patterns, list(run.source.labels), mask_upper_tri=True).local_src
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention_heads.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{html}', encoding="utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(PATIENCE)
        page.goto(path.as_uri(), timeout=PATIENCE, wait_until="commit")
        page.wait_for_function(f"document.querySelectorAll('canvas').length > {len(patterns)}")
        drawn = page.evaluate(FRAME)
        small = page.locator("canvas").nth(1)
        page.mouse.move(1, 1)
        page.evaluate(AFTER_EVENT, "mouseover")
        small.hover()
        switched = page.evaluate("waiting")
        page.close()
    return Cost(len(html.encode()), drawn, switched)


def compared(browser: Browser, address: str, n: int, rounds: int, others: Others) -> dict[str, Cost]:
    """The three on as many tokens, by name: medians."""
    loaded = core.load(MODEL)
    text = sentence(loaded, n)
    run = core.trace(loaded, text)
    found: dict[str, list[Cost]] = {"Headlight": [], "bertviz": [], "CircuitsVis": []}
    for i in range(rounds):
        with visiting(browser) as context:
            page = context.new_page()
            opened(page, address_of(address, model=MODEL, text="Two+words+and+two"))
            found["Headlight"].append(headlight(page, f"{text}{'.' * i}"))  # another one each time, so that it is run
        one = head_view(browser, others.head_view, others.scripts, run, 1)
        found["bertviz"].append(Cost(one.size, one.drawn or float("nan"), one.switched or float("nan")))
        found["CircuitsVis"].append(heads_page(browser, others.attention_heads, run))
    return {name: Cost(*(median(column) for column in zip(*costs, strict=True))) for name, costs in found.items()}


def print_compared(browser: Browser, address: str, lengths: Sequence[int], rounds: int) -> None:
    print(
        "\n| tokens | of | bytes, kB | ÷ Headlight | drawn, ms | ÷ Headlight | of it the run, ms | another head, ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with bertviz() as (view, local), circuitsvis() as heads:
        for n in lengths:
            found = compared(browser, address, n, rounds, Others(view, local, heads))
            own = found["Headlight"]
            for name, cost in found.items():
                by = [""] * 2 if cost is own else [f"{cost.size / own.size:.1f}", f"{cost.drawn / own.drawn:.2f}"]
                times = (f"{cost.drawn:,.0f}", by[1], f"{cost.run:,.0f}", f"{cost.head:,.0f}")
                print(f"| {' | '.join((str(n), name, kB(cost.size), by[0], *times))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="tokens")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    path = browsers.find()
    if path is None:
        raise SystemExit("This needs Chromium or Chrome: `make browser` says how to install one.")
    with (
        tempfile.TemporaryDirectory() as folder,
        browsing(path) as browser,
        serving("app/main.py", Path(folder) / "log") as address,
    ):
        print(
            f"{machine()}, Chromium {browser.version} without a GPU; medians of {options.rounds}; SmolLM2-135M, 270 heads"
        )
        print_compared(browser, address, options.lengths, options.rounds)


if __name__ == "__main__":
    main()
