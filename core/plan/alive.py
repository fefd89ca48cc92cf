"""Peak of live bytes, counted in a pass of the real model on meta or fake tensors.

A closed form adds the peaks of all parts, although gradients grow while activations are freed; a trace counts that. Its time is
proportional to the depth of the model, so it is used for a few sizes, and closed forms for thousands.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from ..model.transformer import Transformer, to_dtype
from .live_bytes import LiveBytes
from .plan import memory_plan
from .ways import Ran, attending, foretell, ran
from .workload import Workload

_ONE_AT_A_TIME = threading.Lock()  # the model without data is reused from one size to the next


def check_alive(config: ModelConfig, work: Workload) -> None:
    """Raises ConfigError for options that a trace does not support: recomputation, dropout, chunked prefill, eager biases and windows."""
    if work.training and (work.recompute != "none" or work.dropout):
        raise ConfigError("bytes alive at once are counted without recompute and without dropout")
    if work.attention == "eager" and ran(config, work) != "eager":
        raise ConfigError(
            "bytes alive at once are counted for eager attention without a window or a bias: take spelled_out or flash"
        )
    if work.rank:
        raise ConfigError(
            f"bytes alive at once are counted where all weights are trained: leave rank ({work.rank}) at 0"
        )
    if work.piece:
        raise ConfigError(
            f"bytes alive at once are counted for a prompt that is read at once: leave piece ({work.piece}) at 0"
        )


def alive_bytes(config: ModelConfig, work: Workload) -> int:
    """Peak of live bytes in a run, or in a training step with its optimizer's state.

    A training step starts with the gradients of the previous one and adds to them, as in core.plan.measured. The result is at most
    memory_plan's total, which bounds the temporary buffers. Fused attention is the CPU's kernel. Raises ConfigError as check_alive
    and Workload.check do.
    """
    work.check(config)
    check_alive(config, work)
    plan = memory_plan(config, work)
    # With a window or another cache format, the cache is not the keys and values of the pass, and is counted separately.
    keep = (
        not work.training
        and config.window is None
        and dtype_name(work.kv_dtype or work.dtype) == dtype_name(work.dtype)
    )
    with _ONE_AT_A_TIME:
        weights, peak = _traced(config, work, keep)
    if work.training:
        return plan.masters + plan.optimizer + peak
    return plan.weights + (0 if keep else plan.kv_cache) + peak - weights


def _traced(config: ModelConfig, work: Workload, keep: bool) -> tuple[int, int]:
    """Bytes of the weights, and peak bytes of all tensors. The peak includes the cache if `keep` is True."""
    way = ran(config, work)
    model, mode = _model_without_data(config, dtype_name(work.dtype), way)
    with ExitStack() as contexts:
        contexts.enter_context(_tensors(mode))
        contexts.enter_context(torch.enable_grad() if work.training else torch.no_grad())
        live = contexts.enter_context(LiveBytes())
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
        if work.training:
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
                live.track(parameter.grad)
        ids = torch.zeros(work.batch, work.source_len, dtype=torch.long)
        target = torch.zeros(work.batch, work.target_len, dtype=torch.long) if work.target_len else None
        with attending(model, way, keep=keep):
            out = foretell(model, ids, target, last=work.logit_positions(config) == 1)
        if work.training:
            wanted = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long)
            loss = F.cross_entropy(out.flatten(0, 1), wanted)
            del out
            loss.backward()
            model.zero_grad(set_to_none=True)
        return weights, live.peak


@lru_cache(maxsize=2)
def _model_without_data(config: ModelConfig, dtype: str, way: Ran) -> tuple[Transformer, FakeTensorMode | None]:
    """A model that takes no memory: on the meta device, or on fake tensors for the fused kernel, which differs on meta."""
    mode = FakeTensorMode() if way == "flash" else None
    with _tensors(mode):
        return to_dtype(Transformer(config), getattr(torch, dtype)).eval(), mode


@contextmanager
def _tensors(mode: FakeTensorMode | None) -> Iterator[None]:
    with mode if mode is not None else torch.device("meta"), nullcontext():
        yield
