"""The largest number of each patch: torch's own answer on a CPU, which is where its answer is right."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from core.run.attention import largest


@pytest.mark.parametrize(("m", "n"), [(12, 4), (12, 12), (13, 4), (13, 12), (100, 64), (257, 64), (7, 1), (5, 3)])
def test_patches_are_torch_s(m: int, n: int) -> None:
    x = torch.randn(3, 5, m, generator=torch.Generator().manual_seed(m))
    assert torch.equal(largest(x, n), F.adaptive_max_pool1d(x, n))
    assert torch.equal(largest(x.mT, 2), F.adaptive_max_pool1d(x.mT, 2))  # however it lies in memory
    assert torch.equal(largest(x[0, 0], n), F.adaptive_max_pool1d(x[0], n)[0])


def test_no_cell_is_left_out() -> None:
    for place in range(11):
        x = torch.zeros(11)
        x[place] = 1
        assert largest(x, 4).max() == 1


def test_what_is_not_a_number_stays_one() -> None:
    x = torch.ones(9)
    x[4] = float("nan")
    assert torch.isnan(largest(x, 2)).all()  # the middle belongs to both
    assert torch.isnan(largest(x, 3)).tolist() == [False, True, False]
