"""capture(): records of torch's own modules equal what they compute, and nobody else notices."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import core
from tests.core.conftest import fused_error


def inputs(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


PADDING = torch.tensor([[False] * 7, [False] * 5 + [True] * 2])


def test_multihead_attention_equals_the_weights_it_returns() -> None:
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(24, 3, batch_first=True), inputs(2, 7, 24)
    for need_weights in (True, False):
        with core.capture(module) as records:
            out, weights = module(
                x, x, x, key_padding_mask=PADDING, need_weights=need_weights, average_attn_weights=False
            )
        assert len(records) == 1 and (weights is not None) == need_weights
        with torch.no_grad():
            plain, exact = module(x, x, x, key_padding_mask=PADDING, average_attn_weights=False)
        for text in range(2):
            assert (records[0].of(text).pattern() - exact[text]).abs().max() <= 1e-6
        assert (out - plain).abs().max() <= 1e-6
        assert records[0].of(1).why_masked(0, 6) == "masked by the caller" and records[0].of(0).why_masked(0, 6) is None


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # torch's own fast path, in the plain run
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_transformer_encoder_with_padding_and_its_fast_path(training: bool, causal: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(24, 4, 32, dropout=0.0, batch_first=True)
    module, x = nn.TransformerEncoder(layer, 2).train(training), inputs(2, 7, 24)
    mask = nn.Transformer.generate_square_subsequent_mask(7) if causal else None
    floats = torch.zeros(2, 7).masked_fill(PADDING, float("-inf"))
    padding = floats if causal else PADDING
    with torch.no_grad():
        plain = module(x, mask=mask, src_key_padding_mask=padding, is_causal=causal)
        with core.capture(module) as records:
            seen = module(x, mask=mask, src_key_padding_mask=padding, is_causal=causal)
    assert [record.name for record in records] == ["layers.0.self_attn", "layers.1.self_attn"]
    real = ~PADDING
    assert (seen[real] - plain[real]).abs().max() <= 2e-6
    for record in records:
        for text in range(2):
            pattern = record.of(text).pattern()
            assert (pattern.sum(-1) - 1).abs().max() <= 1e-6
            assert not causal or pattern.triu(1).abs().max() == 0
        assert record.of(1).pattern()[..., 5:].abs().max() == 0


def test_transformer_names_self_and_cross() -> None:
    torch.manual_seed(0)
    module = nn.Transformer(24, 4, 1, 2, 32, dropout=0.0, batch_first=True)
    with core.capture(module) as records:
        module(inputs(2, 7, 24), inputs(2, 5, 24))
    assert [(r.name, r.site, r.n_query, r.n_key) for r in records] == [
        ("encoder.layers.0.self_attn", "attn", 7, 7),
        ("decoder.layers.0.self_attn", "attn", 5, 5),
        ("decoder.layers.0.multihead_attn", "cross_attn", 5, 7),
        ("decoder.layers.1.self_attn", "attn", 5, 5),
        ("decoder.layers.1.multihead_attn", "cross_attn", 5, 7),
    ]
    assert all(fused_error(r.of(text)) <= 1e-6 for r in records for text in range(2))


class Grouped(nn.Module):
    """Grouped-query attention with a float mask that biases and hides."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, bias, scale=0.3, enable_gqa=True)


def test_grouped_queries_float_masks_and_a_scale_of_its_own() -> None:
    q, k, v = inputs(2, 4, 5, 8), inputs(2, 2, 6, 8), inputs(2, 2, 6, 8)
    bias = inputs(1, 4, 5, 6).clone()
    bias[..., 2] = float("-inf")
    with core.capture(Grouped()) as records:
        Grouped()(q, k, v, bias)
    (record,) = records
    assert (record.n_heads, record.n_kv_heads) == (4, 2)
    eager = (q[1] @ k[1].repeat_interleave(2, 0).mT * 0.3 + bias[0]).softmax(-1)
    assert (record.of(1).pattern() - eager).abs().max() <= 1e-6
    seen = record.of(1)
    assert seen.why_masked(0, 2) == "masked by the caller" and seen.why_masked(0, 1) is None


def test_a_capture_leaves_nothing_behind_even_after_an_error() -> None:
    module = nn.MultiheadAttention(8, 2)
    fused = F.scaled_dot_product_attention
    with pytest.raises(AssertionError, match="embedding dimension of 8"), core.capture(module):
        module(inputs(3, 9), inputs(3, 9), inputs(3, 9))
    assert F.scaled_dot_product_attention is fused
    assert not module._forward_hooks and not module._forward_pre_hooks


def test_captures_in_two_threads_do_not_mix() -> None:
    lengths: dict[int, set[int]] = {}

    def work(n: int) -> None:
        module, x = nn.MultiheadAttention(8, 2, batch_first=True), inputs(1, n, 8)
        seen = set()
        for _ in range(40):
            with core.capture(module) as records, torch.no_grad():
                module(x, x, x, need_weights=False)
            seen |= {record.n_query for record in records} | {100 + len(records)}
        lengths[n] = seen

    threads = [threading.Thread(target=work, args=(n,)) for n in (5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == {5: {5, 101}, 9: {9, 101}}
