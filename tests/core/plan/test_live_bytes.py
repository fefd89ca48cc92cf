"""LiveBytes against the CPU allocator's own record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from core.model.config import ModelConfig
from core.model.transformer import Transformer
from core.plan.tracing import LiveBytes

SHAPE = {"vocab_size": 97, "d_model": 64, "n_heads": 4, "d_ff": 128, "n_ctx": 300}


def allocator_peak(work: Callable[[], object]) -> int:
    """The highest the running sum of allocations and frees rises above where it began."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    events: Any = record.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = [event for event in events if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        {"n_encoder_layers": 2, "head": "none"},
        {"n_decoder_layers": 2, "n_kv_heads": 2, "position": "rotary", "norm": "rms", "gated": True},
        {"n_encoder_layers": 1, "n_decoder_layers": 2, "position": "relative", "max_relative_distance": 64},
    ],
)
def test_peak_is_the_allocators(shape: dict[str, object], training: bool) -> None:
    model = Transformer(ModelConfig(**(SHAPE | shape)))  # type: ignore[arg-type]
    ids = torch.zeros(2, 200, dtype=torch.long)
    target = torch.zeros(2, 50, dtype=torch.long) if model.config.kind == "encoder-decoder" else None

    def work() -> None:
        with torch.set_grad_enabled(training):
            out = model(ids, target)
            if training:
                out.sum().backward()
        model.zero_grad(set_to_none=True)

    work()  # once unrecorded, so that nothing is built on the way
    expected = allocator_peak(work)
    with LiveBytes() as live:
        live.track(ids, *model.parameters())
        before = live.live
        work()
    # a kernel's scratch space is the allocator's alone: the fused one takes some for each thread
    assert live.peak - before <= expected <= (live.peak - before) * 1.02 + (1 << 20)


def test_a_view_costs_nothing_and_a_free_is_seen() -> None:
    with LiveBytes() as live:
        x = torch.empty(1000)
        y = x.view(10, 100)
        assert live.live == 4000
        z = y + 1
        assert live.live == 8000
        del z
        assert live.live == 4000
        del x
        assert live.live == 4000
        del y
        assert (live.live, live.peak) == (0, 8000)
