"""Tokens a second, beside transformers' on the same weights."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import torch

import core
from core.checkpoints import Loaded
from core.device import dtype_name
from core.write.generate import generate

from .capture import gpt2_shape
from .clock import in_turns
from .report import Report

VOCAB, PROMPT = 50_257, 64


def both(report: Report, dtype: torch.dtype) -> tuple[Loaded, Any]:
    """The same random weights as our model and as transformers'; None for theirs where it is not installed."""
    try:
        import transformers as hf
    except ImportError:
        report.leave_out("tokens beside transformers", "it is not installed; it is in requirements-dev.txt")
        return gpt2_shape(report.device, dtype, layers=2 if report.short else 12), None
    torch.manual_seed(0)
    layers, width = (2, 256) if report.short else (12, 768)
    config = hf.GPT2Config(n_layer=layers, n_head=width // 64, n_embd=width, vocab_size=VOCAB)
    theirs: Any = hf.GPT2LMHeadModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = core.load(folder, device=report.device, dtype=dtype)
    return ours, theirs.to(report.device, dtype)


def measure(report: Report) -> None:
    tokens, rounds = (8, 3) if report.short else (128, 7)
    if report.short:
        report.leave_out("tokens a second of 12 layers in bfloat16 and float16", "it needs a card")
    for dtype in (torch.float32,) if report.short else (torch.float32, torch.bfloat16, torch.float16):
        if not report.has_time(f"tokens a second in {dtype}"):
            continue
        ours, theirs = both(report, dtype)
        prompt = torch.randint(VOCAB, (1, PROMPT), generator=torch.Generator().manual_seed(1)).to(report.device)
        ids: list[int] = prompt[0].tolist()

        def ourselves(loaded: Loaded = ours, ids: list[int] = ids) -> None:
            generate(loaded, ids=ids, max_tokens=tokens, stop=())

        def transformers(model: Any = theirs, prompt: torch.Tensor = prompt) -> None:
            options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
            model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, **options)

        ways: dict[str, Callable[[], object]] = {"ours": ourselves}
        if theirs is not None:
            ways["theirs"] = transformers
        times = in_turns(ways, report.device, rounds)
        row: dict[str, Any] = {
            "layers × width": f"{ours.config.n_decoder_layers} × {ours.config.d_model}",
            "format": dtype_name(dtype),
            "prompt": PROMPT,
            "tokens": tokens,
            "Headlight, tokens/s": tokens / statistics.median(times["ours"]),
        }
        if theirs is not None:
            row["transformers, tokens/s"] = tokens / statistics.median(times["theirs"])
            row["transformers ÷ Headlight, time"] = statistics.median(
                t / o for t, o in zip(times["theirs"], times["ours"], strict=True)
            )
        report.add("What writing costs", row)
