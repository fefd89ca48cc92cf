"""capture(): masks and biases of every kind, dtype and broadcast shape give the call's own weights, with the right reasons."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import core
from core.model.custom_mask import masked_values
from core.model.rules import GivenBias, MaskRule
from tests.thorough import THOROUGH

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
ROUNDING = {torch.float32: 2e-6, torch.float64: 2e-6, torch.bfloat16: 3e-2, torch.float16: 4e-3}
LOWEST = "the dtype's lowest"
FILLS = (-math.inf, LOWEST, -1e9, -1e4, -65504.0)


class Attends(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **kwargs: object) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **kwargs)  # type: ignore[arg-type]


def recorded(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **kwargs: object
) -> tuple[core.AttentionRecord, Tensor]:
    module = Attends()
    with core.capture(module) as records:
        out = module(q, k, v, mask, **kwargs)
    (record,) = records
    return record, out


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def weights(q: Tensor, k: Tensor, mask: Tensor | None, leading: tuple[int, ...]) -> Tensor:
    """The textbook's attention in float64, [text, head, query, key]; rows with nothing to see are zeros."""
    q, k = (x if x.ndim > 2 else x[None] for x in (q, k))
    scores = q.double() @ k.double().mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.double()
    found = torch.nan_to_num(scores.softmax(-1))
    heads = found.shape[-3]
    return found.expand(*leading, heads, *found.shape[-2:]).reshape(-1, heads, *found.shape[-2:])


SHARE = 5 if THOROUGH else 19  # one in so many of the cases is tried with each shape
FULL = (2, 3, 4, 5, 6)  # two leading axes, heads, queries, keys
SHAPES = sorted(
    {
        axes[start:]
        for axes in itertools.product(*((1, n) for n in FULL))
        for start in range(4)
        if set(axes[:start]) <= {1}
    },
    key=lambda shape: (len(shape), shape),
)


@pytest.mark.thorough(but=15)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_mask_of_any_shape_gives_the_calls_own_weights(shape: tuple[int, ...]) -> None:
    """Bool, 0 and −inf, finite numbers and a bias below them, over five axes that may each broadcast, in every dtype."""
    cases = list(enumerate(itertools.product(DTYPES, ("bool", "bias", *FILLS))))
    for n, (dtype, fill) in cases[SHAPES.index(shape) % SHARE :: SHARE]:  # every case meets several shapes
        q, k, v = (drawn(n, *FULL[:3], length, 8).to(dtype) for length in (5, 6, 6))
        keep = torch.rand(shape, generator=torch.Generator().manual_seed(n)) > 0.4
        if fill in (-1e9, -1e4, -65504.0) or (fill == LOWEST and dtype == torch.float16):
            keep[..., 0] = True  # rows of nothing but such numbers are what rounding makes of them: the next test's
        if fill == "bool":
            mask = keep
        else:
            mask = drawn(n + 1, *shape).to(dtype) if n % 2 or fill == "bias" else torch.zeros(shape, dtype=dtype)
            number = torch.finfo(dtype).min if fill == LOWEST else 0.0 if fill == "bias" else float(fill)
            mask = mask + torch.zeros_like(mask).masked_fill(
                ~keep, max(number, torch.finfo(dtype).min) if number > -math.inf else number
            )
        record, _ = recorded(q, k, v, mask)
        want = weights(q, k, mask, FULL[:2])
        assert len(want) == record.batch_q.shape[0] == 6
        hides = torch.zeros(FULL, dtype=torch.bool) if fill == "bias" else (~keep).expand(FULL)
        hides = hides.reshape(6, *FULL[2:])
        for text in range(6):
            seen = record.of(text)
            what = (shape, dtype, fill, text)
            assert (seen.pattern().double() - want[text]).abs().max() <= 2e-6, what
            receipt = seen.receipt()
            assert receipt.fused_error is not None and receipt.fused_error <= ROUNDING[dtype], what
            for head in range(4):
                assert torch.equal(~seen.mask(head=head), hides[text, head]), what
                assert torch.equal(seen.blocked_rows(head), hides[text, head].all(-1)), what
            query, key = n % 5, n % 6
            reason = "masked by the caller" if hides[text, 1, query, key] else None
            assert seen.why_masked(query, key, 1) == reason, what
            scores, after = seen.scores().double(), seen.scores(masked=True)
            assert scores.isfinite().all() and scores.abs().max() < 100, (
                what
            )  # a scale of colours has something to show
            assert torch.equal(after == -math.inf, hides[text]), what
            sees = ~hides[text].all(-1)
            assert (after.softmax(-1) - seen.pattern())[sees].abs().max() <= 1e-6 if sees.any() else True, what
            assert receipt.blocked == max(int(hides[text, head].all(-1).sum()) for head in range(4)), what


def test_a_row_of_which_all_is_hidden_by_numbers_keeps_the_weights_that_it_got() -> None:
    q = drawn(1, 1, 2, 5, 8)
    lowest, old = torch.finfo(torch.float32).min, -1e4
    for fill in (lowest, -1e9, old, -math.inf):
        mask = torch.full((5, 5), fill)
        mask[:2] = 0
        record, out = recorded(q, q, q, mask)
        assert record.blocked_rows().tolist() == [False, False, True, True, True]
        assert record.why_masked(3, 3) == "masked by the caller" and record.why_masked(1, 4) is None
        assert (record.pattern() @ q[0] - out[0]).abs().max() <= 1e-6  # what the model made of it
        assert record.receipt().blocked == 3
        if fill == -math.inf:
            assert record.pattern()[:, 2:].abs().max() == 0
        elif fill == old:  # softmax does not change when all of a row is moved
            assert (record.pattern()[:, 2:] - weights(q, q, None, (1,))[0, :, 2:]).abs().max() <= 1e-3
        else:
            assert (record.pattern()[:, 2:] - 0.2).abs().max() <= 1e-6 or fill == -1e9


def test_a_mask_that_low_scores_outdo_is_found_out_by_the_receipt() -> None:
    """A model whose scores go below its mask lets the future through: the weights say so, and so does the receipt."""
    q = torch.full((1, 1, 3, 4), 100.0)
    k = torch.full((1, 1, 3, 4), -1000.0)
    k[0, 0, 2] = 0
    mask = torch.triu(torch.full((3, 3), -1e4), 1)
    record, _ = recorded(q, k, k, mask)
    assert record.why_masked(0, 2) == "masked by the caller" and record.pattern()[0, 0, 2] == 1
    assert record.receipt().masked_max == 1


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ([0.0, -math.inf], -math.inf),
        ([0.0, -100.0], -math.inf),  # Swin's windows: far, but a number among numbers
        ([0.0, -1e4], -4096),
        ([3.5, -1e4 + 3.5, -2e4], -4096),
        ([0.0, -65504.0, -math.inf], -4096),
        ([float("nan"), -1e9], -4096),
        ([0.5 * -i for i in range(20_000)], -math.inf),  # ALiBi over 20,000 tokens
        ([*(0.5 * -i for i in range(20_000)), -1e9], -32768),
        ([-1e9, -1e9], -4096),
        ([1e30, math.inf], -math.inf),
        ([], -math.inf),
    ],
)
def test_the_rule_for_numbers(values: list[float], limit: float) -> None:
    assert masked_values(torch.tensor(values)) == limit


def test_alibi_over_a_long_text_hides_nothing_and_with_a_mask_the_future() -> None:
    n = 9000
    q, k = drawn(1, 1, 2, 1, 8), drawn(2, 1, 2, n, 8)
    bias = -torch.tensor([0.7, 0.01])[None, :, None, None] * torch.arange(n - 1, -1, -1).float()
    record, _ = recorded(q, k, k, bias)
    assert record.mask().all() and record.why_masked(0, 0) is None
    record, _ = recorded(
        q, k, k, bias + torch.zeros(n).masked_fill(torch.arange(n) > 8000, torch.finfo(torch.float32).min)
    )
    assert record.mask()[0].tolist() == [i <= 8000 for i in range(n)]


@pytest.mark.parametrize(
    ("q_axes", "kv_axes", "mask_axes", "batch"),
    [
        ((2, 3, 4), (2, 3, 4), (2, 1, 4), 6),  # NVIDIA/Fuser#5597
        ((2, 3, 4), (2, 3, 4), (2, 1, 1), 6),
        ((2, 4), (1, 4), (1, 1), 2),  # one memory for all
        ((1, 4), (2, 4), (1, 1), 2),
        ((2, 3, 4), (3, 4), (2, 1, 1), 6),
        ((2, 1, 4), (1, 3, 4), (1, 1, 1), 6),
        ((2, 1), (2, 4), (1, 4), 2),  # one head of queries
        ((2, 4), (2, 1), (1, 4), 2),  # or of keys
        ((4,), (4,), (1,), 1),
        ((), (), (), 1),
    ],
)
@pytest.mark.parametrize("kind", ["bool", "bias", "lowest"])
def test_leading_axes_broadcast(
    q_axes: tuple[int, ...], kv_axes: tuple[int, ...], mask_axes: tuple[int, ...], batch: int, kind: str
) -> None:
    q, k, v = drawn(1, *q_axes, 5, 8), drawn(2, *kv_axes, 6, 8), drawn(3, *kv_axes, 6, 7)
    keep = drawn(4, *mask_axes, 5, 6) > -0.5
    mask = {
        "bool": keep,
        "bias": drawn(5, *mask_axes, 5, 6) * 3,
        "lowest": torch.zeros(keep.shape).masked_fill(~keep, torch.finfo(torch.float32).min),
    }[kind]
    record, out = recorded(q, k, v, mask)
    axes = torch.broadcast_shapes(q_axes, kv_axes, mask_axes)
    leading = tuple(axes[:-1])
    whole = [x.expand(*axes, *x.shape[-2:]).reshape(batch, -1, *x.shape[-2:]) for x in (q, k, v)]
    want = weights(q, k, mask, leading).reshape(batch, -1, 5, 6)
    assert record.batch_q.shape[0] == batch and torch.equal(record.batch_q, whole[0])
    assert (record.patterns() - want).abs().max() <= 2e-6
    for text in range(batch):
        seen = record.of(text)
        z = out.reshape(batch, -1, 5, 7)[text]
        assert (seen.z() - z).abs().max() <= 2e-6
        receipt = seen.receipt()
        assert receipt.fused_error is not None and receipt.fused_error <= 2e-6


def test_grouped_heads_of_different_number_for_keys_and_values() -> None:
    q, k, v = drawn(1, 2, 6, 5, 8), drawn(2, 2, 3, 5, 8), drawn(3, 2, 2, 5, 8)
    record, out = recorded(q, k, v, enable_gqa=True)
    want = weights(q, k.repeat_interleave(2, 1), None, (2,))
    assert (record.patterns() - want).abs().max() <= 2e-6
    assert all((record.of(text).z() - out[text]).abs().max() <= 2e-6 for text in range(2))


def test_a_receipt_is_held_to_what_the_call_returned() -> None:
    """A record with a wrong rule, or another call's keys, must not prove itself."""
    q, k, v = (drawn(i, 2, 3, 7, 8) for i in range(3))
    mask = torch.rand(2, 1, 7, 7, generator=torch.Generator().manual_seed(1)) > 0.4
    mask[..., 0] = True
    record, _ = recorded(q, k, v, mask)

    def error(wrong: core.AttentionRecord) -> float:
        found = wrong.of(1).receipt().fused_error
        assert found is not None
        return found

    rule = record.batch_rule
    assert error(record) <= 1e-6
    assert error(replace(record, batch_rule=replace(rule, mask=MaskRule(3, 7, 7)))) > 0.1
    assert error(replace(record, batch_rule=replace(rule, scale=3.0))) > 0.1
    assert error(replace(record, keys=drawn(9, 2, 3, 7, 8))) > 0.1
    assert rule.mask.custom is not None
    other = replace(rule.mask, custom=rule.mask.custom.of(0))
    assert error(replace(record, batch_rule=replace(rule, mask=other))) > 0.1
    biased, _ = recorded(q, k, v, drawn(4, 2, 1, 7, 7) * 3)
    assert isinstance(biased.batch_rule.bias, GivenBias) and error(biased) <= 1e-6
    assert error(replace(biased, batch_rule=replace(biased.batch_rule, bias=None))) > 0.1


def test_dropout_leaves_the_receipt_a_result_to_be_held_to() -> None:
    q = drawn(1, 1, 2, 300, 8)
    before = torch.get_rng_state()
    record, out = recorded(q, q, q, dropout_p=0.5)
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    assert torch.equal(F.scaled_dot_product_attention(q, q, q, dropout_p=0.5), out)  # the caller's own draw
    assert torch.equal(torch.get_rng_state(), after)
    receipt = record.receipt()
    assert receipt.fused_error is not None and receipt.fused_error <= 5e-6 and receipt.rows == 150


def test_a_mask_that_the_layers_share_is_kept_once() -> None:
    q, mask = drawn(1, 1, 2, 64, 8), torch.zeros(1, 1, 64, 64).masked_fill(torch.ones(64, 64).triu(1).bool(), -1e9)
    module = Attends()
    with core.capture(module) as records:
        for _ in range(3):
            module(q, q, q, mask.clone())
        module(q, q, q, mask.expand(1, 2, 64, 64) * 2)
    kept = [record.batch_rule.mask.custom for record in records]
    assert all(one is not None for one in kept)
    assert len({one.values.data_ptr() for one in kept if one is not None}) == 2
    padding = torch.ones(1, 1, 1, 64, dtype=torch.bool)
    padding[..., 50:] = False
    record, _ = recorded(q, q, q, padding.expand(1, 2, 64, 64))
    given = record.batch_rule.mask.custom
    assert given is not None and given.values.numel() == 64  # not what expand() makes of it
