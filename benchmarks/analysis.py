"""Cost of the analysis after a pass: everything a picture opens with, as a share of the pass itself.

    python -m benchmarks.analysis [--model smollm2] [--rounds 15] [--threads 2]

A round traces each sentence and analyses the run: all weights, roles, sinks, masks, and the edge on which the picture opens.
The sentences open by different rules, which take different amounts of work. Ratios are of one round, and their medians are
printed, by the clock and by processor time, which other programs disturb less. Goal: ≤ 0.2 passes.
"""

from __future__ import annotations

import argparse
import statistics

import torch

import core
from benchmarks.capture import Cost, cost_of, machine
from core.checkpoints import Loaded
from core.service.pictures import whole_of
from core.service.worker import run_sites

SENTENCES = (
    "When Mary and John went to the store, John gave a drink to",
    "The keys to the old cabinet",
    "The animal didn't cross the street because it was too",
    "My grandfather was a fisherman. Every morning he took his boat out to sea, and every evening he came home with a basket full of",
    "Good morning",
)


def compare(loaded: Loaded, text: str, rounds: int) -> tuple[core.Trace, list[tuple[Cost, Cost, Cost]]]:
    """A run of the text, and for each round the cost of the pass, of the analysis, and of the opening edge alone."""
    run = core.trace(loaded, text)
    sites = run_sites(run)
    cases = (
        lambda: core.trace(loaded, text),
        lambda: whole_of(run, sites),
        lambda: core.opening_finding(run),
    )
    for work in cases:
        work()
    costs = []
    for i in range(rounds):
        order = cases if i % 2 else tuple(reversed(cases))
        found = {work: cost_of(work) for work in order}
        costs.append((found[cases[0]], found[cases[1]], found[cases[2]]))
    return run, costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    loaded = core.load(options.model)
    print(machine())
    print(
        "\n| sentence | tokens | opens by | pass, ms | analysis ÷ pass | of processor time | of it the opening edge |"
    )
    print("|---|---|---|---|---|---|---|")
    for text in SENTENCES:
        run, costs = compare(loaded, text, options.rounds)
        kind = core.opening_finding(run).kind
        milliseconds = 1000 * statistics.median(traced.wall for traced, _, _ in costs)
        wall = statistics.median(whole.wall / traced.wall for traced, whole, _ in costs)
        cpu = statistics.median(whole.cpu / traced.cpu for traced, whole, _ in costs)
        edge = statistics.median(look.cpu / whole.cpu for _, whole, look in costs)
        start = text if len(text) < 40 else f"{text[:36]} …"
        print(f"| {start} | {len(run.source)} | {kind} | {milliseconds:.0f} | {wall:.2f} | {cpu:.2f} | {edge:.2f} |")


if __name__ == "__main__":
    main()
