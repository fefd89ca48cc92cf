"""Maps of several heads: they are what their names say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import TooLarge
from core.read import measures

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]


def test_mean_and_max_over_heads_and_layers(tiny: Tiny) -> None:
    records = core.trace(tiny(), ids=IDS).attention
    members = [(records[0], 1), (records[0], 3), (records[1], 0)]
    stack = torch.stack([records[0].pattern()[1], records[0].pattern()[3], records[1].pattern()[0]])
    assert torch.allclose(measures.mean(members), stack.mean(0), atol=1e-6)
    assert torch.allclose(measures.maximum(members), stack.amax(0), atol=1e-6)
    assert torch.allclose(measures.mean(members, slice(2, 5), [0, 1]), stack.mean(0)[2:5, :2], atol=1e-6)
    with pytest.raises(ValueError, match="at least one"):
        measures.mean([])


def test_heads_of_different_shapes_are_not_mixed(tiny: Tiny) -> None:
    run = core.trace(tiny(n_encoder_layers=1, n_decoder_layers=1), ids=IDS, target_ids=[1, 2, 3])
    with pytest.raises(ValueError, match="different shapes"):
        measures.maximum([(run.attention[0], 0), (run.attention[1], 0)])
    with pytest.raises(ValueError, match="one stack"):
        measures.rollout(run.attention, 0)


def test_rollout_by_hand(tiny: Tiny) -> None:
    records = core.trace(tiny(n_decoder_layers=3), ids=IDS).attention
    eye = torch.eye(len(IDS))
    first, second = (0.5 * record.pattern().mean(0) + 0.5 * eye for record in records[:2])
    found = measures.rollout(records, 1)
    assert torch.allclose(found, second @ first, atol=1e-6)
    assert torch.allclose(found.sum(-1), torch.ones(len(IDS)), atol=1e-6)


def test_rollout_of_a_long_text_is_refused_with_both_numbers(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "ROLLOUT_LENGTH", 8)
    with pytest.raises(TooLarge, match="9 tokens are too many, 8 are the most"):
        measures.rollout(core.trace(tiny(), ids=IDS).attention, 1)


def test_value_weighted_is_the_norm_of_what_is_written(tiny: Tiny) -> None:
    record = core.trace(tiny(n_kv_heads=2), ids=IDS).attention[1]
    assert record.o_weight is not None
    w = record.o_weight[:, 18:24]  # head 3
    vectors = record.pattern()[3][..., None] * record.v[1]  # [query, key, d_head], by the second of two kv heads
    by_hand = (vectors @ w.T).norm(dim=-1)
    assert torch.allclose(measures.value_weighted(record, 3), by_hand, atol=1e-5)
    assert torch.allclose(measures.value_weighted(record, 3, 4, [1, 2]), by_hand[4:5, 1:3], atol=1e-5)


def test_measures_on_maps_that_everybody_knows() -> None:
    n = 8
    uniform, itself = torch.full((n, n), 1 / n), torch.eye(n)
    before = torch.eye(n).roll(1, 0)
    before[0], sink = torch.eye(n)[0], torch.zeros(n, n).index_fill(1, torch.tensor([0]), 1.0)
    assert torch.allclose(measures.entropy(uniform), torch.full((n,), 3.0))
    assert measures.entropy(itself).abs().max() == 0
    assert measures.distance(itself).abs().max() == 0 and measures.distance(before)[1:].tolist() == [1.0] * 7
    assert measures.previous_token(before) == 1 and measures.previous_token(itself) == 0
    assert measures.next_token(before.T) > 0.8 and measures.diagonal(itself) == 1
    assert measures.sink_share(sink) == 1 and measures.sink_share(uniform) == pytest.approx(1 / n)
    assert torch.allclose(measures.similarity(torch.stack([itself, before, itself]))[0, 2], torch.tensor(1.0))
    repeated = [1, 2, 3, 4, 1, 2, 3, 4]
    induction = torch.zeros(n, n)
    induction[:4, 0] = 1
    induction[torch.arange(4, 8), torch.arange(1, 5)] = 1
    assert measures.induction(induction, repeated) == 1 and measures.induction(itself, list(range(n))).isnan()
    rows = torch.tensor([2, 5])
    assert measures.distance(before[rows], rows).tolist() == [1.0, 1.0]
    assert measures.previous_token(before[rows], rows) == 1


def test_a_map_correlates_with_another_over_the_cells_that_count() -> None:
    cells = torch.ones(3, 3, dtype=torch.bool).tril()
    one = torch.tensor([[1.0, 0, 0], [0.2, 0.8, 0], [0.5, 0.1, 0.4]])
    maps = torch.stack([one, one.flip(0), torch.full((3, 3), 0.5), torch.rand(3, 3)])
    found = measures.correlation(maps, one, cells)
    wanted = np.corrcoef(one[cells].numpy(), maps[3][cells].numpy())[0, 1]
    assert found[0] == pytest.approx(1) and found[2].isnan() and found[3] == pytest.approx(wanted, abs=1e-5)
    cells[:, 0] = False  # what most rest on is left out
    apart = measures.correlation(maps, one, cells)
    assert apart[1] != pytest.approx(found[1].item(), abs=1e-3)
    assert apart[3] == pytest.approx(np.corrcoef(one[cells].numpy(), maps[3][cells].numpy())[0, 1], abs=1e-5)
    with pytest.raises(ValueError, match="different shapes"):
        measures.correlation(maps, one[:2], cells)


def test_rows_that_see_nothing_do_not_count() -> None:
    pattern = torch.tensor([[0.0, 0.0], [0.25, 0.75]])
    assert measures.mean_received(pattern).tolist() == [0.25, 0.75]
