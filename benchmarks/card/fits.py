"""Whether a model of today fits: peaks of a whole program on a card beside what the planner says, and what lies around them.

A program takes more of a card than its tensors: the allocator rounds them up and keeps what was freed, and the driver has a part of
its own. So each row has four numbers of one set-up: bytes of tensors as they were asked for, as the allocator handed them out, as it
reserved them, and what the whole card had less of while it ran.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F

import core
from core.checkpoints import Loaded
from core.device import dtype_name
from core.errors import TooLarge
from core.model.cache import Cache
from core.model.config import ModelConfig
from core.model.transformer import Transformer, to_dtype
from core.plan import PRESETS, memory_plan, run_bytes
from core.write.generate import generate

from .clock import peak_bytes, requested, wait
from .memory import ABOVE, Case, MiB, held, way
from .report import Report

Work = Literal["reading", "writing", "trace", "training"]
WRITTEN = 8  # tokens
STEPS = 3  # of a training
TABLE = "Whether it fits: peaks beside what was predicted, MiB"


@dataclass(frozen=True)
class SetUp:
    """`fused`: whether the optimizer updates every weight in one kernel, or with lists of temporary tensors as torch does unasked."""

    work: Work
    model: str
    config: ModelConfig
    dtype: torch.dtype
    n: int
    batch: int = 1
    fused: bool = True

    @property
    def what(self) -> str:
        return f"{self.work}{'' if self.fused else ', AdamW unfused'}"


def set_ups(short: bool) -> Iterator[SetUp]:
    if short:
        tiny = core.ModelConfig(
            vocab_size=500, d_model=64, n_heads=4, n_kv_heads=2, d_ff=128, n_decoder_layers=2, position="rotary"
        )
        for work in ("reading", "writing", "trace", "training"):
            yield SetUp(work, "tiny", tiny, torch.float32, 64)
        return
    llama, gpt2 = PRESETS["llama-3-8b"].config, PRESETS["gpt2"].config
    for n, batch in ((1_024, 1), (1_024, 8), (8_192, 1), (4_096, 8), (32_768, 1)):
        yield SetUp("reading", "Llama 3 8B", llama, torch.bfloat16, n, batch)
    for n, batch in ((8_192, 1), (4_096, 8)):
        yield SetUp("writing", "Llama 3 8B", llama, torch.bfloat16, n, batch)
    for n in (4_096, 32_768):
        yield SetUp("trace", "Llama 3 8B", llama, torch.bfloat16, n)
    for n, batch, fused in ((1_024, 4, True), (1_024, 4, False), (512, 16, True)):
        yield SetUp("training", "GPT-2 small", gpt2, torch.float32, n, batch, fused)


def random_model(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Loaded:
    """A model whose weights are drawn where they stay: a large one is never in the machine's memory."""
    with torch.device("meta"):
        model = to_dtype(Transformer(config), dtype)
    model = model.to_empty(device=device)
    model.tie()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.fill_(1) if tensor.dim() == 1 else tensor.normal_(std=0.02)
    loaded = core.build(replace(config, vocab_size=8, d_model=8, n_heads=1, n_kv_heads=1, d_head=8, d_ff=8))
    model = model.eval().requires_grad_(False)
    return replace(loaded, config=config, model=model, device=device, dtype=dtype)


def predicted(case: SetUp) -> int:
    if case.work == "trace":
        keep = held(Case("trace", case.dtype, "flash"), case.config, case.n)
        return run_bytes(case.config, source_len=case.n, dtype=case.dtype, keep_values=keep).total
    options: dict[str, Any] = {"batch": case.batch, "dtype": case.dtype}
    if case.work == "training":
        return memory_plan(case.config, source_len=case.n, training=True, attention="efficient", **options).total
    return memory_plan(case.config, source_len=case.n + (WRITTEN if case.work == "writing" else 0), **options).total


def work_of(case: SetUp, loaded: Loaded) -> Callable[[], object]:
    """A prompt read into a cache, tokens written after it, a trace, or steps of a training."""
    model, device = loaded.model, loaded.device
    ids = torch.zeros(case.batch, case.n, dtype=torch.long, device=device)

    def read() -> None:
        assert model.decoder is not None and model.head is not None
        with torch.inference_mode():
            last = model.decoder(ids, cache=Cache(case.config))[:, -1:]
            model.head(last).float().softmax(-1)

    def write() -> None:
        rows = ids.tolist()
        generate(loaded, ids=rows if case.batch > 1 else rows[0], max_tokens=WRITTEN, stop=())

    def train() -> None:
        model.requires_grad_(True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=case.fused)
        with way("efficient" if device.type == "cuda" else "flash", device):
            for _ in range(STEPS):
                logits = model(ids)
                loss = F.cross_entropy(logits.flatten(0, 1), ids.flatten())
                del logits
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

    def trace() -> None:
        core.trace(loaded, ids=[0] * case.n)

    return {"reading": read, "writing": write, "trace": trace, "training": train}[case.work]


def measured(case: SetUp, device: torch.device) -> dict[str, int]:
    """The peaks of a program that does this and nothing else: a card's, or the bytes of tensors where there is none."""
    loaded = random_model(case.config, device, case.dtype)
    work = work_of(case, loaded)
    if device.type != "cuda":
        return {"tensors": peak_bytes(work, device, [*loaded.model.parameters(), *loaded.model.buffers()])}
    wait(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    work()
    wait(device)
    free, whole = torch.cuda.mem_get_info(device)
    driver = (
        whole - free - torch.cuda.memory_reserved(device)
    )  # the context, and what libraries take past the allocator
    reserved = torch.cuda.max_memory_reserved(device)
    return {
        "tensors": requested(device, "peak"),
        "allocated": torch.cuda.max_memory_allocated(device),
        "reserved": reserved,
        "with the driver": reserved + driver,
    }


def measure(report: Report) -> None:
    if report.short:
        report.leave_out("whether models of billions of weights fit", "it needs a card")
    for case in set_ups(report.short):
        what = f"whether {case.what} fits: {case.model}, {case.batch} × {case.n:,} tokens"
        if not report.has_time(what):
            continue
        said = predicted(case)
        try:
            peaks = measured(case, report.device)
        except TooLarge as error:
            report.leave_out(what, str(error))
            continue
        finally:
            gc.collect()
            if report.device.type == "cuda":
                torch.cuda.empty_cache()
        row: dict[str, Any] = {
            "work": case.what,
            "model": case.model,
            "format": dtype_name(case.dtype),
            "texts × tokens": f"{case.batch} × {case.n:,}",
            "predicted": said / MiB,
            **{name: n_bytes / MiB for name, n_bytes in peaks.items()},
            "tensors ÷ predicted": peaks["tensors"] / said,
        }
        if "reserved" in peaks:
            row["reserved ÷ predicted"] = peaks["reserved"] / said
        report.add(TABLE, row, ok=peaks["tensors"] <= ABOVE * said)
