"""Tokens a second with and without a KV cache, beside transformers.generate on the same weights.

    python -m benchmarks.generate [--prompt 64] [--tokens 32] [--rounds 5] [--layers 12] [--width 768]
    python -m benchmarks.generate --room 500     the frames of the room and its memory, while it writes so many tokens

GPT-2's shape with random weights, greedy, float32. The ways take turns within a round, so that what else the machine does
hits them alike; "with columns" is the way of the room Generate, which keeps for each token all that could have come and where every
head looked; after it what wrote each word, and what each layer would have said of it, are computed once. The ratios are medians over
rounds, and that of processor time is the steadier one. All must write the same tokens. The goal is not to be slower than transformers.

In the room a frame is the time between two pictures of the browser, of 100 tokens each: 95 in 100 should come within 33 ms, and what
the page holds should grow by what is written alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import torch
import transformers as hf

import core
from benchmarks.rooms import p95
from core.model.text import from_ids
from core.run.request import Prompt
from core.write.generate import Sampling, generate
from core.write.writer import Writer, attribute_tokens, lens_columns
from scripts import browser as browsers
from tests.app.browsing import browsing, serving

VOCAB = 50257
APP = "app/main.py"
LONGEST = 8  # seconds without a token, after which Write on has stopped by itself

COUNTING = "One, two, three, four, five, six,"  # which has no end
# ms between two frames until there are so many columns, or for so long nothing was written
FRAMES = """(root, [n, most]) => new Promise((resolve) => {
  const found = [];
  let before = performance.now(), last = before;
  const look = (now) => {
    found.push(now - before);
    before = now;
    if (root.dataset.writing) last = now;
    if (Number(root.dataset.columns) < n && now - last < most) requestAnimationFrame(look);
    else resolve(found);
  };
  requestAnimationFrame(look);
})"""


def print_room(most: int) -> None:
    """Frames and memory of the room Generate while the language model that opens writes the likeliest words, a hundred at a time."""
    path = browsers.find()
    if path is None:
        raise SystemExit("This needs Chromium or Chrome: `make browser` says how to install one.")
    print("| tokens | tokens/s | frames | median, ms | p95, ms | longest, ms | held by scripts, MB | nodes |")
    print("|---|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as folder,
        browsing(path) as browser,
        serving(APP, Path(folder) / "log") as address,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(60_000)
        asked = {"view": "generate", "model": "SmolLM2-135M", "text": COUNTING, "how": "greedy", "n": "0"}
        page.goto(f"{address}/?{urlencode(asked)}")
        page.locator(".hl.generate[data-lens='ready']").wait_for()
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable")
        columns = int(page.locator(".hl.generate").get_attribute("data-columns") or 0)
        go = page.locator(".hl.generate .go")
        go.click()
        for end in range(100, most + 1, 100):
            start, began = columns, time.perf_counter()
            frames: list[float] = page.locator(".hl.generate").evaluate(FRAMES, [end, 1000 * LONGEST])
            columns = int(page.locator(".hl.generate").get_attribute("data-columns") or 0)
            rate = (columns - start) / (time.perf_counter() - began)
            tools.send("HeapProfiler.collectGarbage")
            held = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
            print(
                f"| {columns} | {rate:.1f} | {len(frames)} | {statistics.median(frames):.1f} | {p95(frames):.1f} | {max(frames):.0f} | "
                f"{held['JSHeapUsedSize'] / 1e6:.1f} | {held['Nodes']:.0f} |",
                flush=True,
            )
            if columns < end:
                go.click()


def timed(write: Callable[[], list[int]]) -> tuple[float, float, list[int]]:
    """Seconds by the clock, seconds of processor time, and what was written."""
    clock, processor = time.perf_counter(), time.process_time()
    written = write()
    return time.perf_counter() - clock, time.process_time() - processor, written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--room", type=int, metavar="TOKENS", help="measure the room while it writes so many")
    options = parser.parse_args()
    if options.room:
        print_room(options.room)
        return
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    config = hf.GPT2Config(n_layer=options.layers, n_head=options.width // 64, n_embd=options.width, vocab_size=VOCAB)
    theirs = hf.GPT2LMHeadModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = core.load(folder)
    prompt = torch.randint(0, VOCAB, (1, options.prompt))
    ids: list[int] = prompt[0].tolist()

    def with_transformers() -> list[int]:
        out = theirs.generate(  # type: ignore[operator]
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=options.tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        return out[0, options.prompt :].tolist()

    def with_headlight(cached: bool) -> list[int]:
        return list(generate(ours, ids=ids, max_tokens=options.tokens, stop=(), cached=cached)[0].ids)

    tokens = Prompt((from_ids(None, prompt[0].tolist()),))
    columns: list[float] = []  # seconds to the first of them
    looks: list[float] = []
    layers: list[float] = []

    def with_columns() -> list[int]:
        start = time.perf_counter()
        writer = Writer(ours, tokens, room=options.tokens)
        writer.stops = frozenset()
        writer.open()
        columns.append(time.perf_counter() - start)
        for _ in range(options.tokens):
            writer.write(Sampling())
        return list(writer.path)

    def beside(path: list[int]) -> None:
        start = time.perf_counter()
        attribute_tokens(ours, tokens, path)
        looks.append(time.perf_counter() - start)
        start = time.perf_counter()
        lens_columns(ours, tokens, path, range(options.prompt - 1, options.prompt - 1 + options.tokens))
        layers.append(time.perf_counter() - start)

    ways: dict[str, Callable[[], list[int]]] = {
        "with a cache": lambda: with_headlight(True),
        "without": lambda: with_headlight(False),
        "with columns": with_columns,
        "transformers.generate": with_transformers,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    processor: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        texts = []
        for name, write in ways.items():
            spent, worked, written = timed(write)
            seconds[name].append(spent)
            processor[name].append(worked)
            texts.append(written)
        assert all(text == texts[0] for text in texts), "the ways must write the same tokens"
        beside(texts[0])

    def ratio(spent: dict[str, list[float]], way: str) -> float:
        pairs = zip(spent["transformers.generate"], spent[way], strict=True)
        return statistics.median(t / h for t, h in pairs)

    rates = {name: options.tokens / statistics.median(spent) for name, spent in seconds.items()}
    print(
        "| layers × width | prompt | tokens | rounds | " + " | ".join(f"{name}, tokens/s" for name in ways), end=" | "
    )
    print("transformers ÷ cached, time | by processor time | transformers ÷ with columns, time | by processor time |")
    print("|" + "---|" * (8 + len(ways)))
    print(
        f"| {options.layers} × {options.width} | {options.prompt} | {options.tokens} | {options.rounds} | "
        + " | ".join(f"{rate:.1f}" for rate in rates.values())
        + "".join(f" | {ratio(of, way):.2f}" for way in ("with a cache", "with columns") for of in (seconds, processor))
        + " |"
    )
    print(
        f"first column after {statistics.median(columns):.2f} s, heads and looks of every word in {statistics.median(looks):.2f} s, "
        f"every layer at every word in {statistics.median(layers):.2f} s"
    )


if __name__ == "__main__":
    main()
