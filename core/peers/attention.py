"""attention_heads(), attention_patterns() and attention_pattern() with the signatures of circuitsvis.attention 1.43.3."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import HeadlightError
from ..run.arrays import tensor_of
from ..trace import from_attentions
from .views import Shown, picture

COLOURS = "{given}: here blue is more than 0, purple less, and the scale goes up to 1 or the largest number."
LATER = "Some weights are on later tokens. They are shown; mask_upper_tri=True hides them."
HIDDEN = "mask_upper_tri=True: weights on later tokens are left out."


def attention_heads(
    attention: Any,
    tokens: Any,
    attention_head_names: Any = None,
    max_value: Any = None,
    min_value: Any = None,
    negative_color: Any = None,
    positive_color: Any = None,
    mask_upper_tri: Any = None,
) -> Shown:
    """circuitsvis.attention.attention_heads (1.43.3): heads [head, query, key] of one layer, or of several layers.

    Numbers below 0 or above 1 get a scale of their own, purple below 0. Raises Refused as from_attentions().
    """
    scale = {"max_value": max_value, "min_value": min_value}
    scale |= {"negative_color": negative_color, "positive_color": positive_color}
    return _shown(_heads_of(attention), tokens, attention_head_names, scale, mask_upper_tri)


def attention_patterns(tokens: Any, attention: Any) -> Shown:
    """circuitsvis.attention.attention_patterns (1.43.3): attention_heads() with the arguments in reverse order."""
    return _shown(_heads_of(attention), tokens, None, {}, None)


def attention_pattern(
    tokens: Any,
    attention: Any,
    max_value: Any = None,
    min_value: Any = None,
    negative_color: Any = None,
    show_axis_labels: Any = None,
    positive_color: Any = None,
    mask_upper_tri: Any = None,
) -> Shown:
    """circuitsvis.attention.attention_pattern (1.43.3): one head, [query, key]."""
    scale = {"max_value": max_value, "min_value": min_value, "negative_color": negative_color}
    scale |= {"show_axis_labels": show_axis_labels, "positive_color": positive_color}
    return _shown(_heads_of(attention), tokens, None, scale, mask_upper_tri)


def _heads_of(attention: Any) -> Tensor:
    """[head, query, key]. Raises Refused for another rank."""
    heads = tensor_of(attention, "attention")
    if heads.ndim == 4 and len(heads) == 1:
        heads = heads[0]
    if heads.ndim == 2:
        heads = heads[None]
    if heads.ndim != 3:
        raise HeadlightError(
            f"attention has the shape {list(heads.shape)}, and heads are [head, query, key]. For layers use head_view()."
        )
    return heads


def _shown(heads: Tensor, tokens: Any, names: Any, scale: dict[str, Any], mask_upper_tri: bool | None) -> Shown:
    later = torch.ones(heads.shape[-2:], dtype=torch.bool, device=heads.device).triu(1)
    remarks = []
    if mask_upper_tri:
        heads = heads.masked_fill(later, 0)
        remarks.append(HIDDEN)
    elif mask_upper_tri is None and bool((heads[..., later] != 0).any()):
        remarks.append(LATER)
    if names is not None:
        if len(names) != len(heads):
            raise HeadlightError(
                f"attention_head_names has {len(names)} names, and attention has the shape {list(heads.shape)}: {len(heads)} heads."
            )
        remarks.append("Heads by number: " + ", ".join(f"{i} is {name}" for i, name in enumerate(names)) + ".")
    if given := ", ".join(f"{name}={value!r}" for name, value in scale.items() if value is not None):
        remarks.append(COLOURS.format(given=given))
    return picture(from_attentions(heads, tokens), 0, 0, remarks)
