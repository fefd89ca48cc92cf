"""Our logits in each number format against transformers' in float32, and our eager attention against the fused one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import core
from core.checkpoints import Loaded, load
from core.device import dtype_name
from core.model.hooks import hook_points, hooked

from .report import Report

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SOME = ("gpt2", "bert", "llama gqa", "gemma2", "t5 v1.1")  # of the short form
SMALL: dict[str, Any] = {"vocab_size": 53, "d_model": 40, "n_heads": 4, "n_kv_heads": 2, "d_ff": 41, "n_ctx": 37}
# Of the largest logit. Formats of 16 bits lose as much in transformers' own pass, so there the bound is a multiple of that loss.
WITHIN = 2e-5
TIMES, STEPS = 2.0, 4.0  # at most so many times transformers' own loss, and so many rounding steps of the format


@dataclass(frozen=True)
class Error:
    """Largest differences of logits, as shares of the largest logit."""

    ours: float  # from transformers in float32
    theirs: float  # transformers in this format from itself in float32
    eager: float  # our attention in steps from our fused one

    def within(self, dtype: torch.dtype) -> bool:
        if dtype == torch.float32:
            return max(self.ours, self.eager) <= WITHIN
        allowed = TIMES * self.theirs + STEPS * torch.finfo(dtype).eps
        return self.ours <= allowed and self.eager <= allowed


def share(a: Tensor, b: Tensor) -> float:
    """The largest difference of two, as a share of the largest number of the second."""
    return ((a.float().cpu() - b.float().cpu()).abs().max() / b.float().abs().max().cpu()).item()


def logits(loaded: Loaded, source: Tensor, target: Tensor | None, *, eager: bool = False) -> Tensor:
    """[pos, vocab]; with `eager` in steps, because something looks at every map."""
    watched = {name: lambda _: None for name in hook_points(loaded.model) if eager and name.endswith("hook_pattern")}
    ids = source.to(loaded.device)
    with torch.inference_mode(), hooked(loaded.model, watched):
        return loaded.model(ids, None if target is None else target.to(loaded.device))[0]


def error_of(name: str, device: torch.device, dtype: torch.dtype) -> Error:
    """The errors of one published model of tests/core/published.py. Needs transformers."""
    from tests.core.published import reference

    found = reference(name)
    run = found.runs[0]
    loaded = load(found.folder, device=device, dtype=dtype)
    fused = logits(loaded, run.source, run.target)
    theirs: Any = type(found.model).from_pretrained(found.folder, attn_implementation="eager", dtype=dtype)
    theirs = theirs.to(device).eval()
    given = {} if run.target is None else {"decoder_input_ids": run.target.to(device)}
    with torch.no_grad():
        out = theirs(run.source.to(device), **given)
    half = (out.logits if "logits" in out else out.last_hidden_state)[0]
    eager = logits(loaded, run.source, run.target, eager=True)
    return Error(share(fused, run.out), share(half, run.out), share(eager, fused))


def names() -> list[str]:
    """The published models, or none where transformers is not installed."""
    try:
        from transformers.utils import logging
    except ImportError:
        return []
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    from tests.core.published import PUBLISHED

    return list(PUBLISHED)


def small(**config: Any) -> core.ModelConfig:
    return core.ModelConfig(**(SMALL | config))


def built(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[str, Loaded]]:
    """Fresh models of each kind, for a machine without transformers."""
    for position in ("learned", "rotary", "alibi", "relative"):
        for encoder, decoder in ((2, 0), (0, 2), (2, 2)):
            config = small(position=position, n_encoder_layers=encoder, n_decoder_layers=decoder)
            yield f"{config.kind}, {position}", core.build(config, device=device, dtype=dtype)


def measure(report: Report) -> None:
    everything = names()
    if not everything:
        why = "transformers is not installed; it is in requirements-dev.txt"
        report.leave_out("parity with published implementations", why)
        return measure_alone(report)
    chosen = [name for name in everything if name in SOME] if report.short else everything
    if report.short:
        report.leave_out(f"parity of {len(everything) - len(chosen)} of {len(everything)} models", "it needs a card")
    for dtype in DTYPES:
        for name in chosen:
            if not report.has_time(f"parity of {name} in {dtype}"):
                continue
            error = error_of(name, report.device, dtype)
            row = {
                "model": name,
                "format": dtype_name(dtype),
                "from transformers in float32": error.ours,
                "transformers in this format": error.theirs,
                "eager from fused": error.eager,
            }
            report.add(
                "Parity: largest differences of logits, as shares of the largest logit", row, ok=error.within(dtype)
            )


def measure_alone(report: Report) -> None:
    """Eager against fused attention, which needs nobody else."""
    for dtype in DTYPES:
        for name, loaded in built(report.device, dtype):
            source = torch.arange(13)[None] % 53
            target = source[:, :7] if loaded.config.kind == "encoder-decoder" else None
            fused, eager = (logits(loaded, source, target, eager=way) for way in (False, True))
            found = share(eager, fused)
            allowed = WITHIN if dtype == torch.float32 else STEPS * torch.finfo(dtype).eps
            row = {"model": name, "format": dtype_name(dtype), "eager from fused": found}
            report.add("Eager against fused attention, as shares of the largest logit", row, ok=found <= allowed)
