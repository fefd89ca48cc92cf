"""What a trace costs beside the same pass without one, to 131,072 tokens."""

from __future__ import annotations

import statistics

import torch

import core
from core.checkpoints import Loaded
from core.device import dtype_name
from core.errors import TooLarge

from .clock import in_turns
from .report import Report

LENGTHS, SHORT = (1_024, 4_096, 16_384, 32_768, 65_536, 131_072), (128,)
GOAL = 1.05  # traced ÷ plain


def gpt2_shape(device: torch.device, dtype: torch.dtype, layers: int = 12) -> Loaded:
    """GPT-2 small's shape with rotary positions, which have no table that ends."""
    config = core.ModelConfig(
        vocab_size=50_257,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_decoder_layers=layers,
        position="rotary",
        activation="gelu_tanh",
    )
    return core.build(config, device=device, dtype=dtype)


def measure(report: Report) -> None:
    device = report.device
    dtype = torch.float32 if report.short else torch.bfloat16
    loaded = gpt2_shape(device, dtype, layers=2 if report.short else 12)
    if report.short:
        report.leave_out(
            f"the price of a trace at {', '.join(f'{n:,}' for n in LENGTHS)} tokens in 12 layers", "it needs a card"
        )
    for n in SHORT if report.short else LENGTHS:
        if not report.has_time(f"the price of a trace at {n:,} tokens"):
            continue
        ids = torch.randint(50_257, (n,), generator=torch.Generator().manual_seed(n)).tolist()
        given = torch.tensor([ids], device=device)

        def plain(given: torch.Tensor = given) -> None:
            with torch.inference_mode():
                loaded.model.last_residual(given)

        def traced(ids: list[int] = ids) -> None:
            core.trace(loaded, ids=ids)

        try:
            times = in_turns({"plain": plain, "traced": traced}, device, rounds=max(5, min(15, 100_000 // n)))
        except TooLarge as error:
            report.leave_out(f"the price of a trace at {n:,} tokens", str(error))
            continue
        ratio = statistics.median(t / p for p, t in zip(times["plain"], times["traced"], strict=True))
        ms = {name: statistics.median(all_) * 1e3 for name, all_ in times.items()}
        report.add(
            "What a trace costs",
            {
                "tokens": n,
                "format": dtype_name(dtype),
                "plain, ms": ms["plain"],
                "traced, ms": ms["traced"],
                "traced ÷ plain": ratio,
            },
            ok=report.short or ratio <= GOAL,
        )
