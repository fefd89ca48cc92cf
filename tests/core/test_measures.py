"""Shares of the average row, how far a head moved, attention by distance: on maps that can be checked by hand."""

from __future__ import annotations

import pytest
import torch

from core.read import measures


def test_shares_of_the_average_row() -> None:
    n = 8
    uniform = torch.full((3, n, n), 1 / n)
    cells = measures.near_cells(torch.arange(n), n)
    assert cells.sum() == 2 * sum(n - away for away in (2, 3, 4, 5))
    assert torch.allclose(measures.near(uniform), torch.full((3,), cells.sum().item() / n / n))
    assert torch.allclose(measures.near(uniform, but_not=[0]), torch.full((3,), (cells.sum().item() - 4) / n / n))
    assert measures.near(torch.eye(n)) == 0
    rows = torch.tensor([0, 7])
    assert measures.near(uniform[0, rows], rows) == pytest.approx(4 / n)


def test_same_token_counts_other_copies_only() -> None:
    ids = [5, 6, 5, 7, 5]
    pattern = torch.zeros(5, 5)
    pattern[0, 2], pattern[2, 4], pattern[4, 4] = 1.0, 0.5, 1.0
    assert measures.same_token(pattern, ids).item() == pytest.approx(0.5)  # rows 0, 2, 4: 1, 0.5, 0
    pattern[2, 0], pattern[4, 2] = 0.25, 0.75
    assert measures.same_token(pattern, ids, causal=True).item() == pytest.approx(0.5)  # rows 2 and 4: 0.25, 0.75
    assert measures.same_token(torch.eye(3), [1, 2, 3]).isnan()


def test_rows_that_see_nothing_are_in_no_share() -> None:
    pattern = torch.tensor([[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    first = torch.zeros(1, 3, 3, dtype=torch.bool)
    first[..., 0] = True
    assert measures.shares(pattern, first).item() == pytest.approx(0.25)
    assert measures.shares(pattern, first, torch.tensor([[True, True, False]])).item() == pytest.approx(0.5)


def test_how_far_a_head_moved() -> None:
    before = torch.eye(4).expand(2, 4, 4)
    assert measures.total_variation(before, before).tolist() == [0.0, 0.0]
    assert measures.total_variation(before, before.roll(1, -1)).tolist() == [1.0, 1.0]
    half = (before + before.roll(1, -1)) / 2
    assert measures.total_variation(before, half).tolist() == [0.5, 0.5]
    blocked = before.clone()
    blocked[:, 0] = 0
    moved_too = half.clone()
    moved_too[:, 0] = 0
    assert measures.total_variation(blocked, moved_too).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="different shapes"):
        measures.total_variation(before, before[:, :3])


def test_attention_by_distance() -> None:
    n, places = 5, torch.arange(5)
    before = torch.eye(n).roll(-1, -1)  # row i looks at key i − 1
    before[0] = torch.eye(n)[0]
    assert measures.by_distance(before, places, 2).tolist() == pytest.approx([0.0, 1.0, 0.2, 0.0, 0.0])
    # where the model believes that the tokens stand the other way round, the same map looks ahead
    assert measures.by_distance(before, places.flip(0), 2).tolist() == pytest.approx([0.0, 0.0, 0.2, 1.0, 0.0])
    wide = measures.by_distance(before.expand(3, n, n), places, 6)
    assert wide.shape == (3, 13) and wide[:, [0, 1, 11, 12]].isnan().all() and not wide[:, 2:11].isnan().any()
    cross = torch.tensor([[0.25, 0.75]])
    assert measures.by_distance(cross, torch.tensor([0]), 1, torch.tensor([0, 1])).tolist()[1:] == [0.25, 0.75]
    blocked = before.clone()
    blocked[3] = 0
    assert measures.by_distance(blocked, places, 1)[0].item() == 1.0
