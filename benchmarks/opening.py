"""Opening the language model that ships, a GGUF file: the first time, when it is unpacked into the cache, and the second, when it is mapped.

    python -m benchmarks.opening [--rounds 5] [--threads 1]

Each round begins without a cache, opens the model twice, and runs the first sentence once; a run before the first round has warmed the
rest. By the clock and by processor time, which other programs disturb less; ratios are of one round, and medians are printed, with
the parts of the second opening. Goal: the second opening takes at most a second beyond the run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

import core
from benchmarks.capture import Cost, cost_of, machine
from core import checkpoints
from core.checkpoints import catalog, loading
from core.checkpoints.gguf import cache

TEXT = catalog.SMOLLM2.example
# The steps of opening, by the functions that take them
PARTS = {
    "digest of the file": (cache, "digest_of"),
    "tokenizer": (checkpoints, "read_tokenizer"),
    "modules": (loading, "empty"),
    "head by columns": (loading, "by_columns"),
}


@contextmanager
def parts_timed() -> Iterator[dict[str, float]]:
    """Seconds of the processor in each of PARTS, while this lasts."""
    found: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            results = []
            found[name] += cost_of(lambda: results.append(function(*args, **options))).cpu
            return results[0]

        return call

    was = {name: getattr(*place) for name, place in PARTS.items()}
    try:
        for name, (module, function) in PARTS.items():
            setattr(module, function, timed(name, was[name]))
        yield found
    finally:
        for name, (module, function) in PARTS.items():
            setattr(module, function, was[name])


def one_round() -> tuple[Cost, Cost, Cost, dict[str, float]]:
    """The first opening, the second, a run, and the parts of the second."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[cache.PLACE] = folder
        first = cost_of(lambda: core.load("smollm2"))
        with parts_timed() as parts:
            second = cost_of(lambda: core.load("smollm2"))
        loaded = core.load("smollm2")
        core.trace(loaded, TEXT)
        run = cost_of(lambda: core.trace(loaded, TEXT).predictions(k=3))
    return first, second, run, dict(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(machine())
    core.trace(core.load("smollm2"), TEXT)
    rounds = [one_round() for _ in range(options.rounds)]
    print("\n| | clock, s | processor, s |\n|---|---|---|")
    for i, name in enumerate(("first opening", "second opening", "a run of the first sentence")):
        costs = [each[i] for each in rounds]
        wall, cpu = (statistics.median(getattr(cost, of) for cost in costs) for of in ("wall", "cpu"))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")
    for name in PARTS:
        print(f"| of the second: {name} | | {statistics.median(each[3].get(name, 0.0) for each in rounds):.3f} |")
    for of in ("wall", "cpu"):
        ratio = statistics.median(getattr(second, of) / getattr(first, of) for first, second, *_ in rounds)
        print(f"\nsecond ÷ first, {'clock' if of == 'wall' else 'processor'}: {ratio:.3f}")


if __name__ == "__main__":
    main()
