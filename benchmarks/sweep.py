"""What a sweep costs beside a plain pass of the same run: every head silenced, every look cut, on the models that ship.

    python -m benchmarks.sweep

Prints for each how many rows there are, the milliseconds, and how many plain passes' time that is. A pass is measured in the same
process just before, so that the ratio holds on any machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import core

REPEATS = 5
CASES = (
    ("storyteller", "Dorothy ran home over the prairie to Uncle Henry and Aunt"),
    ("minilm", "The animal didn't cross the street because it was too tired."),
)
GPT2: dict[str, Any] = dict(
    vocab_size=50257, d_model=768, n_heads=12, d_head=64, d_ff=3072, n_ctx=1024, n_decoder_layers=12
)


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of several runs, after one that warms up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def report(name: str, run: core.Trace, repeats: int = REPEATS) -> None:
    """Lines of one run: a pass, the heads, the looks."""
    plain = milliseconds(lambda: run.forward.run(), repeats)
    print(f"{name}: {len(run.source)} tokens, a plain pass {plain:.1f} ms")
    sweeps: tuple[tuple[str, Callable[[], core.Sweep]], ...] = (
        ("heads silenced", lambda: core.sweep_heads(run)),
        ("looks cut", lambda: core.sweep_edges(run)),
    )
    for what, sweep in sweeps:
        rows = len(sweep().places)
        took = milliseconds(sweep, repeats)
        print(
            f"  {rows:4d} {what}: {took:7.1f} ms, {took / plain:5.1f} passes, {took / plain / rows:.2f} of a pass each"
        )


def main() -> None:
    torch.manual_seed(0)
    for model, text in CASES:
        report(model, core.trace(core.load(model), text))
    shaped = core.build(core.ModelConfig(**GPT2))
    report("GPT-2's shape", core.trace(shaped, ids=[(7 * i) % 50257 for i in range(32)]), 1)


if __name__ == "__main__":
    main()
