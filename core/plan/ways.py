"""The ways of attention in which a model is run to count its bytes: the processor's fused kernel, the textbook, spelled out."""

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
    """The way that runs here: a processor has one fused kernel, and eager attention with a bias or a window is spelled out."""
    if workload.attention in ("efficient", "flash"):
        return "flash"
    narrow = config.window is not None or config.position in ("alibi", "relative", "disentangled")
    return "spelled_out" if narrow or workload.attention == "spelled_out" else "eager"


def foretell(model: Transformer, ids: Tensor, target: Tensor | None, *, last: bool) -> Tensor:
    """The pass of a run: the words' scores at every position, or with `last` the probabilities of the next word of each text."""
    if not last or model.head is None:
        return model(ids, target)
    x = model.last_residual(ids, target)
    return model.head(x[:, -1:]).float().softmax(-1)


@contextmanager
def attending(model: Transformer, way: Ran, *, keep: bool = False) -> Iterator[list[Tensor]]:
    """Attention done this way; with `keep`, a decoder's keys and values are held, as a cache holds them, in the list."""
    cache: list[Tensor] = []

    def hold(x: Tensor) -> None:
        cache.append(x)

    hooks: dict[str, Any] = {}
    for name in hook_points(model):
        if keep and name.startswith("decoder") and name.endswith(("hook_k", "hook_v")):
            hooks[name] = hold
        if way == "spelled_out" and name.endswith("hook_scores"):
            hooks[name] = _look
    with hooked(model, hooks), _Textbook() if way == "eager" else nullcontext():
        yield cache


def _look(x: Tensor) -> None:
    """Watching is enough to have attention spell itself out."""


class _Textbook(TorchFunctionMode):
    """softmax(mask(q kᵀ · scale)) v instead of the fused kernel (Vaswani et al. 2017, equation 1)."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        return _spelled(FusedCall(*args, **kwargs))


def _spelled(call: FusedCall) -> Tensor:
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
