"""A call of PyTorch's fused attention, for those who replace it or look at it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class FusedCall(NamedTuple):
    """Arguments of F.scaled_dot_product_attention, in its order and by its names, so that FusedCall(*args, **kwargs) reads any call."""

    query: Tensor  # [..., head, query, d_head]
    key: Tensor  # [..., kv_head, key, d_head]
    value: Tensor  # [..., kv_head, key, d_head]
    attn_mask: Tensor | None = None  # bool, True where a query may look, or numbers added to its scores
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None  # None: 1 / √d_head
    enable_gqa: bool = False
