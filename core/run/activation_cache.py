"""from_cache(): a run made of an activation cache with TransformerLens' names, without importing that package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor

from ..errors import Refused
from .arrays import tensor_of
from .brought import Place, Stack, Texts, WeightsTrace, run_of

NAME = re.compile(
    r"(?:(?P<stack>encoder|decoder)\.|blocks\.)(?P<layer>\d+)\.(?P<site>attn|cross_attn)\.hook_(?P<what>\w+)"
)
ORIGIN = "from_cache"
TURNED = {"rot_q": "q", "rot_k": "k"}  # after rotary positions, as they meet in the scores


def from_cache(cache: Any, tokens: Texts = None, *, target_tokens: Texts = None) -> WeightsTrace:
    """A run made of what model.run_with_cache(text) kept: the weights of every blocks.{layer}.attn.hook_pattern, and queries,
    keys, values and z where hook_q, hook_k, hook_v and hook_z are there (q and k after rotary positions where there are such).

    cache is an ActivationCache of TransformerLens, or anything with items(), with or without a batch. Other activations are left
    out. tokens are strings: model.to_str_tokens(text). Everything else as from_attentions(). Raises Refused.
    """
    if not hasattr(cache, "items"):
        raise Refused(
            f"A cache holds activations by name, and {type(cache).__name__} has no items(). Give the second result of model.run_with_cache(text)."
        )
    weights: dict[Place, Tensor] = {}
    found: dict[tuple[int, str], dict[str, Tensor]] = {}
    for name, x in cache.items():
        match = NAME.fullmatch(str(name))
        if match is None:
            continue
        layer, site, what = int(match["layer"]), match["site"], match["what"]
        stack: Stack = "decoder" if match["stack"] == "decoder" else "encoder"
        if what == "pattern":
            one = tensor_of(x, str(name))
            if one.ndim not in (3, 4):
                raise Refused(
                    f"{name} has the shape {list(one.shape)}, and a pattern is [batch, head, query, key] or [head, query, key]."
                )
            weights[cast(Place, (stack, layer, site))] = one if one.ndim == 4 else one[None]
        elif what in ("q", "k", "v", "z", *TURNED) and stack == "encoder":
            one = tensor_of(x, str(name))
            rest = found.setdefault((layer, site), {})
            if what in TURNED or what not in rest:
                rest[TURNED.get(what, what)] = (one if one.ndim == 4 else one[None]).transpose(1, 2)
    if not weights:
        raise Refused(
            "This cache holds no weights: no name in it is blocks.0.attn.hook_pattern or the like. Run model.run_with_cache(text) "
            "without a names_filter, or with one that lets hook_pattern through."
        )
    order = sorted(weights, key=lambda place: (place[0] == "decoder", place[1], place[2] == "cross_attn"))
    more: Mapping[tuple[int, str], Mapping[str, Tensor]] = {
        place[1:]: _fitting(found.get(place[1:], {}), weights[place]) for place in order if place[0] == "encoder"
    }
    return run_of({place: weights[place] for place in order}, tokens, target_tokens, more=more, origin=ORIGIN)


def _fitting(found: Mapping[str, Tensor], weights: Tensor) -> dict[str, Tensor]:
    """Those of q, k, v and z [batch, head, pos, d_head] that have the weights' texts, positions and, in groups, heads."""
    batch, n_heads, n_query, n_key = weights.shape
    lengths = {"q": n_query, "z": n_query, "k": n_key, "v": n_key}
    return {
        what: x.clone()
        for what, x in found.items()
        if x.ndim == 4 and (len(x), x.shape[2]) == (batch, lengths[what]) and n_heads % x.shape[1] == 0
    }
