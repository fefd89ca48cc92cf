"""The steps that are worth stepping through: the mock's numbers of SmolLM2, and the rules on tiny models of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.read.key_steps import MLP_FROM, ORDER, TURN_FROM, key_steps, residual_profile, without_rotary
from core.read.layer_walk import walk
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.test_findings import IOI, run
from tests.core.test_layer_walk import IDS, LAYERS

Tiny = Callable[..., Loaded]


@needs_smollm2
def test_chips_of_smollm2_have_the_mock_s_places_and_numbers() -> None:
    found = {one.kind: one for one in key_steps(run(IOI))}
    places = {kind: (one.layer, one.head, one.query, one.key) for kind, one in found.items()}
    assert places == {
        "writes": (23, 0, 13, 1),
        "the turn decides": (16, 0, 4, 3),
        "rests": (18, 7, 13, 0),
        "after a repeat": (17, 4, 9, 4),
        "votes against": (24, 4, 13, 1),
        "the MLP decides": (29, None, 13, None),
    }
    turn, rests, mlp = found["the turn decides"], found["rests"], found["the MLP decides"]
    assert (turn.weight, turn.unturned) == pytest.approx((0.932, 0.152), abs=6e-4)
    assert rests.weight > 0.999 and rests.value == pytest.approx(0.85, abs=6e-3)
    assert rests.median is not None and rests.median > 10
    assert (mlp.addition, mlp.word) == (pytest.approx(5.93, abs=0.01), "Mary")
    adds = residual_profile(run(IOI), "decoder").adds
    assert adds is not None and sorted(adds["MLP"].tolist())[-2] == pytest.approx(2.01, abs=0.01)


@needs_smollm2
def test_a_repeat_is_found_without_the_turn_too() -> None:
    for layer, head, query, key, weight, unturned in (
        (23, 0, 13, 1, 0.6890, 0.5078),
        (17, 4, 9, 4, 0.818, 0.828),
        (16, 0, 4, 0, 0.029, 0.646),
    ):
        of = walk(run(IOI), "decoder", layer, query)
        assert of.values["attn.weights"][head, key].item() == pytest.approx(weight, abs=6e-4)
        assert without_rotary(of)[head, key].item() == pytest.approx(unturned, abs=6e-4)


@pytest.mark.parametrize("config", LAYERS.values(), ids=LAYERS.keys())
def test_every_kind_of_model_has_steps_that_it_can_show(tiny: Tiny, config: dict[str, Any]) -> None:
    loaded = tiny(**config)
    of = core.trace(loaded, ids=IDS, target_ids=IDS if loaded.config.kind == "encoder-decoder" else None)
    found = key_steps(of)
    assert found == key_steps(of, core.findings(of))
    kinds = [one.kind for one in found]
    assert kinds == sorted(set(kinds), key=ORDER.index)
    for one in found:
        there = walk(of, one.stack, one.layer, one.query).values
        if one.head is None or one.key is None:
            assert one.addition is not None and one.addition >= MLP_FROM
            continue
        weights = there[f"{one.site}.weights"]
        assert weights[one.head, one.key].item() == pytest.approx(one.weight, abs=1e-5)
        if one.unturned is not None:
            assert one.weight - one.unturned >= TURN_FROM


def test_weights_without_the_turn_are_those_of_the_plain_queries_and_keys(tiny: Tiny) -> None:
    of = walk(core.trace(tiny(position="rotary", n_kv_heads=1), ids=IDS), "decoder", 0, len(IDS) - 1)
    q, k = of.values["attn.q"], of.values["attn.k"]
    raw = torch.stack([q[head] @ k[0].T for head in range(len(q))])
    assert torch.allclose(without_rotary(of), (raw * of.record("attn").rule.scale).softmax(-1), atol=1e-6)
    assert not torch.allclose(without_rotary(of), of.values["attn.weights"], atol=1e-3)
    first = walk(of.run, "decoder", 0, 2)
    assert first.values["attn.weights"][:, 3:].eq(0).all() and without_rotary(first)[:, 3:].eq(0).all()


def test_a_walk_without_rotary_positions_has_no_turn(tiny: Tiny) -> None:
    of = walk(core.trace(tiny(position="learned"), ids=IDS), "decoder", 0, 2)
    with pytest.raises(KeyError, match=r"attn\.turned"):
        without_rotary(of)


def test_a_large_weight_on_a_long_value_is_no_resting(tiny: Tiny) -> None:
    """The rule looks at the value: the same finding is left out where its value is as long as the others."""
    of = core.trace(tiny(), ids=IDS)
    rests = [one for one in core.findings(of) if one.kind == "rests"]
    assert rests
    lengths = walk(of, "decoder", rests[0].layer, rests[0].query).values["attn.v"].norm(dim=-1)
    shortest, longest = (int(pick(lengths[0])) for pick in (torch.argmin, torch.argmax))
    kept = key_steps(of, [replace(rests[0], head=0, key=longest)])
    assert [one.kind for one in kept if one.kind == "rests"] == []
    value = lengths[0, shortest] < 0.5 * lengths[0].median()
    kept = key_steps(of, [replace(rests[0], head=0, key=shortest)])
    assert [one.kind for one in kept if one.kind == "rests"] == ["rests"] * bool(value)
