"""What it costs to trace, draw and plan GPT-3 175B, of which nothing is allocated: seconds, processor seconds and memory.

`python -m benchmarks.planner` starts a fresh process for each round and prints the table of RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

GOAL = 2.0  # seconds for all three together, on two cores
MODEL, TOKENS = "gpt3", 2048
STEPS = {
    "traced": "`trace_shapes`, all 96 layers",
    "drawn": "diagram of the Shapes view",
    "planned": "`plan`",
    "together": "together",
}


def resident() -> float:
    """The most memory this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def once(threads: int) -> dict[str, float]:
    """One round in this process: seconds and processor seconds of each step, and memory before and after."""
    import torch

    from app.rooms.shapes.diagram import diagram
    from core.plan import PRESETS, Workload, plan, trace_shapes

    torch.set_num_threads(threads)
    config = PRESETS[MODEL].config
    trace_shapes(PRESETS["bert-tiny"].config, source_len=8)  # PyTorch sets its modes up on first use
    found: dict[str, float] = {"before": resident()}
    steps: dict[str, Callable[[], object]] = {
        "traced": lambda: trace_shapes(config, source_len=TOKENS),
        "drawn": lambda: diagram(config, Workload(batch=1, source_len=TOKENS)).to_dict(),
        "planned": lambda: plan(config, source_len=TOKENS, training=True),
    }
    for name, step in steps.items():
        wall, work = time.perf_counter(), time.process_time()
        step()
        found[name], found[f"{name} cpu"] = time.perf_counter() - wall, time.process_time() - work
    for kind in ("", " cpu"):
        found[f"together{kind}"] = sum(found[f"{name}{kind}"] for name in steps)
    return found | {"after": resident()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", action="store_true", help="one round in this process, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(once(chosen.threads)))
        return
    command = [sys.executable, "-m", "benchmarks.planner", "--one", "--threads", str(chosen.threads)]
    rounds = [json.loads(subprocess.check_output(command)) for _ in range(chosen.rounds)]

    def middle(name: str) -> float:
        return statistics.median(one[name] for one in rounds)

    print("| step | ms | processor, ms |\n|---|---|---|")
    for name, what in STEPS.items():
        print(f"| {what} | {1000 * middle(name):,.1f} | {1000 * middle(f'{name} cpu'):,.1f} |")
    grown = middle("after") - middle("before")
    print(f"\nMemory: {middle('before'):,.0f} MiB before, {middle('after'):,.0f} MiB at most ({grown:,.0f} MiB more).")
    print(f"Goal: under {GOAL:.0f} s together. Reached: {'yes' if middle('together') < GOAL else 'no'}.")


if __name__ == "__main__":
    main()
