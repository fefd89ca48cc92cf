"""The variance of q·k is d, and a softmax without the division leaves little choice: measured, against closed forms and a published run."""

from __future__ import annotations

import pytest

import core
from core.labs.sizes import WIDTHS, sharpness, spread

KING = "The old king loved the golden bird, and the old"


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("d", WIDTHS)
def test_the_variance_of_random_products_is_d(d: int) -> None:
    found = spread(d)
    assert found.variance / d == pytest.approx(1, abs=0.05)
    assert found.scaled == pytest.approx(found.variance / d)
    assert found == spread(d), "the same for the same seed"


def test_without_the_division_wide_rows_saturate_and_with_it_width_does_not_matter() -> None:
    narrow, wide = spread(1), spread(512)
    assert wide.largest > 0.95 and narrow.largest < 0.5
    assert wide.largest_scaled == pytest.approx(spread(64).largest_scaled, abs=0.02)
    assert narrow.largest == pytest.approx(narrow.largest_scaled)


def test_a_model_run_without_it_has_little_choice_left() -> None:
    loaded = core.load("storyteller")
    own = sharpness(core.trace(loaded, KING).attention)
    without = sharpness(core.trace(loaded, KING, interventions=[core.edits.NoScale()]).attention)
    assert own.entropy == pytest.approx(1.15, abs=0.005)
    assert without.entropy == pytest.approx(0.22, abs=0.005)
    assert own.raw / own.scaled == pytest.approx(32, rel=1e-4)
