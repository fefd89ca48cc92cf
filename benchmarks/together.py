"""Short texts one by one and in one padded pass, each leaving the same run: what a pass over several of them spares.

    python -m benchmarks.together [--texts 2 4 8 16] [--rounds 30]

One thread. Both ways take turns within a round, and what is compared is the processor's time, which other programs disturb least.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from statistics import median

import torch

import core
from benchmarks.capture import machine
from benchmarks.load import WORDS
from core.checkpoints import Loaded
from core.model.text import tokenize
from core.run.trace import trace_batch
from core.run.trace_record import TraceRecord

TEXTS = (2, 4, 8, 16)
LONG = (6, 16)  # words of a text, from and up to


def taken(run: Callable[[Loaded, list[str]], object], loaded: Loaded, texts: list[str]) -> float:
    """Seconds of the processor."""
    begun = time.process_time()
    run(loaded, texts)
    return time.process_time() - begun


def one_by_one(loaded: Loaded, texts: list[str]) -> list[core.Trace]:
    return [core.trace(loaded, text) for text in texts]


def in_one_pass(loaded: Loaded, texts: list[str]) -> tuple[TraceRecord, ...]:
    return trace_batch(loaded, [tokenize(loaded.tokenizer, text) for text in texts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, nargs="+", default=TEXTS)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(1)
    print(machine())
    print("\n| model | texts | one by one, ms | in one pass, ms | ratio |\n|---|---|---|---|---|")
    for name in ("minilm", "storyteller"):
        loaded = core.load(name)
        for n in options.texts:
            took: dict[Callable[..., object], list[float]] = {one_by_one: [], in_one_pass: []}
            for i in range(options.rounds):
                texts = [" ".join(rng.choices(WORDS, k=rng.randrange(*LONG))) for _ in range(n)]
                for way in [*took][:: 1 if i % 2 else -1]:
                    took[way].append(taken(way, loaded, texts))
            alone, together = took.values()
            ratio = median(a / b for a, b in zip(alone, together, strict=True))
            print(
                f"| {name} | {n} | {1000 * median(alone):.1f} | {1000 * median(together):.1f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
