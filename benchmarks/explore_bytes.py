"""Bytes that Explore is sent: all of a sentence of SmolLM2 in a browser, and one measure of the map of all heads at 5,120 heads.

    python -m benchmarks.explore_bytes

Of the sentence: what the page's sockets received and what its /headlight/ routes sent, headers included, from Enter until nothing
more came for a second. Of a measure: its message as the route makes it, of random numbers; such a message is not packed. No times.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import core
from app.attention import picture
from benchmarks.page import address_of, entered, kB, opened, verdict, visiting
from core.checkpoints import Loaded
from core.read.measures import Sink
from core.service import HeadAdditions
from scripts import browser as browsers
from tests.app.browsing import browsing, serving

TEXT = Path(__file__).resolve().parents[1] / "tests" / "core" / "alice.txt"
TOKENS, MOST = 128, 250_000  # of the sentence, and bytes
LAYERS, HEADS, MOST_MEASURE = 80, 64, 25_000
CANDIDATES = 5
ROUTES = """(since) => performance.getEntriesByType("resource")
  .filter(({ name, startTime }) => /[/]headlight[/]/.test(name) && startTime >= since)
  .map(({ name, transferSize }) => [new URL(name).pathname.split("/").at(-1), transferSize])"""


def sentence(loaded: Loaded, n: int) -> str:
    """The beginning of a book, as many words as make n tokens or the first number above."""
    parts = TEXT.read_text("utf-8").split()
    return next(text for i in range(1, len(parts)) if len(loaded.tokens(text := " ".join(parts[:i]))) >= n)


def sent(address: str, path: str, text: str) -> tuple[int, dict[str, int]]:
    """Bytes of the socket, and of each route, for one sentence typed where another one was."""
    with browsing(path) as browser, visiting(browser) as context:
        page = context.new_page()
        opened(page, address_of(address, model="smollm2", text="Two+words+and+two"))
        since, received, _ = entered(page, text)
        routes: dict[str, int] = {}
        for name, size in page.evaluate(ROUTES, since):
            routes[name] = routes.get(name, 0) + size
        return page.evaluate("bench.received") - received, routes


def measures() -> dict[str, bytes]:
    """The answer of a route about every head, by measure."""
    rng = np.random.default_rng(0)
    some = rng.random((LAYERS, HEADS), np.float32)
    likeliest = tuple((f"word {i}", 0.2) for i in range(CANDIDATES))
    added = HeadAdditions(likeliest, rng.standard_normal((CANDIDATES, LAYERS, HEADS)).astype(np.float32))
    sink = Sink(0, some, TOKENS - 1)
    return {
        "looks from here at the chosen word": picture.heads_numbers_message(some),
        "adds to the next word": picture.additions_message(added, 0),
        "rests on the first token": picture.sink_packed(sink),
    }


def main() -> None:
    path = browsers.find()
    if path is None:
        raise SystemExit("This needs Chromium or Chrome: `make browser` says how to install one.")
    loaded = core.load("smollm2")
    text = sentence(loaded, TOKENS)
    with tempfile.TemporaryDirectory() as folder, serving("app/main.py", Path(folder) / "log") as address:
        socket, routes = sent(address, path, text)
    together = socket + sum(routes.values())
    print(f"{len(loaded.tokens(text))} tokens × {loaded.config.n_decoder_layers * loaded.config.n_heads} heads\n")
    print("| part | kB |\n|---|---|")
    for name, size in {"socket": socket, **routes}.items():
        print(f"| {name} | {kB(size)} |")
    print(f"| together | {kB(together)}; ≤ {MOST // 1000}: {verdict(together, MOST)} |")
    print(f"\n| measure of {LAYERS * HEADS:,} heads | kB | ≤ {MOST_MEASURE // 1000} |\n|---|---|---|")
    for name, message in measures().items():
        print(f"| {name} | {kB(len(message))} | {verdict(len(message), MOST_MEASURE)} |")


if __name__ == "__main__":
    main()
