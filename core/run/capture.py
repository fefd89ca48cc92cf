"""capture(): the same records for any torch module that calls scaled_dot_product_attention, without touching the module."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..memory import admit_large
from ..model.fused import FusedCall
from ..model.rules import GivenBias, MaskRule, ScoreRule
from .attention import AttentionRecord
from .recorder import Held

_FUSED = F.scaled_dot_product_attention


@contextmanager
def capture(module: nn.Module) -> Iterator[list[AttentionRecord]]:
    """Record every attention that `module` computes in this context, in order, named by the submodule it happened in.

    Sees nn.MultiheadAttention, nn.TransformerEncoder and nn.Transformer (their fused fast path steps aside while a
    context is open; results agree to rounding), and any other caller of torch.nn.functional.scaled_dot_product_attention,
    grouped-query attention and key padding included. Not seen: attention written out by hand, flex_attention, kernels of
    other packages. Weights are those before dropout. Other threads are not affected.
    """
    recorder = _Recorder()
    handles = []
    for name, child in module.named_modules():
        handles.append(child.register_forward_pre_hook(recorder.enter(name)))
        handles.append(child.register_forward_hook(recorder.leave, always_call=True))
    try:
        with recorder:
            yield recorder.records
    finally:
        for handle in handles:
            handle.remove()


class _Recorder(TorchFunctionMode):
    """Looks at every torch function of this thread while the context is open."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[AttentionRecord] = []
        self.thread = threading.get_ident()
        self.path: list[str] = []  # the submodules that the pass is inside of

    def enter(self, name: str) -> Callable[..., None]:
        def pre_hook(_module: nn.Module, _args: Any) -> None:
            if threading.get_ident() == self.thread:
                self.path.append(name)

        return pre_hook

    def leave(self, _module: nn.Module, _args: Any, _output: Any) -> None:
        if threading.get_ident() == self.thread:
            self.path.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _FUSED:
            self.record(FusedCall(*args, **kwargs))
        elif func is F.multi_head_attention_forward:
            # A Python function that torch runs with this mode switched off, so its inner call is met another way.
            seen, given = _with_fused(func, self.fused), signature(func).bind(*args, **kwargs).arguments
            if not given.get("need_weights", True):
                return seen(*args, **kwargs)
            # With weights wanted it takes a path of its own and never calls the fused function. Run it without them to
            # see the queries and keys, and without dropout, which would draw random numbers; the caller gets his own call's.
            seen(**{**given, "need_weights": False, "training": False})
        return func(*args, **kwargs)

    def fused(self, *args: Any, **kwargs: Any) -> Tensor:
        self.record(FusedCall(*args, **kwargs))
        return _FUSED(*args, **kwargs)

    @torch.no_grad()
    def record(self, call: FusedCall) -> None:
        """Keep one call. The tensors are copied: q, k and v are often views of one projection that would stay alive.

        Raises TooLarge where the copies would not fit.
        """
        query, key, value, attn_mask, _, is_causal, scale, _ = call
        size = sum(x.nbytes for x in (query, key, value, attn_mask) if x is not None)
        admit_large(size, query.device, f"What attention number {len(self.records)} keeps", "Capture a shorter input.")
        q, k, v = (_four_axes(x).detach().clone(memory_format=torch.contiguous_format) for x in (query, key, value))
        given = bias = None
        if attn_mask is not None:
            mask = _four_axes(attn_mask).detach()
            given = mask.clone() if mask.dtype == torch.bool else mask > float("-inf")
            added = mask.masked_fill(~given, 0.0) if mask.dtype != torch.bool else None
            bias = GivenBias(added.clone()) if added is not None and bool((added != 0).any()) else None
        n_layers = len(self.records)
        rule = ScoreRule(
            MaskRule(
                q.shape[1],
                q.shape[2],
                k.shape[2],
                causal=is_causal,
                given=None if given is None or given.all() else given,
            ),
            q.shape[-1] ** -0.5 if scale is None else scale,
            bias,
        )
        name = self.path[-1] if self.path else ""
        cross = query.shape[-2] != key.shape[-2] or name.endswith(("multihead_attn", "cross_attn", "encoder_attn"))
        self.records.append(
            AttentionRecord(
                name or f"call {n_layers}", "module", n_layers, "cross_attn" if cross else "attn", q, k, Held(v), rule
            )
        )


def _four_axes(x: Tensor) -> Tensor:
    """[..., n, d] with leading axes folded or added so that there are four."""
    if x.is_nested:
        raise ValueError(
            "capture cannot record nested tensors; build nn.TransformerEncoder with enable_nested_tensor=False"
        )
    if x.ndim < 4:
        return x.reshape((1,) * (4 - x.ndim) + tuple(x.shape))
    return x.flatten(0, x.ndim - 4)


def _with_fused(func: Any, fused: Callable[..., Tensor]) -> Callable[..., Any]:
    """torch's own function where one of the names that it looks up means another: nothing of torch.nn.functional changes."""
    names = vars(F) | {"scaled_dot_product_attention": fused}
    own = FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    own.__kwdefaults__ = func.__kwdefaults__
    return own
