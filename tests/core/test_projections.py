"""One product for queries, keys and values against three."""

from __future__ import annotations

import pytest
import torch

from core.labs import worked_examples

CPU = torch.device("cpu")


def test_one_product_and_three_give_the_same_numbers_and_both_are_timed() -> None:
    found = worked_examples.benchmark_projections(96, (96, 48, 48), 40, CPU)
    assert found.difference < 1e-5 and found.fused > 0 and found.separate > 0
    assert (found.rows, found.of, found.device) == (40, 40, "cpu")


def test_what_would_take_long_is_cut_or_refused() -> None:
    found = worked_examples.benchmark_projections(512, (512, 512, 512), 1 << 24, CPU)
    assert found.rows < found.of == 1 << 24
    with pytest.raises(ValueError, match="12,288 × 36,864"):
        worked_examples.benchmark_projections(12_288, (12_288, 12_288, 12_288), 1, CPU)
