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


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.thorough)])
def test_a_compiled_module_is_seen_as_one_that_is_not(backend: str) -> None:
    """pytorch#96722: torch.compile, before capture began and within it. (Its own backend needs a C++ compiler.)"""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    module, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), random(2, 5, 16)
    torch.compiler.reset()
    with torch.no_grad():
        with core.capture(module) as plain:
            expected = module(x)
        compiled = torch.compile(module, backend=backend)
        assert isinstance(compiled, nn.Module)
        before = compiled(x)
        with core.capture(compiled) as records:
            seen = compiled(x)
        after = compiled(x)
    for out in (before, seen, after):
        assert (out - expected).abs().max() <= 1e-6
    assert [record.name for record in records] == ["_orig_mod." + record.name for record in plain]
    assert len(records) == 2 and [(r.site, r.layer) for r in records] == [(r.site, r.layer) for r in plain]
    for record, other in zip(records, plain, strict=True):
        for text in range(2):
            assert (record.of(text).pattern() - other.of(text).pattern()).abs().max() <= 1e-6
    torch.compiler.reset()


@pytest.mark.parametrize("norm_first", [True, False])
def test_padding_on_the_left_of_a_decoder_makes_no_numbers_that_are_none(norm_first: bool) -> None:
    """pytorch#119371: the first rows of a text may look at its padding alone, which is hidden as well."""
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=norm_first)
    module = nn.TransformerDecoder(layer, 2)
    padding = torch.tensor([[False] * 5, [True] * 2 + [False] * 3])
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    x, memory = random(2, 5, 16), random(2, 4, 16)
    with torch.no_grad(), core.capture(module) as records:
        module(x, memory, tgt_mask=causal, tgt_key_padding_mask=padding)
    own = [record for record in records if record.site == "attn"]
    assert [record.name for record in own] == ["layers.0.self_attn", "layers.1.self_attn"]
    for record in own:
        full, padded = record.of(0), record.of(1)
        assert not full.blocked_rows().any()
        assert padded.blocked_rows().nonzero()[:, -1].unique().tolist() == [0, 1]
        assert torch.isfinite(padded.pattern()).all() and not padded.pattern()[:, :2].any()
        assert (padded.pattern()[:, 2:].sum(-1) - 1).abs().max() <= 1e-6
        assert not padded.pattern()[..., :2].any()
        assert padded.why_masked(0, 0) == "masked by the caller"
