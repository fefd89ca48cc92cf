"""Rotary positions slowed for longer texts: the numbers of the published rules, on weights that are held once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.labs.positions import (
    RULES,
    Rule,
    config_under_rule,
    context_extensions,
    end_loss,
    gap_after,
    probability_by_gap,
    score_by_distance,
    scores_of_pairs,
    with_rope_scaling,
)
from core.model.transformer import Transformer
from core.plan.parameters import concatenated
from tests.core.conftest import make_loaded

IDS = [7, 11, 3, 8, 8, 20, 5, 9, 14, 2, 6, 1]
ALICE = Path(__file__).parent / "alice.txt"
MARY = "When Mary and John went to the store, John gave a drink to"


def turned() -> Loaded:
    return make_loaded(n_decoder_layers=3, position="rotary", d_head=8, rotary_base=100.0, n_ctx=8)


def maps(loaded: Loaded) -> torch.Tensor:
    with torch.inference_mode():
        return torch.cat([record.pattern() for record in core.trace(loaded, ids=IDS).attention])


def by_itself(loaded: Loaded, rule: Rule) -> Loaded:
    """Those weights in a model of its own, which was never run by another rule."""
    model = Transformer(config_under_rule(loaded.config, rule, 4.0)).eval()
    model.load_state_dict(loaded.model.state_dict())
    return replace(loaded, model=model, config=model.config)


def test_a_rule_shares_the_weights_and_leaves_the_model_as_it_was() -> None:
    loaded = turned()
    own, config = maps(loaded), loaded.config
    for rule in RULES:
        other = with_rope_scaling(loaded, rule, 4.0)
        theirs = dict(other.model.named_parameters())
        assert all(theirs[name] is parameter for name, parameter in loaded.model.named_parameters())
        assert torch.equal(maps(other), maps(by_itself(loaded, rule))), rule
        assert torch.equal(maps(other), own) == (rule == "none"), rule  # frequencies of the run before are not kept
    assert torch.equal(maps(loaded), own) and loaded.config is config


def test_two_threads_with_a_rule_each() -> None:
    loaded = turned()
    expected = {rule: maps(by_itself(loaded, rule)) for rule in RULES}
    views = [with_rope_scaling(loaded, rule, 4.0) for rule in RULES]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(maps, views * 8))
    for i, one in enumerate(found):
        assert torch.equal(one, expected[RULES[i % len(RULES)]])


def test_what_cannot_be_slowed_is_refused_with_a_sentence() -> None:
    loaded = turned()
    with pytest.raises(HeadlightError, match=r"these are learned"):
        config_under_rule(make_loaded(n_decoder_layers=1, position="learned").config, "linear", 2)
    with pytest.raises(HeadlightError, match="It is one of none, linear"):
        config_under_rule(loaded.config, "pi", 2)  # pyrefly: ignore[bad-argument-type]
    for factor in (0.5, float("nan"), float("inf")):
        with pytest.raises(HeadlightError, match="factor of 1 or more"):
            config_under_rule(loaded.config, "linear", factor)
    assert with_rope_scaling(loaded, "yarn", 1) is loaded


def test_pairs_add_up_to_the_score() -> None:
    q, k, frequencies = torch.randn(3, 10, generator=torch.Generator().manual_seed(4))
    for distance in (0, 1, 7.5, 4000):
        whole = score_by_distance(q, k, frequencies[:4], 0.3, [distance], 1.1)
        parts = scores_of_pairs(q, k, frequencies[:4], 0.3, [distance], 1.1)
        rest = (q[8:].double() @ k[8:].double()) * 0.3
        assert parts.shape == (1, 4)
        assert whole[0].item() == pytest.approx((parts.sum() + rest).item(), abs=1e-12)


def test_smollm2_s_clocks() -> None:
    loaded = core.load("smollm2")
    found = {one.rule: one for one in context_extensions(loaded.config, 4)}
    turns = {rule: one.frequencies * 8192 / (2 * torch.pi) for rule, one in found.items()}
    assert turns["none"][[0, 19, 20, 31]].tolist() == pytest.approx([1303.8, 1.401, 0.978, 0.0187], rel=1e-3)
    assert int((turns["none"] < 1).sum()) == 12
    assert found["yarn"].factor == pytest.approx(1.1386, abs=1e-4) and found["llama3"].factor == 1


@pytest.mark.thorough
def test_the_loss_of_a_page_under_each_rule() -> None:
    loaded = core.load("smollm2")
    ids = loaded.tokens(ALICE.read_text("utf-8")).ids[:512]
    losses: list[tuple[Rule, int, float]] = [
        ("none", 1, 3.387),
        ("linear", 4, 5.119),
        ("llama3", 4, 3.407),
        ("dynamic", 4, 3.387),
    ]
    for rule, factor, loss in losses:
        assert end_loss(with_rope_scaling(loaded, rule, factor), ids) == pytest.approx(loss, abs=2e-3), rule
    assert end_loss(loaded, ids, dropped=True) == pytest.approx(6.045, abs=2e-3)


@pytest.mark.thorough
def test_a_text_pulled_apart() -> None:
    run = core.trace(core.load("smollm2"), MARY)
    after = gap_after(run.source)
    assert run.source.labels[after] == ","
    expected: dict[Rule, tuple[float, float]] = {"none": (0.923, 0.498), "linear": (0.126, 0.326)}
    for rule, chances in expected.items():
        found = list(probability_by_gap(run, rule, 4, (0, 128), after))
        assert run.loaded.tokenizer is not None and {token for token, _ in found} == {5099}
        assert [chance for _, chance in found] == pytest.approx(chances, abs=2e-3)
    assert gap_after(core.trace(core.load("smollm2"), "one two three four").source) == 1
    with pytest.raises(HeadlightError, match="two words or more"):
        gap_after(core.trace(core.load("smollm2"), "one").source)


def test_positions_put_beside_the_words() -> None:
    found = concatenated(core.load("translator").config)
    assert (found.added, found.beside, found.width) == (5_530_624, 11_048_192, 256)
    for name in ("minilm", "storyteller", "smollm2"):
        config = core.load(name).config
        found = concatenated(config)
        assert 1.9 < found.beside / found.added < 2.01, name
