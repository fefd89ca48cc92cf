"""Two ways to look into a shared model from several threads, side by side: hooks in a context variable, or attached under a lock.

    python -m benchmarks.concurrency [--threads 4] [--traces 40]

Prints traces per second for both, alternating, in one run. The first is what core.model.hooks does.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from core import ModelConfig, build, hook_points, hooked
from core.model.transformer import Transformer

ONE_AT_A_TIME = threading.Lock()


def with_context(model: Transformer, ids: torch.Tensor) -> int:
    """Look at every point through the run's own context."""
    seen: list[torch.Size] = []
    points = [name for name in hook_points(model) if not name.endswith(("hook_rule", "hook_scores", "hook_pattern"))]
    with torch.inference_mode(), hooked(model, {name: lambda x: seen.append(x.shape) for name in points}):
        model.last_residual(ids)
    return len(seen)


def with_lock(model: Transformer, ids: torch.Tensor) -> int:
    """Attach a hook to every point of the shared model; only one run at a time may."""
    seen: list[torch.Size] = []
    with ONE_AT_A_TIME, torch.inference_mode():
        handles = [
            point.register_forward_hook(lambda _module, _args, x: seen.append(x.shape))
            for name, point in hook_points(model).items()
            if not name.endswith(("hook_rule", "hook_scores", "hook_pattern"))
        ]
        model.last_residual(ids)
        for handle in handles:
            handle.remove()
    return len(seen)


def rate(
    way: Callable[[Transformer, torch.Tensor], int],
    model: Transformer,
    texts: list[torch.Tensor],
    threads: int,
) -> float:
    """Traces per second when `threads` visitors share the texts."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        counts = set(pool.map(lambda ids: way(model, ids), texts))
    assert len(counts) == 1, f"traces mixed: {counts}"
    return len(texts) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--traces", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = ModelConfig(vocab_size=30522, d_model=384, n_heads=12, d_ff=1536, n_encoder_layers=6, head="none")
    model = build(config).model
    texts = [torch.randint(0, 30522, (1, 16 + i % 8)) for i in range(options.traces)]
    for way in (with_context, with_lock):
        way(model, texts[0])
    context, lock = [], []
    for _ in range(options.rounds):
        context.append(rate(with_context, model, texts, options.threads))
        lock.append(rate(with_lock, model, texts, options.threads))
    ratio = statistics.median(c / b for c, b in zip(context, lock, strict=True))
    print(f"{options.threads} threads, MiniLM's shape, 16 to 23 tokens, medians of {options.rounds} rounds")
    print(f"context variable {statistics.median(context):6.1f} traces/s")
    print(f"attach and lock  {statistics.median(lock):6.1f} traces/s    context ÷ lock {ratio:.2f}")


if __name__ == "__main__":
    main()
