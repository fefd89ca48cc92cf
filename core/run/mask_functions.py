"""The rule of a mask of transformers, read from the mask function that made it and held against the mask itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..model.given import Given
from ..model.rules import MaskRule
from .interface import MadeMask

Part = tuple[str, Callable[..., Any]]


def rule_of(free: MaskRule, given: Given, masks: Sequence[MadeMask]) -> MaskRule:
    """The rule of a call's mask, from the parts of a mask function: future, window, padding.

    `free` has the sizes. A part is believed where all that it hides is hidden in the mask; what the mask hides beyond the
    parts is the caller's. Where some row may see nothing and the mask hides by finite numbers, these are kept as well, since
    its weights depend on them.
    """
    queries, keys = (torch.arange(n, device=given.values.device) for n in (free.n_query, free.n_key))
    seen = given.allowed(queries, keys)
    beyond = None  # the best rule so far that hides less than the mask
    for made in reversed(masks):
        if (made.q_length, made.kv_length) != (free.n_query, free.n_key):
            continue
        rule = with_parts(free, made)
        allowed = rule.block(queries, keys)
        if bool((seen & ~allowed).any()):
            continue
        if bool((seen == allowed).all()):
            return replace(rule, custom=given) if given.is_soft and not bool(allowed.any(-1).all()) else rule
        beyond = beyond or replace(rule, custom=given)
    return beyond or replace(free, custom=given if given.hides else None)


def with_parts(free: MaskRule, made: MadeMask) -> MaskRule:
    """Order, window and padding as a mask function has them. Functions that are not known by name add nothing."""
    causal, window = False, None
    for name, part in parts(made.function):
        if name == "causal_mask_function":
            causal = True
        elif name == "sliding_window_overlay":
            window = _smaller(window, _held(part, "sliding_window"))
        elif name == "sliding_window_bidirectional_overlay":  # whose window is inclusive
            window = _smaller(window, _held(part, "sliding_window") + 1)
    first = made.q_offset - made.kv_offset
    return replace(free, causal=causal, window=window, keep=keep_of(made), first_query=max(0, first))


def keep_of(made: MadeMask) -> Tensor | None:
    """[batch, key], True on real tokens; None where there is no padding."""
    if made.padding is None or made.padding.ndim != 2:
        return None
    keep = made.padding.bool()[:, made.kv_offset : made.kv_offset + made.kv_length]
    lacking = made.kv_length - keep.shape[1]
    keep = torch.nn.functional.pad(keep, (0, lacking)) if lacking > 0 else keep
    return None if bool(keep.all()) else keep


def parts(function: Callable[..., Any] | None) -> Iterator[Part]:
    """The functions that all have to allow a cell, each with the name of what made it: and_masks is taken apart, nothing else."""
    if function is None:
        return
    name = getattr(function, "__qualname__", "").split(".<locals>")[0]
    if name == "and_masks":
        for part in _held(function, "mask_functions"):
            yield from parts(part)
        return
    yield name, function


def _held(function: Callable[..., Any], name: str) -> Any:
    """A variable that a function has taken along from where it was made."""
    code = function.__code__
    return (function.__closure__ or ())[code.co_freevars.index(name)].cell_contents


def _smaller(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)
