"""Sets of pairs and the three tests of a head: read from lines, equal to single runs, and SmolLM2's sixteen pairs of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import core
from core.errors import InterventionError, TextError
from core.patching import sentence_pairs as module
from core.patching.component_patching import Evidence, three_tests
from core.patching.head_sweeps import HeadPlace, LogitDiff, logit_diff_between
from core.patching.sentence_pairs import Pair, pairs_from, patch_pairs, read_pairs
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

STORE = "When {A} and {B} went to the store, {%s} gave a drink to"
NAMES = "Mary John,Anna Tom,Sarah David,Emma Jack,Laura Paul,Alice Bob,Lisa Mark,Kate Peter"
HEAD = HeadPlace("decoder", 1, "attn", 2)


def test_pairs_are_read_from_lines_and_csv() -> None:
    lines = 'text,other,answer\n\n"One, two",One two,three\nA b,A c,, d \n'
    assert read_pairs(lines) == (Pair("One, two", "One two", "three", None, 3), Pair("A b", "A c", None, "d", 4))
    assert read_pairs('\ufeffOne, "two\tOne, three') == (Pair('One, "two', "One, three", None, None, 1),)


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "no pair of sentences"),
        ("a,b\nc", "Line 2 has 1 column. .* comma in quotation marks"),
        ("a,b\n\na,b,c,d,e", "Line 3 has 5 columns"),
        ("a\tb\nc", "Line 2 has 1 column. .*a tab"),
        ("a,b\na,,c", "Line 2 has no other text"),
        (",b", "Line 1 has no text"),
        ('a,b\n"c,d', "Line 2: a quotation mark is not closed"),
        ("a,b\n" * 65, "65 pairs, and a set has 64 at most"),
    ],
)
def test_a_line_that_is_no_pair_is_named(text: str, says: str) -> None:
    with pytest.raises(TextError, match=says):
        read_pairs(text)


def test_a_template_with_two_slots() -> None:
    assert pairs_from("{A} is in", [("Tokyo", "Rome")], answer="{B}") == (
        Pair("Tokyo is in", "Rome is in", "Rome", None, 1),
    )
    both = pairs_from(STORE % "B", [("Mary", "John")], STORE % "A", "{A}", "{B}", both_ways=True)
    assert [(pair.text, pair.other, pair.answer, pair.alternative) for pair in both] == [
        (
            f"When {a} and {b} went to the store, {b} gave a drink to",
            f"When {a} and {b} went to the store, {a} gave a drink to",
            a,
            b,
        )
        for a, b in (("Mary", "John"), ("John", "Mary"))
    ]
    assert pairs_from("{A} {B}", [("{B}", "x")])[0].text == "{B} x", "a word is never a slot"
    for template, words, other, says in (
        ("no slot", [("a", "b")], None, "two slots"),
        ("{A}", [("a", "b")], "{A}", "Both templates are the same"),
        ("{A}", [("a", " ")], None, "Line 1 has no second word"),
        ("{A}", [("a", "b")] * 65, None, "64 at most"),
    ):
        with pytest.raises(TextError, match=says):
            pairs_from(template, words, other)


def test_shares_are_counted_where_there_is_a_difference() -> None:
    leads = np.array([[4, -4], [2, -2], [1, 1.05]], np.float32)
    changes = np.array([[-4, 2], [-1, -1], [3, 3]], np.float32)
    words = (("a", "b"),) * 3
    found = module.PairShares((HEAD, HEAD), (Pair("a", "b"),) * 3, 3, words, leads, changes)
    assert found.significant.tolist() == [True, True, False] and np.isnan(found.shares[2]).all()
    np.testing.assert_allclose(found.shares[:2], [[0.5, -0.25], [0.25, 0.25]])
    np.testing.assert_allclose(found.mean, [0.375, 0])
    np.testing.assert_allclose(found.spread, np.array([0.125, 0.25]) * 2**0.5, rtol=1e-6)
    assert found.same_sign[0] == 2
    assert found.to_frame()["pairs"].tolist() == [2, 2]


def test_three_tests_are_single_runs() -> None:
    loaded = make_loaded()
    run, other = core.trace(loaded, ids=[3, 1, 4, 1, 5, 9]), core.trace(loaded, ids=[3, 1, 4, 8, 5, 9])
    found = three_tests(run, other, (1, 2), logit_diff_between(run, other, 5, 7))

    def lead(run: core.Trace) -> float:
        logits = run.activation("head.hook_logits", [5])[0]
        return float(logits[5] - logits[7])

    assert found.head == HEAD and found.lead == LogitDiff(5, 7, 5)
    assert found.before == pytest.approx(lead(run), abs=1e-4)
    for to, change in (("zero", found.zero_ablation), ("mean", found.mean_ablation)):
        edit = core.edits.Ablate("decoder", 1, 2, to=to)
        alone = core.trace(loaded, ids=[3, 1, 4, 1, 5, 9], interventions=[edit])
        assert change == pytest.approx(lead(alone) - found.before, abs=1e-4)
    one, two = (core.patch_heads(run, other, token=token) for token in (5, 7))
    assert found.patching is not None and abs(found.patching) > 1e-4
    assert one.after.logit is not None and two.after.logit is not None
    assert found.patching == pytest.approx(
        float(one.after.logit[6, 0] - two.after.logit[6, 0]) - found.before, abs=1e-4
    )
    same = three_tests(run, run, (1, 2), logit_diff_between(run, other, 5, 7))
    assert same.patching == pytest.approx(0, abs=1e-5)
    assert three_tests(run, None, HEAD, logit_diff_between(run, other, 5, 7)).patching is None
    with pytest.raises(InterventionError, match="no head 4"):
        three_tests(run, None, (1, 4))
    with pytest.raises(TextError, match="6 and 3 tokens"):
        three_tests(run, core.trace(loaded, ids=[3, 1, 4]), (1, 2))


@pytest.mark.parametrize(
    "silence, mean, other, verdict",
    [
        (-3.0, -2.0, -7.0, "same"), (0.6, 0.5, None, "same"), (0.49, -0.4, 0.1, "none"), (-1.0, 0.1, 0.6, "disagree"),
        (-2.2, 0.01, 0.01, "silence"), (0.1, 0.1, -1.0, "other"), (-0.9, -3.7, 0.0, "some"), (-2.2, 0.01, None, "silence"),
    ],
)  # fmt: skip
def test_the_verdict(silence: float, mean: float, other: float | None, verdict: str) -> None:
    assert Evidence(HEAD, LogitDiff(5, 7, 5), -10.0, silence, mean, other).verdict == verdict


@needs_smollm2
def test_a_pair_that_cannot_run_is_named() -> None:
    def ask(*pairs: Any, **how: Any) -> None:
        patch_pairs(smollm2(), pairs, **how)

    text, other = (f"Paris is in France. {city} is in" for city in ("Tokyo", "Rome"))
    good = Pair(text, other)
    with pytest.raises(TextError, match="Line 7: ‘Elizabeth Anne’ is 2 tokens, ‘Rome’ is 1: write one of 1\\."):
        ask(good, Pair("I saw Rome", "I saw Elizabeth Anne", line=7))
    with pytest.raises(TextError, match="Pair 2: The answer ‘Elizabeth Anne’ is 2 tokens"):
        ask(good, Pair(text, other, "Elizabeth Anne"))
    with pytest.raises(InterventionError, match="no head 9: this model's heads are 0 to 8"):
        ask(good, heads=[(0, 9)])
    steps = patch_pairs(smollm2(), [good, (text, other)], [(23, 4)])
    assert len(next(steps).pairs) == 1
    steps.close()  # type: ignore[attr-defined]


@pytest.mark.thorough
@needs_smollm2
def test_sixteen_pairs_of_smollm2() -> None:
    names = [(a, b) for a, b in (two.split() for two in NAMES.split(","))]
    pairs = pairs_from(STORE % "B", names, STORE % "A", "{A}", "{B}", both_ways=True)
    heads = [(23, 3), (20, 0), (29, 1), (29, 0), (24, 4)]
    so_far = list(patch_pairs(smollm2(), pairs, heads))
    assert [len(x.pairs) for x in so_far] == list(range(1, 17))
    found = so_far[-1]
    assert found.words[0] == ("Mary", "John") and found.leads[0].tolist() == pytest.approx([6.120, -5.485], abs=0.01)
    assert found.changes[0].tolist() == pytest.approx([-7.082, -1.868, -3.032, 2.336, 2.143], abs=0.01)
    assert found.mean.tolist() == pytest.approx([0.46, 0.30, 0.28, -0.23, -0.20], abs=0.006)
    assert found.spread.tolist() == pytest.approx([0.10, 0.13, 0.02, 0.03, 0.13], abs=0.005)
    assert found.same_sign.tolist() == [16] * 5
    run, other = core.trace(smollm2(), pairs[0].text), core.trace(smollm2(), pairs[0].other)
    for head, silence, mean, verdict in (((23, 3), -3.044, -2.553, "same"), ((1, 5), -2.182, 0.009, "silence")):
        tests = three_tests(run, other, head)
        assert (tests.zero_ablation, tests.mean_ablation) == (
            pytest.approx(silence, abs=0.01),
            pytest.approx(mean, abs=0.01),
        )
        assert tests.verdict == verdict
