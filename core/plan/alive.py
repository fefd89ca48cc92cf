"""Bytes that are alive at once, counted in a pass of the real model on nothing: what an upper bound leaves room for.

A closed form takes the widest moment of each part as if they came together; a trace sees that gradients grow while activations go.
It takes as long as the model is deep, so that it is asked for a few sizes, where a closed form is asked for thousands.
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

_ONE_AT_A_TIME = threading.Lock()  # a model on nothing is kept from one size to the next


def check_alive(config: ModelConfig, work: Workload) -> None:
    """Raises ConfigError for what a trace does not do: recomputing, dropping, reading in pieces, a textbook's biases and windows."""
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
    """The most bytes that are alive at once in a run, or in a step of training with its optimizer's state.

    A step finds the gradients of the one before in place and adds to them, as core.plan.measured trains. Never more than memory_plan's total, which takes the same parts but for the temporary ones. With fused attention it is the
    processor's kernel that is traced. Raises ConfigError as check_alive and Workload.check do.
    """
    work.check(config)
    check_alive(config, work)
    plan = memory_plan(config, work)
    # A window keeps less, and another format other numbers, than the keys and values that the pass makes: then they come on top.
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
    """Bytes of the weights, and of all tensors at the widest moment, the cache among them where it is to be kept."""
    way = ran(config, work)
    model, mode = _on_nothing(config, dtype_name(work.dtype), way)
    with ExitStack() as contexts:
        contexts.enter_context(_tensors(mode))
        contexts.enter_context(torch.enable_grad() if work.training else torch.no_grad())
        live = contexts.enter_context(LiveBytes())
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
        if work.training:
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            live.track(*(parameter.grad for parameter in model.parameters()))
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
def _on_nothing(config: ModelConfig, dtype: str, way: Ran) -> tuple[Transformer, FakeTensorMode | None]:
    """A model that takes no memory. The fused kernel of the meta device goes another way than the real one: then fake tensors."""
    mode = FakeTensorMode() if way == "flash" else None
    with _tensors(mode):
        return to_dtype(Transformer(config), getattr(torch, dtype)).eval(), mode


@contextmanager
def _tensors(mode: FakeTensorMode | None) -> Iterator[None]:
    with mode if mode is not None else torch.device("meta"), nullcontext():
        yield
