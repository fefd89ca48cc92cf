"""recording(): observe the attention functions of a transformers model, through transformers.AttentionInterface.

While a recording is open, and only in its thread, the configs of the model name an attention function and a mask function of
this module. They call the functions that the model would have called, and pass arguments and results on to callbacks. The
numbers of a pass do not change, and other threads and other models are not affected.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..device import check_fits_or_retry
from ..model.custom_mask import CustomMask, parse_custom_mask, with_all_axes
from ..model.rules import GivenBias, MaskRule, ScoreRule, attend
from .attention import AttentionRecord, receipt_rows
from .foreign import Site, Stack, attention_name
from .recorder import HeldTensor
from .shared_rows import Pool

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


MAX_RULES = 16  # masks kept of one recording

Pools = dict[tuple[Any, ...], Pool]


# places


@dataclass(frozen=True)
class Place:
    """The place of an attention in its model."""

    stack: Stack
    layer: int
    site: Site
    part: int = 0  # of an attention whose values come in several parts, each in a call of its own (DiffLlama)

    @property
    def attention(self) -> str:
        """The name of the attention, which all its parts share."""
        return attention_name(self.stack, self.layer, self.site)

    @property
    def name(self) -> str:
        return f"{self.attention}.part{self.part}" if self.part else self.attention


def places_of(model: Any, calls: Sequence[tuple[str, AttentionCall]]) -> Mapping[tuple[str, int], Place]:
    """The place of every call of a pass, by module path and number of earlier calls of the module.

    The layer is the number in the module's path. If one module is several layers, it is the number of earlier calls.
    """
    counts: Counter[str] = Counter()
    places: dict[tuple[str, int], Place] = {}
    last: tuple[Tensor | None, int] = None, 0  # queries of the previous call, and its part
    for name, call in calls:
        part = last[1] + 1 if call.query is last[0] else 0
        places[name, counts[name]] = replace(place_of(model, name, call), part=part)
        last = call.query, part
        counts[name] += 1
    if len(set(places.values())) < len(places):
        layers: Counter[tuple[str, str]] = Counter()
        for key, place in places.items():
            layers[place.stack, place.site] += not place.part
            places[key] = replace(place, layer=layers[place.stack, place.site] - 1)
    return places


def place_of(model: Any, name: str, call: AttentionCall) -> Place:
    """The place of an attention, by its module's path and its mask."""
    steps = name.split(".")
    stack: Stack = "decoder" if is_causal(call) else "encoder"
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        in_decoder = "decoder" in steps and "encoder" not in steps[: steps.index("decoder")]
        stack = "decoder" if in_decoder else "encoder"
    crosses = getattr(call.module, "is_cross_attention", False) is True or any(
        "cross" in step.lower() or step in ("encoder_attn", "EncDecAttention", "encoder_attention") for step in steps
    )
    layer = next((int(step) for step in steps if step.isdigit()), 0)
    return Place("decoder", layer, "cross_attn") if crosses else Place(stack, layer, "attn")


def is_causal(call: AttentionCall) -> bool:
    """True if no query may attend to a later key."""
    if call.mask is None:
        return call.is_causal
    n_query, n_key = call.query.shape[2], call.key.shape[2]
    mask = parse_custom_mask(with_all_axes(call.mask.detach()), (call.query.shape[0],))
    visible = mask.allowed(*(torch.arange(n, device=call.mask.device) for n in (n_query, n_key)))
    later = torch.ones(n_query, n_key, dtype=torch.bool, device=visible.device).triu(1 + n_key - n_query)
    return bool(later.any()) and not bool((visible & later).any())


# records


def make_record(call: AttentionCall, z: Tensor, rules: RuleCache, pools: Pools | None = None) -> AttentionRecord:
    """The record of one call, from copies of its tensors. With `pools`, keys and values seen before are stored once.

    Raises TooLarge if the copies would not fit.
    """
    size = call.query.nbytes + call.key.nbytes + call.value.nbytes
    check_fits_or_retry(size, call.query.device, "What an attention keeps", "Use a shorter text.")
    q = call.query.detach().clone(memory_format=torch.contiguous_format)
    if pools is None:
        k, v = (x.detach().clone(memory_format=torch.contiguous_format) for x in (call.key, call.value))
        values: Callable[[], Tensor] = HeldTensor(v)
    else:
        kept = []
        for what, x in (("k", call.key), ("v", call.value)):
            pool = pools.setdefault((call.module, what, x.shape[1], x.shape[-1], x.dtype), Pool())
            kept.append(pool.keep(pool.seek(x.detach()), (x.shape[0],)))
        k, values = kept
    returned = None
    if not (call.dropout and call.module.training):
        returned = z.detach()[:, :, receipt_rows(z.shape[2]).to(z.device)].clone()
    return AttentionRecord("", "module", None, "unknown", q, k, values, rules.score_rule(call), returned=returned)


def is_explained(call: AttentionCall, z: Tensor, rules: RuleCache) -> bool:
    """True if the attention returned pattern · v of the recorded tensors, to the rounding of its dtype."""
    if call.dropout and call.module.training:
        return True
    expected = attend(call.query.float(), call.key.float(), call.value.float(), rules.score_rule(call))
    return bool((expected - z).abs().max() <= 50 * torch.finfo(z.dtype).eps * (1 + z.abs().max()))


@dataclass(eq=False)
class RuleCache:
    """Rules of the masks and biases of a recording, which the layers of a model share."""

    # By the ids of mask and bias and the sizes; the tensors are kept so that no other tensor gets their ids.
    rules: dict[tuple[int, ...], tuple[MaskRule, GivenBias | None, object]] = field(default_factory=dict)

    def score_rule(self, call: AttentionCall) -> ScoreRule:
        """Everything of one call but q, k and v."""
        mask, bias = self._mask_and_bias(call)
        return ScoreRule(mask, call.scale, bias, softcap=call.softcap, sinks=call.sinks)

    def _mask_and_bias(self, call: AttentionCall) -> tuple[MaskRule, GivenBias | None]:
        batch, n_heads, n_query, _ = call.query.shape
        sizes = n_heads, n_query, call.key.shape[2]
        if call.mask is None and call.bias is None:
            return MaskRule(*sizes, causal=call.is_causal), None
        key = (id(call.mask), id(call.bias), *sizes)
        if key not in self.rules:
            custom = parse_custom_mask(with_all_axes(_added(call.mask, call.bias)).detach().clone(), (batch,))
            rule = MaskRule(*sizes, causal=call.is_causal)
            if call.mask is not None:
                rule = mask_rule(MaskRule(*sizes), custom, call.masks)
            if len(self.rules) >= MAX_RULES:
                self.rules.pop(next(iter(self.rules)))
            self.rules[key] = rule, GivenBias(custom) if custom.adds else None, (call.mask, call.bias)
        return self.rules[key][:2]


def _added(mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """Mask and bias as one tensor that is added to the scores; a mask without a bias unchanged."""
    if bias is None:
        assert mask is not None
        return mask
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, float("-inf"))
    return (bias.float() + mask.float()).clamp(min=torch.finfo(torch.float32).min)


# rules of masks


def mask_rule(free: MaskRule, custom: CustomMask, masks: Sequence[CapturedMask]) -> MaskRule:
    """The rule of a call's mask, from the parts of the mask function that made it: causal, window, padding.

    `free` has the sizes. A part is accepted if the mask hides all that the part hides; whatever else the mask hides is a
    custom mask. If a row may see nothing and the mask hides by finite numbers, these are kept too, because the weights of
    that row depend on them.
    """
    queries, keys = (torch.arange(n, device=custom.values.device) for n in (free.n_query, free.n_key))
    visible = custom.allowed(queries, keys)
    partial = None  # the latest rule that hides less than the mask
    for made in reversed(masks):
        if (made.q_length, made.kv_length) != (free.n_query, free.n_key):
            continue
        rule = _rule_of_function(free, made)
        allowed = rule.block(queries, keys)
        if bool((visible & ~allowed).any()):
            continue
        if bool((visible == allowed).all()):
            return replace(rule, custom=custom) if custom.is_soft and not bool(allowed.any(-1).all()) else rule
        partial = partial or replace(rule, custom=custom)
    return partial or replace(free, custom=custom if custom.hides else None)


def _rule_of_function(free: MaskRule, made: CapturedMask) -> MaskRule:
    """Causal order, window and padding of a mask function. Functions with other names add nothing."""
    causal, windows = False, []
    for name, function in _mask_functions(made.function):
        if name == "causal_mask_function":
            causal = True
        elif name == "sliding_window_overlay":
            windows.append(_closure(function, "sliding_window"))
        elif name == "sliding_window_bidirectional_overlay":  # whose window is inclusive
            windows.append(_closure(function, "sliding_window") + 1)
    first = max(0, made.q_offset - made.kv_offset)
    return replace(free, causal=causal, window=min(windows, default=None), keep=_keep(made), first_query=first)


def _keep(made: CapturedMask) -> Tensor | None:
    """[batch, key], True on real tokens; None without padding."""
    if made.padding is None or made.padding.ndim != 2:
        return None
    keep = made.padding.bool()[:, made.kv_offset : made.kv_offset + made.kv_length]
    if (missing := made.kv_length - keep.shape[1]) > 0:
        keep = torch.nn.functional.pad(keep, (0, missing))
    return None if bool(keep.all()) else keep


def _mask_functions(function: Callable[..., Any] | None) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that must all allow a cell, each with its factory's name. Only and_masks is taken apart."""
    if function is None:
        return
    name = getattr(function, "__qualname__", "").split(".<locals>")[0]
    if name == "and_masks":
        for part in _closure(function, "mask_functions"):
            yield from _mask_functions(part)
        return
    yield name, function


def _closure(function: Callable[..., Any], name: str) -> Any:
    """A variable in the closure of a function."""
    code = function.__code__
    return (function.__closure__ or ())[code.co_freevars.index(name)].cell_contents
