"""What a sweep costs beside a plain pass of the same run: every head silenced, every look cut, on the models that ship.

    python -m benchmarks.sweep

Prints for each how many rows there are, the milliseconds, and how many plain passes' time that is. A pass is measured in the same
process just before, so that the ratio holds on any machine. Then the same of SmolLM2's parts beside another sentence: estimates, and
runs. On a machine that is shared these are rough: the least of several is taken, and the processor time of the thread is beside it,
which says something with OMP_NUM_THREADS=1 alone.
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
    sweeps: tuple[tuple[str, Callable[[], core.patching.Sweep]], ...] = (
        ("heads silenced", lambda: core.sweep_heads(run)),
        ("looks cut", lambda: core.sweep_edges(run)),
    )
    for what, sweep in sweeps:
        rows = len(sweep().places)
        took = milliseconds(sweep, repeats)
        print(
            f"  {rows:4d} {what}: {took:7.1f} ms, {took / plain:5.1f} passes, {took / plain / rows:.2f} of a pass each"
        )


MARY = "When Mary and John went to the store, John gave a drink to"
JOHN = "When Mary and John went to the store, Mary gave a drink to"
WORDS = range(9, 14)  # from the one that differs on


def least(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Milliseconds by the clock and of this thread's processor, the least of several each."""
    clocks, threads = [], []
    for _ in range(repeats):
        clock, thread = time.perf_counter(), time.thread_time()
        work()
        clocks.append(time.perf_counter() - clock)
        threads.append(time.thread_time() - thread)
    return min(clocks) * 1000, min(threads) * 1000


def report_parts(repeats: int) -> None:
    """Lines of SmolLM2's parts taken from another sentence, in plain passes."""
    loaded = core.load("smollm2")
    run, other = core.trace(loaded, MARY), core.trace(loaded, JOHN)
    (mary,), (john,) = loaded.tokens(" Mary").ids, loaded.tokens(" John").ids
    layers, n_heads = range(run.config.n_decoder_layers), run.config.n_heads
    heads = [core.patching.Component("head", layer, head) for layer in layers for head in range(n_heads)]
    mlps = [core.patching.Component("mlp", layer) for layer in layers]
    words = [core.patching.Component("resid", layer, token) for layer in layers for token in WORDS]
    late = [part for part in heads if part.layer in range(20, 30)]

    def patch(parts: list[core.patching.Component], to: Any = "other") -> Callable[[], object]:
        return lambda: list(core.patch_components(run, other, parts, (mary, john), to))

    works: tuple[tuple[str, Callable[[], object]], ...] = (
        ("estimate", lambda: core.attribution_patching(run, other, mary, john)),
        ("estimate of silence", lambda: core.attribution_patching(run, None, mary, john, "zero")),
        (f"{len(late)} heads patched, layers 20 to 29", patch(late)),
        (f"{len(heads)} heads patched", patch(heads)),
        (f"{len(heads)} heads and {len(mlps)} MLPs patched", patch(heads + mlps)),
        (f"{len(words)} cells of the stream patched", patch(words)),
        (f"{len(heads)} heads silenced", patch(heads, "zero")),
        ("patch_heads, as a whole batch", lambda: core.patch_heads(run, other)),
    )
    least(run.forward.run, 1)  # warms up
    plain = least(run.forward.run, 2 * repeats)
    print(f"smollm2: {len(run.source)} tokens, a plain pass {plain[0]:.0f} ms, {plain[1]:.0f} of this thread")
    for what, work in works:
        took = least(work, repeats)
        print(f"  {what}: {took[0] / plain[0]:.1f} passes, {took[1] / plain[1]:.1f} by this thread's time")


def main() -> None:
    torch.manual_seed(0)
    for model, text in CASES:
        report(model, core.trace(core.load(model), text))
    shaped = core.build(core.ModelConfig(**GPT2))
    report_parts(REPEATS)
    report("GPT-2's shape", core.trace(shaped, ids=[(7 * i) % 50257 for i in range(32)]), 1)


if __name__ == "__main__":
    main()
