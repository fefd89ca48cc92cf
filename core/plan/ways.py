"""Implementations of attention with which a model is run to count its bytes: the CPU's fused kernel, the textbook's, or in steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..model.config import ModelConfig
from ..model.fused import FusedCall
from ..model.hooks import hook_points, hooked
from ..model.transformer import Transformer
from .workload import Workload

Ran = Literal["eager", "spelled_out", "flash"]


def ran(config: ModelConfig, workload: Workload) -> Ran:
    """The implementation used on this machine. A CPU has one fused kernel, and eager attention with a bias or window runs in steps."""
    if workload.attention in ("efficient", "flash"):
        return "flash"
    narrow = config.window is not None or config.position in ("alibi", "relative", "disentangled")
    return "spelled_out" if narrow or workload.attention == "spelled_out" else "eager"


def foretell(model: Transformer, ids: Tensor, target: Tensor | None, *, last: bool) -> Tensor:
    """Forward pass: the logits at every position, or with `last` the next-token probabilities of each text."""
    if not last or model.head is None:
        return model(ids, target)
    x = model.last_residual(ids, target)
    return model.head(x[:, -1:]).float().softmax(-1)


@contextmanager
def attending(model: Transformer, way: Ran, *, keep: bool = False) -> Iterator[list[Tensor]]:
    """Use this implementation of attention. With `keep`, the yielded list holds a decoder's keys and values, as a cache does."""
    cache: list[Tensor] = []
    hooks: dict[str, Any] = {}
    for name in hook_points(model):
        if keep and name.startswith("decoder") and name.endswith(("hook_k", "hook_v")):
            hooks[name] = cache.append
        if way == "spelled_out" and name.endswith("hook_scores"):
            hooks[name] = request_eager
    with hooked(model, hooks), _Textbook() if way == "eager" else nullcontext():
        yield cache


def request_eager(x: Any) -> None:
    """Hook that changes nothing. Its presence makes attention compute scores and weights as tensors."""


class _Textbook(TorchFunctionMode):
    """softmax(mask(q kᵀ · scale)) v instead of the fused kernel (Vaswani et al. 2017, equation 1)."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        return _textbook_attention(FusedCall(*args, **kwargs))


def _textbook_attention(call: FusedCall) -> Tensor:
    q, k, v, attn_mask, _, is_causal, scale, enable_gqa = call
    assert scale is not None
    if enable_gqa and k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT
    scores = scores * scale  # [batch, head, query, key]
    hidden = None
    if is_causal:
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    elif attn_mask is not None:
        hidden = ~attn_mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    del scores  # two maps at once, not three
    return weights @ v
