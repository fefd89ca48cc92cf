"""What looking costs: a tile of one head from the queries and keys of 100,000 tokens."""

from __future__ import annotations

import torch

from core.device import dtype_name
from core.model.rules import MaskRule, ScoreRule
from core.run.attention import AttentionRecord

from .clock import median_ms
from .report import Report

TOKENS, SHORT = 100_000, 8_192
HEADS, D_HEAD, SIDE = 12, 64, 512
GOAL = 50  # ms for any tile


def record_of(n: int, device: torch.device, dtype: torch.dtype = torch.float32, heads: int = HEADS) -> AttentionRecord:
    """One causal layer over random queries and keys."""
    generator = torch.Generator().manual_seed(n)
    q, k, v = (torch.randn(1, heads, n, D_HEAD, generator=generator).to(device, dtype) for _ in range(3))
    rule = ScoreRule(MaskRule(heads, n, n, causal=True), scale=D_HEAD**-0.5)
    return AttentionRecord("decoder.blocks.0.attn", "decoder", 0, "attn", q, k, lambda: v, rule)


def measure(report: Report) -> None:
    n = SHORT if report.short else TOKENS
    if report.short:
        report.leave_out(f"tiles of {TOKENS:,} tokens", "they need a card")
    for dtype in (torch.float32,) if report.short else (torch.float32, torch.bfloat16):
        record = record_of(n, report.device, dtype)
        for where, start in (("first", 0), ("middle", (n - SIDE) // 2), ("last", n - SIDE)):
            if not report.has_time(f"the {where} tile"):
                continue
            window = slice(start, start + SIDE)
            ms = median_ms(lambda w=window, r=record: r.pattern(0, w, w), report.device, rounds=9)
            row = {"tokens": n, "format": dtype_name(dtype), f"{SIDE} × {SIDE} tile": where, "ms": ms}
            report.add("What looking costs", row, ok=report.short or ms <= GOAL)
