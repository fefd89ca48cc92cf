"""Records of the attention calls of a transformers model: their place in the model, their mask as a rule, and their tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..memory import admit_large
from ..model.given import Given, given, spread
from ..model.rules import GivenBias, MaskRule, ScoreRule, attend
from .attention import AttentionRecord, receipt_rows
from .foreign import Site, Stack, attention_name
from .interface import AttentionCall, CapturedMask
from .recorder import Held
from .shared_rows import Pool

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
    mask = given(spread(call.mask.detach()), (call.query.shape[0],))
    visible = mask.allowed(*(torch.arange(n, device=call.mask.device) for n in (n_query, n_key)))
    later = torch.ones(n_query, n_key, dtype=torch.bool, device=visible.device).triu(1 + n_key - n_query)
    return bool(later.any()) and not bool((visible & later).any())


# records


def make_record(call: AttentionCall, z: Tensor, rules: RuleCache, pools: Pools | None = None) -> AttentionRecord:
    """The record of one call, from copies of its tensors. With `pools`, keys and values seen before are stored once.

    Raises TooLarge if the copies would not fit.
    """
    size = call.query.nbytes + call.key.nbytes + call.value.nbytes
    admit_large(size, call.query.device, "What an attention keeps", "Use a shorter text.")
    q = call.query.detach().clone(memory_format=torch.contiguous_format)
    if pools is None:
        k, v = (x.detach().clone(memory_format=torch.contiguous_format) for x in (call.key, call.value))
        values: Callable[[], Tensor] = Held(v)
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
            custom = given(spread(_added(call.mask, call.bias)).detach().clone(), (batch,))
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


def mask_rule(free: MaskRule, custom: Given, masks: Sequence[CapturedMask]) -> MaskRule:
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
