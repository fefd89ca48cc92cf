"""AttentionRecord: every slice is the slice of the whole, in little memory, with a reason for every hidden cell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.model import rules
from core.model.custom_mask import Region, apply_regions
from core.model.rules import MaskRule, ScoreRule
from core.plan.tracing import LiveBytes
from core.run.attention import AttentionRecord
from core.run.recorder import HeldTensor
from tests.core.conftest import fused_error

Tiny = Callable[..., Loaded]


def record_of(n: int, heads: int = 4, kv: int = 2, d_head: int = 8, **mask: Any) -> AttentionRecord:
    generator = torch.Generator().manual_seed(n)
    q = torch.randn(1, heads, n, d_head, generator=generator) * 2
    k = torch.randn(1, kv, n, d_head, generator=generator) * 2
    v = torch.randn(1, kv, n, d_head, generator=generator)
    rule = ScoreRule(MaskRule(heads, n, n, **mask), d_head**-0.5)
    return AttentionRecord("decoder.blocks.0.attn", "decoder", 0, "attn", q, k, HeldTensor(v), rule)


def test_a_pattern_is_an_eager_softmax_of_the_same_q_and_k() -> None:
    record = record_of(23, causal=True)
    scores = record.q @ record.k.repeat_interleave(2, 0).mT * 8**-0.5
    hidden = torch.ones(23, 23).triu(1).bool()
    assert torch.equal(record.scores(), scores)
    assert torch.equal(record.pattern(), scores.masked_fill(hidden, float("-inf")).softmax(-1))
    assert torch.equal(record.raw(), record.q @ record.k.repeat_interleave(2, 0).mT)
    assert record.scores(masked=True)[0, 3, 4] == float("-inf")


@pytest.mark.parametrize(
    ("heads", "queries", "keys"),
    [
        (None, None, None),
        (2, 5, None),
        ([3, 0], slice(4, 9), [0, 7, 7]),
        (-1, -1, -1),
        (slice(None), [8, 2], slice(0, 20, 3)),
    ],
)
def test_any_slice_is_that_slice_of_the_whole(heads: Any, queries: Any, keys: Any) -> None:
    record = record_of(23, causal=True)

    def as_list(index: Any, n: int) -> list[int]:
        if index is None or isinstance(index, slice):
            return list(range(n))[index or slice(None)]
        return [i % n for i in ([index] if isinstance(index, int) else index)]

    h, i, j = as_list(heads, 4), as_list(queries, 23), as_list(keys, 23)
    whole = record.pattern()[h][:, i][:, :, j]
    assert (record.pattern(heads, queries, keys) - whole).abs().max() <= 1e-6
    assert (record.scores(heads, queries, keys) - record.scores()[h][:, i][:, :, j]).abs().max() <= 1e-5


def test_an_index_that_is_not_there_says_which_there_are() -> None:
    record = record_of(5)
    with pytest.raises(IndexError, match=r"index 4\.\.4 of 4"):
        record.pattern(heads=4)
    with pytest.raises(IndexError, match="query 9 of 5"):
        record.why_masked(9, 0)
    with pytest.raises(IndexError, match="text 1 of a batch of 1"):
        record.of(1)


def test_a_tile_holds_no_more_than_itself_and_a_block_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(1500, heads=2, kv=1, causal=True)
    whole = record.pattern(1, slice(700, 800), slice(0, 64)).clone()
    monkeypatch.setattr(rules, "BLOCK_BYTES", 1 << 18)  # 43 rows of 1,500 keys
    with LiveBytes() as live:
        tile = record.pattern(1, slice(700, 800), slice(0, 64))
    assert (tile - whole).abs().max() <= 1e-6
    held = tile.numel() * 4 + record.n_key * 8 * 4 * 2  # the tile, and this head's keys in two layouts
    # scores and softmax of one block of rows are alive together, and the mask at a quarter of it; never the 9 MB map
    assert live.peak <= held + 3 * (1 << 18)


def test_thumbnails_keep_the_largest_weight_of_every_patch() -> None:
    record = record_of(100, causal=True)
    picture = record.thumbnail(10)
    assert picture.exact and picture.values.shape == (4, 10, 10)
    whole = record.pattern().unflatten(1, (10, 10)).unflatten(3, (10, 10)).amax((2, 4))
    assert torch.equal(picture.values, whole)
    small = record_of(7).thumbnail(64, heads=[1])
    assert small.how == "every weight" and torch.equal(small.values[0], record_of(7).pattern(1)[0])


def test_a_long_record_says_that_its_thumbnail_is_sampled() -> None:
    record = record_of(1100, heads=1, kv=1, causal=True)
    picture = record.thumbnail(20)
    assert not picture.exact and picture.how.startswith("20 of 1100 query rows")
    assert torch.allclose(picture.values[0, 0], record.pattern(0, 27)[0, 0].unflatten(0, (20, 55)).amax(1))
    assert record.thumbnail(20, rows="all").exact


def test_rows_that_may_see_nothing_are_reported_and_never_nan() -> None:
    keep = torch.ones(1, 6, dtype=torch.bool)
    keep[0, :2] = False
    record = record_of(6, causal=True, keep=keep)  # padding on the left: the first two rows see only padding
    assert record.blocked_rows().tolist() == [True, True, False, False, False, False]
    pattern = record.pattern()
    assert not pattern.isnan().any() and pattern[:, :2].abs().max() == 0
    assert record.receipt().blocked == 2
    assert fused_error(record) <= 1e-6


def test_every_hidden_cell_has_its_reason() -> None:
    keep = torch.ones(1, 8, dtype=torch.bool)
    keep[0, 7] = False
    edits = apply_regions(
        (Region(False, cells=((5, range(5, 6)),)), Region(True, 2, cells=((1, range(6, 7)),))), n_heads=4
    )
    record = record_of(8, causal=True, window=3, keep=keep, edits=edits)
    assert record.why_masked(2, 4) == "future"
    assert record.why_masked(2, 7) == "padding"
    assert record.why_masked(6, 1) == "outside the window"
    assert record.why_masked(5, 5) == "edited"
    assert record.why_masked(1, 6, head=2) is None and record.why_masked(1, 6, head=1) == "future"
    for head in range(4):
        mask = record.mask(head=head)
        reasons = [[record.why_masked(i, j, head) for j in range(8)] for i in range(8)]
        assert [[r is None for r in row] for row in reasons] == mask.tolist()
        assert record.pattern(head)[0][~mask].abs().max() == 0


def test_values_of_a_long_run_come_back_from_another_pass(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, ids = tiny(n_kv_heads=2, position="rotary"), list(range(12))
    edit = core.edits.Ablate("decoder", 0, 1)
    short = core.trace(loaded, ids=ids, interventions=[edit])
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)  # core.trace itself is the function
    long = core.trace(loaded, ids=ids, interventions=[edit])
    assert long.nbytes < short.nbytes
    for a, b in zip(short.attention, long.attention, strict=True):
        assert torch.equal(a.v, b.v)
        assert torch.equal(a.output_norms(), b.output_norms())
    assert short.predictions() == long.predictions()
    assert short.predictions([3, 5]) == long.predictions([3, 5])


def test_another_pass_for_values_goes_no_further_than_their_layer(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny(n_decoder_layers=4)
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)
    run, left = core.trace(loaded, ids=list(range(12))), []
    assert loaded.model.decoder is not None
    for i, block in enumerate(loaded.model.decoder.blocks):
        block.register_forward_pre_hook(lambda *_, i=i: left.append(i))
    assert run.attention[1].v.shape[1] == 12
    assert left == [0, 1]


def test_what_a_head_writes_adds_up_to_the_sublayers_output(tiny: Tiny) -> None:
    loaded = tiny(n_decoder_layers=1, out_bias=False)
    seen: list[torch.Tensor] = []
    with core.hooked(loaded.model, {"decoder.blocks.0.hook_attn_out": seen.append}):
        record = core.trace(loaded, ids=[1, 5, 9, 13]).attention[0]
    assert record.o_weight is not None
    w = record.o_weight.unflatten(1, (4, 6))  # [d_model, head, d_head]
    z = torch.stack([record.pattern(h)[0] @ record.v[h] for h in range(4)])
    each = torch.einsum("hqd,mhd->hqm", z, w)
    assert (each.sum(0) - seen[0][0]).abs().max() <= 1e-5
    assert torch.allclose(record.output_norms(), each.norm(dim=-1), atol=1e-5)
    weighted = record.pattern() * record.value_norms()[:, None]
    assert (weighted.sum(-1) + 1e-5 >= record.output_norms()).all()  # the triangle inequality


def test_bias_and_temperature_enter_the_recomputed_pattern(tiny: Tiny) -> None:
    for position in ("alibi", "relative"):
        loaded = tiny(position=position)
        run = core.trace(loaded, ids=list(range(9)), interventions=[core.edits.Temperature(1.7)])
        spelled: dict[str, torch.Tensor] = {}
        points = {
            n: (lambda x, n=n, spelled=spelled: spelled.update({n: x}))
            for n in core.hook_points(loaded.model)
            if n.endswith("pattern")
        }
        with core.hooked(loaded.model, points):
            core.trace(loaded, ids=list(range(9)), interventions=[core.edits.Temperature(1.7)])
        for record in run.attention:
            assert (record.pattern() - spelled[f"{record.name}.hook_pattern"][0]).abs().max() <= 1e-6


def test_a_replaced_pattern_is_shown_as_it_was_replaced(tiny: Tiny) -> None:
    loaded = tiny()
    point = "decoder.blocks.1.attn.hook_pattern"
    with core.hooked(loaded.model, {point: lambda p: p.roll(1, -1)}):
        record = core.trace(loaded, ids=[1, 2, 3, 4]).attention[1]
    plain = core.trace(loaded, ids=[1, 2, 3, 4]).attention[1]
    assert torch.equal(record.pattern(), plain.pattern().roll(1, -1))
    assert record.receipt().fused_error is None and record.receipt().masked_max > 0


def test_a_picture_of_no_pixels_is_refused(tiny: Tiny) -> None:
    with pytest.raises(ValueError, match="at least one pixel"):
        core.trace(tiny(), ids=[3, 1, 4]).attention[0].thumbnail(0)
