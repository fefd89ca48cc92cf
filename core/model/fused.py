"""The arguments of one scaled_dot_product_attention() call, for code that intercepts it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class FusedCall(NamedTuple):
    """Arguments of F.scaled_dot_product_attention, in its order, so that FusedCall(*args, **kwargs) parses any call."""

    query: Tensor  # [..., head, query, d_head]
    key: Tensor  # [..., kv_head, key, d_head]
    value: Tensor  # [..., kv_head, key, d_head]
    attn_mask: Tensor | None = None  # bool, True where visible, or numbers added to the scores
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None  # None: 1 / √d_head
    enable_gqa: bool = False
