"""The planner's predictions beside what was taken: inference, training and traces, by number format and kind of attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

import core
from core.device import dtype_name
from core.model.config import ModelConfig
from core.model.hooks import hook_points, hooked
from core.model.transformer import Transformer
from core.plan import memory_plan, run_bytes
from core.run.recorder import HELD_BYTES

from .clock import peak_bytes
from .report import Report

Attention = Literal["eager", "efficient", "flash"]
Work = Literal["inference", "training", "trace"]
MiB = 1 << 20
ABOVE = 1.02  # measured may be so much more than predicted: a kernel's scratch space is its own


@dataclass(frozen=True)
class Case:
    """One thing to be measured: `attention` is how inference and training do it; a trace has its own way."""

    work: Work
    dtype: torch.dtype
    attention: Attention

    @property
    def name(self) -> str:
        return dtype_name(self.dtype)


def cases(device: torch.device) -> tuple[list[Case], list[str]]:
    """What can be measured on a device, and in words what cannot."""
    found, missing = [], []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for attention in ("eager", "efficient", "flash"):
            if device.type != "cuda" and attention == "efficient":
                missing.append(f"{attention} attention in {dtype}: a processor has one fused kernel, flash")
                continue
            if device.type == "cuda" and attention == "flash" and dtype == torch.float32:
                missing.append("flash attention in float32: a card's kernel takes 16-bit numbers alone")
                continue
            found += [Case("inference", dtype, attention), Case("training", dtype, attention)]
        found.append(Case("trace", dtype, "flash"))
    return found, missing


def config(short: bool) -> ModelConfig:
    width, layers = (128, 2) if short else (1024, 8)
    return ModelConfig(
        vocab_size=8_000, d_model=width, n_heads=8, d_ff=4 * width, n_decoder_layers=layers, position="rotary"
    )


@contextmanager
def way(attention: Attention, device: torch.device) -> Iterator[None]:
    """Attention done this way. On a card torch is told which kernel to take."""
    with ExitStack() as stack:
        if attention == "eager":
            stack.enter_context(Textbook())
        elif device.type == "cuda":
            backend = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[attention]
            stack.enter_context(sdpa_kernel(backend))
        yield


class Textbook(TorchFunctionMode):
    """softmax(mask(q kᵀ · scale)) v instead of the fused kernel (Vaswani et al. 2017, equation 1)."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return textbook(*args, **(kwargs or {}))


def textbook(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
    """What F.scaled_dot_product_attention gives for queries, keys and values of as many heads, by way of the whole map."""
    scores = q @ k.mT
    scores = scores * options["scale"]
    hidden = None if attn_mask is None else ~attn_mask
    if options.get("is_causal"):
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    del scores
    return weights @ v


def predicted(case: Case, shape: ModelConfig, n: int) -> int:
    """Bytes at the peak, weights included."""
    if case.work == "trace":
        return run_bytes(shape, source_len=n, dtype=case.dtype, keep_values=held(case, shape, n)).total
    options: dict[str, Any] = {"training": case.work == "training", "attention": case.attention, "logits": "all"}
    return memory_plan(shape, source_len=n, dtype=case.dtype, **options).total


def held(case: Case, shape: ModelConfig, n: int) -> bool:
    """Whether a trace of this length keeps its values and its last residual, as core.trace decides it."""
    last = n * shape.d_model * case.dtype.itemsize
    return run_bytes(shape, source_len=n, dtype=case.dtype).values + last <= HELD_BYTES


def measured(case: Case, shape: ModelConfig, n: int, device: torch.device) -> int:
    """The same, as it was taken."""
    loaded = core.build(shape, device=device, dtype=case.dtype)
    model = loaded.model.requires_grad_(case.work == "training")
    ids = torch.zeros(1, n, dtype=torch.long, device=device)

    def work() -> None:
        with way(case.attention, device):
            infer(model, ids) if case.work == "inference" else train(model, ids)
        model.zero_grad(set_to_none=True)

    def trace() -> None:
        core.trace(loaded, ids=[0] * n)

    given = [*model.parameters(), *model.buffers(), *([] if case.work == "trace" else [ids])]
    return peak_bytes(trace if case.work == "trace" else work, device, given)


def infer(model: Transformer, ids: Tensor) -> None:
    """All logits, with the keys and values held as a cache holds them."""
    held: list[Tensor] = []
    keep = {name: held.append for name in hook_points(model) if name.endswith(("hook_k", "hook_v"))}
    with torch.no_grad(), hooked(model, keep):
        model(ids)


def train(model: Transformer, ids: Tensor) -> None:
    """Two steps of AdamW, so that the second has the optimizer's state beside it. 16-bit weights have float32 masters."""
    small = model.head is not None and next(model.parameters()).dtype != torch.float32
    masters = [nn.Parameter(p.detach().float()) for p in model.parameters()] if small else list(model.parameters())
    states = [(torch.zeros_like(m), torch.zeros_like(m)) for m in masters]
    for step in (1, 2):
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), ids.flatten())
        del logits
        loss.backward()
        with torch.no_grad():
            for parameter, master, (mean, square) in zip(model.parameters(), masters, states, strict=True):
                if parameter.grad is not None:
                    adamw(parameter, master, mean, square, step)


def adamw(parameter: Tensor, master: Tensor, mean: Tensor, square: Tensor, step: int) -> None:
    """One parameter's update by row, so that nothing as large as it is made on the way (Loshchilov & Hutter 2019)."""
    assert parameter.grad is not None
    rows = zip(parameter, parameter.grad, master, mean, square, strict=True) if parameter.dim() > 1 else None
    for p, g, m, a, b in rows or [(parameter, parameter.grad, master, mean, square)]:
        grad = g.float()
        a.lerp_(grad, 0.1)
        b.lerp_(grad * grad, 0.05)
        m.sub_(1e-4 * (a / (1 - 0.9**step)) / ((b / (1 - 0.95**step)).sqrt() + 1e-8) + 1e-6 * m)
        p.copy_(m)


def measure(report: Report) -> None:
    shape, n = config(report.short), 256 if report.short else 4_096
    found, missing = cases(report.device)
    for what in missing:
        report.leave_out(*what.split(": ", 1))
    for case in found:
        what = f"memory of {case.work} in {case.name}, {case.attention}"
        if not report.has_time(what):
            continue
        said, was = predicted(case, shape, n), measured(case, shape, n, report.device)
        report.add(
            "Memory predicted beside memory taken",
            {
                "work": case.work,
                "format": case.name,
                "attention": "ours" if case.work == "trace" else case.attention,
                "tokens": n,
                "predicted, MiB": said / MiB,
                "taken, MiB": was / MiB,
                "predicted ÷ taken": said / was,
            },
            ok=was <= ABOVE * said,
        )
