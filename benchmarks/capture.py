"""What a trace costs beside a plain forward pass: seconds, bytes held, and peak memory.

The model has the shape of GPT-2 small and random weights. Seconds are compared within a round, in which plain
and traced passes alternate, so that whatever else the machine does meets both; the ratio is the median over
rounds, goal ≤ 1.05. Beside them stands how many pages of memory each pass was given anew by the system (minor page
faults): what a trace keeps the next layer cannot use again. With --keep-freed, glibc keeps freed memory for later
instead of handing it back, so that both passes find pages that have been touched. Peak memory is measured in a process of
its own for each case, and beside transformers'.

    python -m benchmarks.capture --lengths 128 512 --rounds 9 --no-memory
    python -m benchmarks.capture --no-memory --keep-freed
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

import core
from core.checkpoints import Loaded
from core.device import free_bytes

MiB = 1 << 20
LENGTHS = (128, 512, 1024, 2048, 4096)
N_LAYERS, N_HEADS, D_MODEL, VOCAB = 12, 12, 768, 50_257
CASES = ("plain", "traced", "transformers")
# glibc reads these as a process begins. Blocks up to 2 GiB then come from its heap, and 4 GiB at its end stay with it.
KEEP_FREED = {"MALLOC_MMAP_THRESHOLD_": str(2 << 30), "MALLOC_TRIM_THRESHOLD_": str(4 << 30)}

T = TypeVar("T")


def gpt2_small(n_ctx: int) -> Loaded:
    """GPT-2 small's shape with a longer position table."""
    return core.build(
        core.ModelConfig(
            vocab_size=VOCAB,
            d_model=D_MODEL,
            n_heads=N_HEADS,
            d_ff=4 * D_MODEL,
            n_decoder_layers=N_LAYERS,
            n_ctx=n_ctx,
            activation="gelu_tanh",
        )
    )


def ids_of(n: int) -> list[int]:
    return torch.randint(VOCAB, (n,), generator=torch.Generator().manual_seed(n)).tolist()


def plain_pass(loaded: Loaded, ids: Sequence[int]) -> Tensor:
    """The same pass that a trace runs, and nothing else."""
    with torch.inference_mode():
        return loaded.model.last_residual(torch.tensor([ids]))


class Cost(NamedTuple):
    """One pass: seconds by the clock on the wall, and of the processors, which other programs disturb far less; and the
    pages of memory that it touched for the first time, which the system has to find and clear."""

    wall: float
    cpu: float
    faults: int


def cost_of(work: Callable[[], object]) -> Cost:
    faults, wall, cpu = page_faults(), time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu, page_faults() - faults)


def page_faults() -> int:
    """The minor page faults of this process so far, all its threads together."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def compare(loaded: Loaded, n: int, rounds: int) -> tuple[list[Cost], list[Cost]]:
    """What the plain and the traced passes cost, one of each a round."""
    ids = ids_of(n)
    cases = {"plain": lambda: plain_pass(loaded, ids), "traced": lambda: core.trace(loaded, ids=ids)}
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for work in cases.values():
        work()
    for i in range(rounds):
        order = list(cases) if i % 2 else list(reversed(cases))  # neither is always the one with warm caches
        for name in order:
            costs[name].append(cost_of(cases[name]))
    return costs["plain"], costs["traced"]


def default_rounds(n: int) -> int:
    return max(5, min(41, 8192 // n))


def status_bytes(field: str) -> int:
    """A field of this process's memory on Linux: VmRSS, what it has now; VmHWM, the most it has had."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def peak_during(work: Callable[[], T]) -> tuple[T, int]:
    """What `work` returns, and the most memory it took on top of what the process had. Needs Linux."""
    gc.collect()
    before = status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak starts anew; getrusage cannot do that
    result = work()
    return result, status_bytes("VmHWM") - before


def transformers_model(n_ctx: int) -> Callable[[list[int]], tuple[Tensor, ...]]:
    """GPT2Model of the same shape: ids -> everything that its output holds, all attention maps included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoModel, GPT2Config

    config = GPT2Config(n_positions=n_ctx, n_embd=D_MODEL, n_layer=N_LAYERS, n_head=N_HEADS)
    model = AutoModel.from_config(config, attn_implementation="eager").eval()

    def run(ids: list[int]) -> tuple[Tensor, ...]:
        with torch.inference_mode():
            output = model(torch.tensor([ids]), output_attentions=True, use_cache=False)
        return (output.last_hidden_state, *output.attentions)

    return run


def child(case: str, n: int) -> None:
    """Run one case in this process and print the bytes that it holds and the bytes that it took."""
    ids = ids_of(n)
    if case == "transformers":
        run = transformers_model(max(LENGTHS))
        tensors, peak = peak_during(lambda: run(ids))
        held = sum(t.nbytes for t in tensors)
    else:
        loaded = gpt2_small(max(LENGTHS))
        if case == "plain":
            kept, peak = peak_during(lambda: plain_pass(loaded, ids))
            held = kept.nbytes
        else:
            trace, peak = peak_during(lambda: core.trace(loaded, ids=ids))
            held = trace.nbytes
    print(held, peak)


def expected_bytes(case: str, n: int) -> int:
    """About what a child will need, to leave it out where the machine has less."""
    weights = 4 * (12 * N_LAYERS * D_MODEL**2 + (VOCAB + max(LENGTHS)) * D_MODEL)
    maps = 4 * n * n * N_HEADS * (N_LAYERS + 3) if case == "transformers" else 0  # + the layer in the making
    return 2 * weights + maps + (1 << 29)


def run_child(case: str, n: int) -> tuple[int, int] | None:
    """(bytes held, most bytes taken) of one case; None, and a sentence, where it would not fit."""
    needed, free = expected_bytes(case, n), free_bytes(torch.device("cpu"))
    if needed > free:
        print(
            f"{case} at {n:,} tokens is left out: it needs about {needed / MiB:,.0f} MiB, "
            f"and {free / MiB:,.0f} MiB are free."
        )
        return None
    command = [sys.executable, "-m", "benchmarks.capture", "--child", case, "--lengths", str(n)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(output[-2]), int(output[-1])


def machine() -> str:
    """What the numbers depend on, without saying whose machine it is."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {pages / 2**30:.0f} GiB memory, "
        f"torch {torch.__version__} with {torch.get_num_threads()} threads, "
        f"Python {platform.python_version()}, {platform.system()}"
    )


def print_seconds(lengths: Sequence[int], rounds: int | None) -> None:
    loaded = gpt2_small(max(LENGTHS))
    print(
        "\n| tokens | rounds | plain, ms | traced, ms | traced ÷ plain | quartiles | of processor time "
        "| page faults, plain | traced |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for n in lengths:
        plain, traced = compare(loaded, n, rounds or default_rounds(n))
        pairs = list(zip(plain, traced, strict=True))
        low, ratio, high = statistics.quantiles([t.wall / p.wall for p, t in pairs], n=4, method="inclusive")
        cpu_ratio = statistics.median(t.cpu / p.cpu for p, t in pairs)
        plain_ms, traced_ms = (statistics.median(c.wall for c in costs) * 1e3 for costs in (plain, traced))
        plain_faults, traced_faults = (statistics.median(c.faults for c in costs) for costs in (plain, traced))
        print(
            f"| {n:,} | {len(pairs)} | {plain_ms:,.1f} | {traced_ms:,.1f} "
            f"| {ratio:.3f} | {low:.3f} to {high:.3f} | {cpu_ratio:.3f} | {plain_faults:,.0f} | {traced_faults:,.0f} |",
            flush=True,
        )
    print(
        "\nA page fault is a page of memory that the pass touched for the first time, which the system had to find and clear: "
        "where a traced pass has many more, that is the difference, and --keep-freed shows the ratio without most of them."
    )


def print_memory(lengths: Sequence[int]) -> None:
    print("\n| tokens | case | held, MiB | most taken during the pass, MiB |")
    print("|---|---|---|---|")
    for n in lengths:
        for case in CASES:
            if (result := run_child(case, n)) is not None:
                print(f"| {n:,} | {case} | {result[0] / MiB:,.1f} | {result[1] / MiB:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="tokens")
    parser.add_argument("--rounds", type=int, help="rounds at every length (default: fewer for longer ones)")
    parser.add_argument("--threads", type=int, help="torch's threads (default: torch's own choice)")
    parser.add_argument("--no-seconds", action="store_true", help="memory only")
    parser.add_argument("--no-memory", action="store_true", help="seconds only")
    parser.add_argument(
        "--keep-freed", action="store_true", help="start again with settings of glibc under which it keeps freed memory"
    )
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if max(options.lengths) > max(LENGTHS):
        parser.error(f"the model has positions for {max(LENGTHS):,} tokens")
    if options.keep_freed and any(os.environ.get(name) != value for name, value in KEEP_FREED.items()):
        os.environ |= KEEP_FREED
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.capture", *sys.argv[1:]])
    if options.child:
        return child(options.child, options.lengths[0])
    if options.threads:
        torch.set_num_threads(options.threads)
    print(machine() + (", freed memory kept" if options.keep_freed else ""))
    if not options.no_seconds:
        print_seconds(options.lengths, options.rounds)
    if not options.no_memory:
        print_memory(options.lengths)


if __name__ == "__main__":
    main()
