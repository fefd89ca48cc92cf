"""recording(): observe the attention functions of a transformers model, through transformers.AttentionInterface.

While a recording is open, and only in its thread, the configs of the model name an attention function and a mask function of
this module. They call the functions that the model would have called, and pass arguments and results on to callbacks. The
numbers of a pass do not change, and other threads and other models are not affected.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

NAME = "headlight"  # in transformers' registries, while a recording is open
PLAIN = (None, "eager", "sdpa")
# Kernels whose masks are not tensors, or whose cache is paged. The model's own eager function runs instead.
OPAQUE = ("flash", "flex", "paged", "kernels", "/")


@dataclass(frozen=True, eq=False)
class CapturedMask:
    """How a mask was made: transformers' mask function, a 2D padding mask, and the positions of the first query and key."""

    function: Callable[..., Any] | None
    padding: Tensor | None  # [batch, key], True or 1 for a real token
    q_offset: int
    kv_offset: int
    q_length: int
    kv_length: int


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of an attention function: query [batch, head, query, d_head], key and value [batch, kv_head, key, d_head]."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None  # boolean, or added to the scores
    is_causal: bool  # without a mask
    scale: float
    softcap: float | None
    sinks: Tensor | None  # [head]
    bias: Tensor | None
    dropout: float
    masks: tuple[CapturedMask, ...]  # the latest of this recording


# Both return the z [batch, head, query, d_v] to use instead, or None for the model's own, which AfterCallback receives.
BeforeCallback = Callable[[AttentionCall], Tensor | None]
AfterCallback = Callable[[AttentionCall, Tensor], Tensor | None]


@dataclass(eq=False)
class Recording:
    """An open recording: the observed modules, the callbacks, and the latest masks."""

    names: Mapping[nn.Module, str]  # module paths
    before: BeforeCallback
    after: AfterCallback
    masks: list[CapturedMask] = field(default_factory=list)


MAX_MASKS = 16  # latest masks kept: a pass makes one for each kind of layer
_open: ContextVar[Recording | None] = ContextVar("recording", default=None)
_lock = threading.Lock()
_watched: dict[int, tuple[Any, int]] = {}  # id of a config -> config, number of its open recordings
_recordings = 0  # open ones, in all threads


@contextmanager
def recording(model: nn.Module, before: BeforeCallback, after: AfterCallback) -> Iterator[Recording]:
    """Call `before` and `after` around each attention function that `model` calls in this context.

    The model's configs and transformers' registries are restored at the end, also after an exception.
    """
    names = {module: name for name, module in model.named_modules(remove_duplicate=True)}
    opened, configs = Recording(names, before, after), configs_of(model)
    _register(configs)
    token = _open.set(opened)
    try:
        yield opened
    finally:
        _open.reset(token)
        _release(configs)


def configs_of(model: nn.Module) -> list[Any]:
    """Every config from which a submodule may read its attention implementation, without duplicates."""
    configs: dict[int, Any] = {}
    queue = [getattr(module, "config", None) for module in model.modules()]
    while queue:
        config = queue.pop()
        if id(config) not in configs and hasattr(config, "_attn_implementation_internal"):
            configs[id(config)] = config
            queue += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]
    return list(configs.values())


def implementation_of(config: Any) -> str | None:
    """The attention implementation that a model was loaded with, also during a recording."""
    return getattr(config, "_attn_implementation_internal", None)


def is_opaque(implementation: str | None) -> bool:
    """True if its kernel cannot be observed, so that eager attention runs instead."""
    return implementation not in PLAIN and any(word in str(implementation) for word in OPAQUE)


def _register(configs: list[Any]) -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    global _recordings
    with _lock:
        if not _recordings:
            AttentionInterface.register(NAME, attention)
            AttentionMaskInterface.register(NAME, mask)
        _recordings += 1
        for config in configs:
            n = _watched.get(id(config), (config, 0))[1]
            _watched[id(config)] = config, n + 1
            if not n:
                config.__class__ = _renamed(type(config))


def _release(configs: list[Any]) -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    global _recordings
    with _lock:
        _recordings -= 1
        for config in configs:
            n = _watched.pop(id(config))[1] - 1
            if n:
                _watched[id(config)] = config, n
            else:
                config.__class__ = type(config).__mro__[1]
        if not _recordings:
            for registry in (AttentionInterface, AttentionMaskInterface):
                registry._global_mapping.pop(NAME, None)


@cache
def _renamed(kind: type) -> type:
    """A config class whose attention implementation is this module's while a recording is open in the context."""

    def implementation(config: Any) -> str | None:
        return implementation_of(config) if _open.get() is None else NAME

    def replaced(config: Any, value: Any) -> None:
        kind._attn_implementation.fset(config, value)  # type: ignore[attr-defined]

    return type(
        kind.__name__,
        (kind,),
        {"_attn_implementation": property(implementation, replaced), "__module__": kind.__module__},
    )


def mask(*args: Any, **kwargs: Any) -> Any:
    """Mask function of the registry: the model's own, whose arguments are recorded."""
    from transformers import AttentionMaskInterface

    own = implementation_of(kwargs.get("config")) or "eager"
    own = "eager" if is_opaque(own) else own
    if own not in AttentionMaskInterface._global_mapping:  # transformers makes no mask for such an attention
        return kwargs.get("attention_mask")
    made = AttentionMaskInterface._global_mapping[own](*args, **kwargs)
    recorded = _open.get()
    if recorded is not None and isinstance(made, Tensor):
        sizes = {name: int(kwargs.get(name, 0)) for name in ("q_offset", "kv_offset", "q_length", "kv_length")}
        recorded.masks.append(CapturedMask(kwargs.get("mask_function"), kwargs.get("attention_mask"), **sizes))
        del recorded.masks[:-MAX_MASKS]
    return made


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention function of the registry: the model's own, observed by the open recording."""
    own, recorded = own_function(module), _open.get()
    if recorded is None or module not in recorded.names:
        return own(module, query, key, value, attention_mask, **kwargs)
    call = captured_call(module, (query, key, value, attention_mask), kwargs, tuple(recorded.masks))
    instead = recorded.before(call)
    if instead is not None:
        return instead.transpose(1, 2).contiguous(), None
    out, weights = own(module, query, key, value, attention_mask, **kwargs)
    instead = recorded.after(call, out.transpose(1, 2))
    return (out, weights) if instead is None else (instead.transpose(1, 2).contiguous(), None)


def captured_call(
    module: nn.Module,
    given: tuple[Tensor, Tensor, Tensor, Any],
    kwargs: Mapping[str, Any],
    masks: tuple[CapturedMask, ...],
) -> AttentionCall:
    """The arguments of an attention function, with the defaults of scaled_dot_product_attention or of eager code."""
    query, key, value, attention_mask = given
    scale, causal = kwargs.get("scaling"), kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    is_eager = own_name(module) in (None, "eager") or is_opaque(own_name(module))
    sinks = kwargs.get("s_aux")
    return AttentionCall(
        module,
        query,
        key,
        value,
        attention_mask if isinstance(attention_mask, Tensor) else None,
        # Eager code applies no mask but the given one.
        bool(causal) and attention_mask is None and query.shape[2] > 1 and not is_eager,
        query.shape[-1] ** -0.5 if scale is None else float(scale),
        kwargs.get("softcap"),
        None if sinks is None else sinks.detach().flatten(),
        kwargs.get("position_bias"),
        float(kwargs.get("dropout") or 0.0),
        masks,
    )


def own_name(module: nn.Module) -> str | None:
    """The attention implementation that this attention was loaded with."""
    return implementation_of(getattr(module, "config", None))


def own_function(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The attention function that this module calls when it is not recorded."""
    # The module that defines the class; a decorator may have replaced the globals of its forward().
    names = vars(sys.modules[type(module).__module__])
    name = own_name(module)
    if name in (None, "eager") or is_opaque(name):
        return names.get("eager_attention_forward", eager)
    from transformers import AttentionInterface

    registry = names.get("ALL_ATTENTION_FUNCTIONS")
    return registry[name] if registry is not None else AttentionInterface._global_mapping[name]


def eager(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Eager attention, for a class whose file has no eager_attention_forward()."""
    call = captured_call(module, (query, key, value, attention_mask), kwargs, ())
    k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = query @ k.mT * call.scale
    scores = scores if call.softcap is None else torch.tanh(scores / call.softcap) * call.softcap
    scores = scores if call.bias is None else scores + call.bias
    if call.mask is not None:
        is_bool = call.mask.dtype == torch.bool
        scores = scores.masked_fill(~call.mask, torch.finfo(scores.dtype).min) if is_bool else scores + call.mask
    if call.sinks is not None:
        columns = call.sinks[:, None, None].expand(len(scores), -1, scores.shape[2], 1).to(scores.dtype)
        scores = torch.cat([scores, columns], dim=-1)
    pattern = scores.softmax(-1, dtype=torch.float32).to(query.dtype)[..., : k.shape[2]]
    pattern = nn.functional.dropout(pattern, call.dropout, training=module.training)
    return (pattern @ v).transpose(1, 2).contiguous(), pattern
