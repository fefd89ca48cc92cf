"""What looking costs: a tile of one head, and thumbnails of all, from the queries and keys of a long text.

python -m benchmarks.tiles --lengths 2048 32768
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from benchmarks.capture import MiB, machine
from core.model.rules import MaskRule, ScoreRule
from core.run.attention import AttentionRecord

LENGTHS = (512, 2048, 8192, 32_768)
N_HEADS, D_HEAD = 12, 64
TILE, THUMBNAIL = 512, 64


def record_of(n: int) -> AttentionRecord:
    """One causal layer of GPT-2 small's shape over random queries and keys."""
    generator = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(1, N_HEADS, n, D_HEAD, generator=generator) for _ in range(3))
    rule = ScoreRule(MaskRule(N_HEADS, n, n, causal=True), scale=D_HEAD**-0.5)
    return AttentionRecord("decoder.blocks.0.attn", "decoder", 0, "attn", q, k, lambda: v, rule)


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """The median over rounds, after one that does not count."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tiles", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="tokens")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(machine())
    print(
        f"\n| tokens | q and k held, MiB | one map, MiB "
        f"| first {TILE}×{TILE} tile, ms | middle, ms | last, ms "
        f"| {THUMBNAIL}×{THUMBNAIL} thumbnails of {N_HEADS} heads, ms | of them exact |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n in options.lengths:
        record = record_of(n)
        times = []
        for start in (0, (n - TILE) // 2, n - TILE):
            window = slice(start, start + TILE)
            times.append(milliseconds(lambda w=window, r=record: r.pattern(0, w, w), options.rounds))
        thumbnails = milliseconds(lambda r=record: r.thumbnail(THUMBNAIL), max(3, options.rounds // 3))
        exact = record.thumbnail(THUMBNAIL, heads=0).exact
        print(
            f"| {n:,} | {record.nbytes / MiB:,.1f} | {n * n * 4 / MiB:,.0f} "
            f"| {times[0]:,.1f} | {times[1]:,.1f} | {times[2]:,.1f} | {thumbnails:,.1f} "
            f"| {'yes' if exact else 'sampled rows'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
