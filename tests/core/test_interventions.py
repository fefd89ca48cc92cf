"""Interventions: each does what it says, nothing else, and says so when it cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import core
from core.interventions import InterventionError
from tests.core.conftest import fused_error

Tiny = Callable[..., core.Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def residual(run: core.Trace) -> torch.Tensor:
    return run.last_residual(torch.arange(len(IDS)))[0]


def test_an_ablated_head_writes_nothing_and_the_rest_is_as_before(tiny: Tiny) -> None:
    loaded = tiny()
    plain, cut = core.trace(loaded, ids=IDS), core.trace(loaded, ids=IDS, interventions=[core.Ablate("decoder", 0, 2)])
    assert torch.equal(plain.attention[0].pattern(), cut.attention[0].pattern())
    assert not torch.allclose(plain.attention[1].pattern(), cut.attention[1].pattern())
    with torch.inference_mode():  # the same as a W_O whose columns for this head are zero
        weight = loaded.model.get_parameter("decoder.blocks.0.attn.o.weight")
        kept = weight.clone()
        weight[:, 12:18] = 0
        by_hand = core.trace(loaded, ids=IDS)
        weight.copy_(kept)
    assert torch.allclose(residual(cut), residual(by_hand), atol=1e-6)


def test_an_edited_cell_closes_or_opens_one_look(tiny: Tiny) -> None:
    loaded = tiny()
    edits = [core.EditMask("decoder", 0, 5, 3, False), core.EditMask("decoder", 0, 2, 6, True, head=1)]
    record = core.trace(loaded, ids=IDS, interventions=edits).attention[0]
    assert record.pattern()[:, 5, 3].abs().max() == 0 and record.why_masked(5, 3) == "edited"
    assert record.pattern(1, 2, 6) > 0 and record.pattern(0, 2, 6) == 0
    assert (record.pattern().sum(-1) - 1).abs().max() <= 1e-6
    assert fused_error(record) <= 1e-6


def test_a_row_edited_until_it_sees_nothing_is_reported(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.EditMask("decoder", 1, 0, 0, False)])
    record = run.attention[1]
    assert record.blocked_rows().tolist() == [True] + [False] * 7
    assert record.pattern()[:, 0].abs().max() == 0
    assert not residual(run).isnan().any()


def test_without_the_causal_mask_the_past_sees_the_future(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.DropCausalMask()])
    assert all(record.pattern()[:, 0, 1:].min() > 0 for record in run.attention)
    one = core.trace(tiny(), ids=IDS, interventions=[core.DropCausalMask(layer=1)])
    assert one.attention[0].pattern()[:, 0, 1:].max() == 0 and one.attention[1].pattern()[:, 0, 1:].min() > 0


def test_scale_and_temperature_change_the_scores_by_their_factor(tiny: Tiny) -> None:
    plain = core.trace(tiny(), ids=IDS).attention[0]
    raw = core.trace(tiny(), ids=IDS, interventions=[core.NoScale()]).attention[0]
    assert torch.allclose(raw.scores(), plain.scores() * 6**0.5, atol=1e-5)
    cold = core.trace(tiny(), ids=IDS, interventions=[core.Temperature(0.5)]).attention[0]
    assert torch.allclose(cold.scores(), plain.scores() * 2, atol=1e-5)
    assert fused_error(cold) <= 1e-6


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "relative"])
def test_an_encoder_without_positions_does_not_know_an_order(tiny: Tiny, position: str) -> None:
    loaded = tiny(n_encoder_layers=2, position=position)
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    there = residual(core.trace(loaded, ids=IDS, interventions=[core.DropPositions()]))
    moved = residual(core.trace(loaded, ids=[IDS[i] for i in order], interventions=[core.DropPositions()]))
    assert (moved - there[order]).abs().max() <= 1e-5
    plain = residual(core.trace(loaded, ids=[IDS[i] for i in order]))
    assert (plain - residual(core.trace(loaded, ids=IDS))[order]).abs().max() > 1e-3


@pytest.mark.parametrize("position", ["learned", "rotary", "relative"])
def test_shuffled_positions_are_the_models_own_in_another_order(tiny: Tiny, position: str) -> None:
    loaded = tiny(n_encoder_layers=2, position=position)
    run = core.trace(loaded, ids=IDS, interventions=[core.ShufflePositions(seed=1)])
    places = run.positions[0].places.tolist()
    assert sorted(places) == list(range(8)) and places != list(range(8))
    # Reading the tokens in the order of their places, with honest positions, is the same run.
    order = sorted(range(8), key=places.__getitem__)
    honest = residual(core.trace(loaded, ids=[IDS[i] for i in order]))
    assert (residual(run)[order] - honest).abs().max() <= 1e-5


def test_edits_of_what_is_not_there_say_what_there_is(tiny: Tiny) -> None:
    loaded = tiny()
    for edit, words in (
        (core.Ablate("encoder", 0, 0), "no encoder; it has: decoder"),
        (core.Ablate("decoder", 9, 0), "decoder layers 0 to 1"),
        (core.Ablate("decoder", 0, 4), "heads are 0 to 3"),
        (core.Ablate("decoder", 0, 0, "cross_attn"), "no cross_attn"),
        (core.EditMask("decoder", 0, 8, 0, True), "positions 0 to 7"),
        (core.EditMask("decoder", 0, 0, -1, True), "positions 0 to 7"),
        (core.Temperature(0), "above 0"),
        (core.Temperature(float("nan")), "above 0"),
    ):
        with pytest.raises(InterventionError, match=words):
            core.trace(loaded, ids=IDS, interventions=[edit])
    with pytest.raises(InterventionError, match="no causal mask"):
        core.trace(tiny(n_encoder_layers=1), ids=IDS, interventions=[core.DropCausalMask()])


def test_interventions_are_values() -> None:
    assert core.Ablate("decoder", 1, 2) == core.Ablate("decoder", 1, 2)
    assert len({core.NoScale(), core.NoScale(), core.Temperature(2.0)}) == 2
