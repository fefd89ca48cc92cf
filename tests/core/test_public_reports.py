"""Inputs of public reports against other tools which were right here at once, and stay so: docs/reports.md lists them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import core


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


class Call(nn.Module):
    """One call of the fused function, as a model makes it."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **how: object) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_head_that_may_look_at_nothing_leaves_the_others_alone(need_weights: bool) -> None:
    """pytorch#160064: one head's mask hides every key."""
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(16, 2, batch_first=True), random(1, 5, 16)
    mask = torch.zeros(2, 5, 5, dtype=torch.bool)
    mask[1] = True
    with core.capture(module) as records:
        module(x, x, x, attn_mask=mask, need_weights=need_weights, average_attn_weights=False)
    pattern = records[0].of(0).pattern()
    alone = module(x, x, x, average_attn_weights=False)[1]
    assert alone is not None
    assert torch.isfinite(pattern).all() and not pattern[1].any()
    assert (pattern[0] - alone[0, 0]).abs().max() <= 1e-6
    assert records[0].of(0).why_masked(0, 0, head=1) == "masked by the caller"


def test_a_row_that_two_masks_hide_together_is_named() -> None:
    """pytorch#41508: attn_mask and key_padding_mask leave a row nothing."""
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(16, 2, batch_first=True), random(1, 4, 16)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[2, :3] = True
    padding = torch.tensor([[False, False, False, True]])
    with core.capture(module) as records:
        module(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)
    record = records[0].of(0)
    assert not record.pattern()[:, 2].any() and record.blocked_rows().nonzero()[:, -1].unique().tolist() == [2]


@pytest.mark.parametrize(("n_query", "n_key"), [(1, 5), (2, 5), (5, 2)])
def test_is_causal_counts_from_the_top_left(n_query: int, n_key: int) -> None:
    """pytorch#144858, #108108: queries and keys of other lengths."""
    q, k, v = random(1, 2, n_query, 8), random(1, 2, n_key, 8), random(1, 2, n_key, 8)
    with core.capture(module := Call()) as records:
        module(q, k, v, is_causal=True)
    allowed = torch.ones(n_query, n_key).tril().bool()
    scores = (q @ k.transpose(-2, -1) / 8**0.5).masked_fill(~allowed, -torch.inf)
    assert (records[0].of(0).pattern() - scores.softmax(-1)[0]).abs().max() <= 1e-6
