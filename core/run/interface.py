"""recording(): what a model of transformers gives its attention functions, seen through transformers.AttentionInterface.

A context says which model is watched. While it is open, and in its thread alone, that model's config names an attention function
and a mask function of ours. They call the functions that the model would have called, and look at what went in and came out. So
a pass gives the numbers that it gives without us, and other threads, other models and the registry stay as they are.
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
# Kernels whose masks are no tensors, or whose cache is paged: the model's own eager function is run in their place.
OPAQUE = ("flash", "flex", "paged", "kernels", "/")


@dataclass(frozen=True, eq=False)
class MadeMask:
    """The origin of a mask: transformers' mask function, a 2D mask of padding, and the places of the first query and key."""

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
    mask: Tensor | None  # bool, or numbers that are added
    is_causal: bool  # where no mask says so
    scale: float
    softcap: float | None
    sinks: Tensor | None  # [head]
    bias: Tensor | None
    dropout: float
    masks: tuple[MadeMask, ...]  # those made lately in this recording


See = Callable[
    [AttentionCall], Tensor | None
]  # z [batch, head, query, d_v] that is to be used, or None: the model's own
After = Callable[[AttentionCall, Tensor], Tensor | None]  # the same, told the model's own z


@dataclass(eq=False)
class Recording:
    """A recording that is open: which modules are watched, and who is told."""

    names: Mapping[nn.Module, str]  # module paths
    before: See
    after: After
    masks: list[MadeMask] = field(default_factory=list)


MASKS = 16  # kept of those made last: a pass makes one for each kind of layer
_open: ContextVar[Recording | None] = ContextVar("recording", default=None)
_lock = threading.Lock()
_watched: dict[int, tuple[Any, int]] = {}  # id of a config -> config, recordings that are open on it
_recordings = 0  # open in all threads


@contextmanager
def recording(model: nn.Module, before: See, after: After) -> Iterator[Recording]:
    """Watch every attention that `model` runs in this context: `before` and `after` each call of an attention function.

    The model's configs and transformers' registries are as before when it ends, however it ends.
    """
    names = {module: name for name, module in model.named_modules(remove_duplicate=True)}
    one, configs = Recording(names, before, after), configs_of(model)
    _register(configs)
    token = _open.set(one)
    try:
        yield one
    finally:
        _open.reset(token)
        _release(configs)


def configs_of(model: nn.Module) -> list[Any]:
    """Every config that a submodule may read its attention implementation from, once each."""
    found: dict[int, Any] = {}
    waiting = [config for part in model.modules() if (config := getattr(part, "config", None)) is not None]
    while waiting:
        config = waiting.pop()
        if id(config) in found or not hasattr(config, "_attn_implementation_internal"):
            continue
        found[id(config)] = config
        waiting += [
            one for name in getattr(config, "sub_configs", ()) if (one := getattr(config, name, None)) is not None
        ]
    return list(found.values())


def implementation_of(config: Any) -> str | None:
    """The attention implementation that a model was loaded with, recorded or not."""
    return getattr(config, "_attn_implementation_internal", None)


def is_opaque(implementation: str | None) -> bool:
    """Whether its own kernel cannot be looked into, so that eager attention is run in its place."""
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
    """A config class whose attention implementation is ours where a recording is open, and its own in any other context."""

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
    """Mask function of the registry: the model's own one, with a note of what the mask is made from."""
    from transformers import AttentionMaskInterface

    own = implementation_of(kwargs.get("config")) or "eager"
    own = "eager" if is_opaque(own) else own
    if (
        own not in AttentionMaskInterface._global_mapping
    ):  # transformers makes none for an attention that has no mask function
        return kwargs.get("attention_mask")
    made = AttentionMaskInterface._global_mapping[own](*args, **kwargs)
    one = _open.get()
    if one is not None and isinstance(made, Tensor):
        sizes = {name: int(kwargs.get(name, 0)) for name in ("q_offset", "kv_offset", "q_length", "kv_length")}
        one.masks.append(MadeMask(kwargs.get("mask_function"), kwargs.get("attention_mask"), **sizes))
        del one.masks[:-MASKS]
    return made


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention function of the registry: the model's own one, seen by the recording that is open."""
    own, one = own_function(module), _open.get()
    if one is None or module not in one.names:
        return own(module, query, key, value, attention_mask, **kwargs)
    call = seen_call(module, (query, key, value, attention_mask), kwargs, tuple(one.masks))
    instead = one.before(call)
    if instead is not None:
        return instead.transpose(1, 2).contiguous(), None
    out, weights = own(module, query, key, value, attention_mask, **kwargs)
    instead = one.after(call, out.transpose(1, 2))
    return (out, weights) if instead is None else (instead.transpose(1, 2).contiguous(), None)


def seen_call(
    module: nn.Module,
    given: tuple[Tensor, Tensor, Tensor, Any],
    kwargs: Mapping[str, Any],
    masks: tuple[MadeMask, ...],
) -> AttentionCall:
    """The arguments of an attention function by our names for them, as scaled_dot_product_attention and eager code read them."""
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
        # Eager code has no other mask than the one that it is given.
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
    # The file of the class; not its forward's globals, which a decorator may have replaced by its own.
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
    """The textbook's steps, for an attention whose file has no eager function of the usual name."""
    call = seen_call(module, (query, key, value, attention_mask), kwargs, ())
    k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = query @ k.mT * call.scale
    scores = scores if call.softcap is None else torch.tanh(scores / call.softcap) * call.softcap
    scores = scores if call.bias is None else scores + call.bias
    if call.mask is not None:
        hidden = call.mask.dtype == torch.bool
        scores = scores.masked_fill(~call.mask, torch.finfo(scores.dtype).min) if hidden else scores + call.mask
    if call.sinks is not None:
        columns = call.sinks[:, None, None].expand(len(scores), -1, scores.shape[2], 1).to(scores.dtype)
        scores = torch.cat([scores, columns], dim=-1)
    pattern = scores.softmax(-1, dtype=torch.float32).to(query.dtype)[..., : k.shape[2]]
    pattern = nn.functional.dropout(pattern, call.dropout, training=module.training)
    return (pattern @ v).transpose(1, 2).contiguous(), pattern
