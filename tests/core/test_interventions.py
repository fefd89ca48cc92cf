"""Interventions: each does what it says, nothing else, and says so when it cannot."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.edits import InterventionError, hooks_of
from core.model import rules
from core.model.rules import MaskRule, ScoreRule
from tests.core.conftest import fused_error

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def residual(run: core.Trace) -> torch.Tensor:
    return run.last_residual(torch.arange(len(IDS)))[0]


def test_an_ablated_head_writes_nothing_and_the_rest_is_as_before(tiny: Tiny) -> None:
    loaded = tiny()
    plain, cut = (
        core.trace(loaded, ids=IDS),
        core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 2)]),
    )
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
    edits = [core.edits.EditMask("decoder", 0, 5, 3, False), core.edits.EditMask("decoder", 0, 2, 6, True, head=1)]
    record = core.trace(loaded, ids=IDS, interventions=edits).attention[0]
    assert record.pattern()[:, 5, 3].abs().max() == 0 and record.why_masked(5, 3) == "edited"
    assert record.pattern(1, 2, 6) > 0 and record.pattern(0, 2, 6) == 0
    assert (record.pattern().sum(-1) - 1).abs().max() <= 1e-6
    assert fused_error(record) <= 1e-6


def test_a_row_edited_until_it_sees_nothing_is_reported(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.edits.EditMask("decoder", 1, 0, 0, False)])
    record = run.attention[1]
    assert record.blocked_rows().tolist() == [True] + [False] * 7
    assert record.pattern()[:, 0].abs().max() == 0
    assert not residual(run).isnan().any()


def test_without_the_causal_mask_the_past_sees_the_future(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.edits.DropCausalMask()])
    assert all(record.pattern()[:, 0, 1:].min() > 0 for record in run.attention)
    one = core.trace(tiny(), ids=IDS, interventions=[core.edits.DropCausalMask(layer=1)])
    assert one.attention[0].pattern()[:, 0, 1:].max() == 0 and one.attention[1].pattern()[:, 0, 1:].min() > 0


def test_scale_and_temperature_change_the_scores_by_their_factor(tiny: Tiny) -> None:
    plain = core.trace(tiny(), ids=IDS).attention[0]
    raw = core.trace(tiny(), ids=IDS, interventions=[core.edits.NoScale()]).attention[0]
    assert torch.allclose(raw.scores(), plain.scores() * 6**0.5, atol=1e-5)
    cold = core.trace(tiny(), ids=IDS, interventions=[core.edits.Temperature(0.5)]).attention[0]
    assert torch.allclose(cold.scores(), plain.scores() * 2, atol=1e-5)
    assert fused_error(cold) <= 1e-6


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "relative"])
def test_an_encoder_without_positions_does_not_know_an_order(tiny: Tiny, position: str) -> None:
    loaded = tiny(n_encoder_layers=2, position=position)
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    there = residual(core.trace(loaded, ids=IDS, interventions=[core.edits.DropPositions()]))
    moved = residual(core.trace(loaded, ids=[IDS[i] for i in order], interventions=[core.edits.DropPositions()]))
    assert (moved - there[order]).abs().max() <= 1e-5
    plain = residual(core.trace(loaded, ids=[IDS[i] for i in order]))
    assert (plain - residual(core.trace(loaded, ids=IDS))[order]).abs().max() > 1e-3


@pytest.mark.parametrize("position", ["learned", "rotary", "relative"])
def test_shuffled_positions_are_the_models_own_in_another_order(tiny: Tiny, position: str) -> None:
    loaded = tiny(n_encoder_layers=2, position=position)
    run = core.trace(loaded, ids=IDS, interventions=[core.edits.ShufflePositions(seed=1)])
    places = run.positions[0].places.tolist()
    assert sorted(places) == list(range(8)) and places != list(range(8))
    # Reading the tokens in the order of their places, with honest positions, is the same run.
    order = sorted(range(8), key=places.__getitem__)
    honest = residual(core.trace(loaded, ids=[IDS[i] for i in order]))
    assert (residual(run)[order] - honest).abs().max() <= 1e-5


def test_edits_of_what_is_not_there_say_what_there_is(tiny: Tiny) -> None:
    loaded, any_type = tiny(), cast(Any, core.edits)
    for edit, words in (
        (lambda: core.edits.Ablate("encoder", 0, 0), "no encoder; it has: decoder"),
        (lambda: core.edits.Ablate("decoder", 9, 0), "decoder layers 0 to 1"),
        (lambda: core.edits.Ablate("decoder", 0, 4), "heads are 0 to 3"),
        (lambda: core.edits.Ablate("decoder", 0, 0, "cross_attn"), "no cross_attn"),
        (lambda: core.edits.ScaleHead(2, "decoder", 0, 4), "heads are 0 to 3"),
        (lambda: core.edits.EditMask("decoder", 0, 8, 0, True), "no query 8 .* positions 0 to 7"),
        (lambda: core.edits.EditMask("decoder", 0, cells=[(0, 0), (3, 9)]), "no key 9 .* positions 0 to 7"),
        (lambda: core.edits.EditMask("decoder", 0, 0, -1, True), "keys of EditMask must be a whole number from 0"),
        (lambda: core.edits.EditMask("decoder", 0, 0, 0, True, head=4), "heads are 0 to 3"),
        (lambda: core.edits.EditMask("decoder", 0), "says which cells"),
        (lambda: core.edits.EditMask("decoder", 0, 1, distances=(1, None)), "says which cells"),
        (lambda: core.edits.EditMask("decoder", 0, []), "is empty"),
        (lambda: core.edits.EditMask(distances=(3, 1)), "lower one first"),
        (lambda: any_type.EditMask(cells=[(1, 2, 3)]), "A cell is"),
        (lambda: any_type.EditMask(cells="11x3"), "must be a list"),
        (lambda: core.edits.AsPadding(9), "no key 9"),
        (lambda: core.edits.SetMask("window"), "has a size"),
        (lambda: core.edits.SetMask("causal", 3), "has a size"),
        (lambda: any_type.SetMask("round"), "one of 'none', 'causal', 'window'"),
        (lambda: core.edits.Window(0), "from 1 to"),
        (lambda: core.edits.Window(True), "whole number"),
        (lambda: core.edits.SetPositions([0, 1]), "2 positions are given, and the text has 8 tokens"),
        (lambda: core.edits.SetPositions([]), "Give 1 to"),
        (lambda: core.edits.Temperature(0), "above 0"),
        (lambda: core.edits.Temperature(float("nan")), "above 0"),
        (lambda: any_type.Temperature("2"), "finite number"),
        (lambda: core.edits.MaskFill(float("-inf")), "finite"),
    ):
        with pytest.raises(InterventionError, match=words):
            core.trace(loaded, ids=IDS, interventions=[edit()])
    with pytest.raises(InterventionError, match="no causal mask"):
        core.trace(tiny(n_encoder_layers=1), ids=IDS, interventions=[core.edits.DropCausalMask()])
    both = tiny(n_encoder_layers=1, n_decoder_layers=1)
    for edit in (core.edits.AsPadding(1), core.edits.SetPositions(range(8))):
        with pytest.raises(InterventionError, match="reads two texts"):
            core.trace(both, ids=IDS, target_ids=[1, 2], interventions=[edit])


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
@pytest.mark.parametrize(
    "edit", [core.edits.ShiftPositions(30), core.edits.ShiftPositions(-1), core.edits.SetPositions([*range(7), 37])]
)
def test_positions_beyond_the_table_are_refused_with_its_size(
    tiny: Tiny, position: str, edit: core.edits.Intervention
) -> None:
    with pytest.raises(InterventionError, match="the model's table has 0 to 36"):
        core.trace(tiny(position=position), ids=IDS, interventions=[edit])
    core.trace(tiny(position=position), ids=IDS, interventions=[core.edits.ShiftPositions(29)])


def test_interventions_are_values() -> None:
    assert core.edits.Ablate("decoder", 1, 2) == core.edits.Ablate("decoder", 1, 2)
    assert len({core.edits.NoScale(), core.edits.NoScale(), core.edits.Temperature(2.0)}) == 2


def test_shuffled_positions_of_padded_texts_are_a_permutation_of_the_real_ones(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=2, position="rotary")
    keep = torch.tensor([[True] * 6 + [False] * 3, [False] * 4 + [True] * 5, [True] * 9])
    places = positions_of(loaded, keep, core.edits.ShufflePositions(seed=1))
    for row, real in zip(places, keep, strict=True):
        assert sorted(row[real].tolist()) == list(range(int(real.sum())))
    assert places[0, :6].tolist() != list(range(6))
    short = core.trace(loaded, ids=IDS[:6], interventions=[core.edits.ShufflePositions(seed=1)])
    assert short.positions[0].places.tolist() == places[0, :6].tolist()  # as the text alone


def positions_of(loaded: Loaded, keep: torch.Tensor, edit: core.edits.Intervention) -> torch.Tensor:
    """[batch, pos] where the model believes the tokens of a padded batch to be."""
    seen = []
    hooks, watch = hooks_of(loaded.model, [edit]), {"encoder.hook_positions": lambda x: seen.append(x)}
    with torch.inference_mode(), core.hooked(loaded.model, hooks), core.hooked(loaded.model, watch):
        loaded.model.last_residual(torch.ones_like(keep, dtype=torch.long), keep=keep)
    return seen[0]


def test_positions_that_are_given_are_those_of_the_tokens_in_that_order(tiny: Tiny) -> None:
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    for position in ("learned", "sinusoidal", "rotary", "alibi", "relative"):
        loaded = tiny(n_encoder_layers=2, position=position)
        run = core.trace(loaded, ids=IDS, interventions=[core.edits.SetPositions(order)])
        assert run.positions[0].places.tolist() == order
        words_moved = core.trace(loaded, ids=[IDS[order.index(i)] for i in range(8)])
        assert (residual(run) - residual(words_moved)[order]).abs().max() <= 1e-5


def test_given_positions_leave_padding_alone(tiny: Tiny) -> None:
    keep = torch.tensor([[False] * 2 + [True] * 4])
    places = positions_of(tiny(n_encoder_layers=1, position="rotary"), keep, core.edits.SetPositions([3, 0, 2, 1]))
    assert places[0, 2:].tolist() == [3, 0, 2, 1]


@pytest.mark.parametrize("position", ["rotary", "alibi", "relative"])
def test_only_distance_counts_where_positions_are_relative(tiny: Tiny, position: str) -> None:
    loaded = tiny(position=position)
    plain = core.trace(loaded, ids=IDS)
    moved = core.trace(loaded, ids=IDS, interventions=[core.edits.ShiftPositions(100)])
    assert moved.positions[0].places.tolist() == list(range(100, 108))
    assert (residual(plain) - residual(moved)).abs().max() <= 1e-4
    learned = tiny(position="learned")
    there = core.trace(learned, ids=IDS, interventions=[core.edits.ShiftPositions(3)])
    assert (residual(core.trace(learned, ids=IDS)) - residual(there)).abs().max() > 1e-3


def test_a_head_set_to_its_mean_gives_the_same_everywhere_and_padding_does_not_count(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=2)
    edit = core.edits.Ablate("encoder", 1, 2, to="mean")
    plain, mean = z_of(loaded, IDS, []), z_of(loaded, IDS, [edit])
    assert torch.allclose(mean[2], plain[2].mean(0).expand(8, -1), atol=1e-6)
    others = [0, 1, 3]
    assert torch.equal(mean[others], plain[others])
    alone = residual_of_padded(loaded, [edit], n_padding=0)
    padded = residual_of_padded(loaded, [edit], n_padding=5)
    assert (alone - padded).abs().max() <= 1e-5


def z_of(loaded: Loaded, ids: list[int], edits: list[core.edits.Intervention]) -> torch.Tensor:
    """[head, query, d_head] of layer 1, after the edits."""
    seen = []
    hooks, watch = hooks_of(loaded.model, edits), {"encoder.blocks.1.attn.hook_z": lambda x: seen.append(x)}
    with torch.inference_mode(), core.hooked(loaded.model, hooks), core.hooked(loaded.model, watch):
        loaded.model.last_residual(torch.tensor([ids]))
    return seen[0][0].transpose(0, 1)


def residual_of_padded(loaded: Loaded, edits: list[core.edits.Intervention], n_padding: int) -> torch.Tensor:
    """The real rows [pos, d_model] of IDS with padding behind it."""
    keep = torch.tensor([[True] * len(IDS) + [False] * n_padding]) if n_padding else None
    with torch.inference_mode(), core.hooked(loaded.model, hooks_of(loaded.model, edits)):
        return loaded.model.last_residual(torch.tensor([IDS + [7] * n_padding]), keep=keep)[0, : len(IDS)]


def test_the_mean_over_a_target_does_not_count_its_padding(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=1, n_decoder_layers=2)
    edit = core.edits.Ablate("decoder", 1, 2, "cross_attn", to="mean")

    def target_rows(n_padding: int) -> torch.Tensor:
        keep = torch.tensor([[True] * 4 + [False] * n_padding]) if n_padding else None
        with torch.inference_mode(), core.hooked(loaded.model, hooks_of(loaded.model, [edit])):
            ids, target = torch.tensor([IDS]), torch.tensor([IDS[:4] + [7] * n_padding])
            return loaded.model.last_residual(ids, target, target_keep=keep)[0, :4]

    assert (target_rows(0) - target_rows(3)).abs().max() <= 1e-5


def test_a_scaled_head_gives_that_much_more(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=2)
    assert torch.allclose(
        z_of(loaded, IDS, [core.edits.ScaleHead(-2.5, "encoder", 1, 0)])[0], z_of(loaded, IDS, [])[0] * -2.5
    )
    off, cut = core.edits.ScaleHead(0, "encoder", 1, 3), core.edits.Ablate("encoder", 1, 3)
    runs = [core.trace(loaded, ids=IDS, interventions=[edit]) for edit in (off, cut)]
    assert torch.equal(residual(runs[0]), residual(runs[1]))


def hidden(record: core.AttentionRecord, head: int = 0) -> list[tuple[int, int]]:
    """(query, key) of every cell that the head may not look at, which then has a weight of exactly 0."""
    cells = [tuple(cell) for cell in (~record.mask(head=head)).nonzero().tolist()]
    weights = record.pattern(head)[0]
    assert not cells or weights[~record.mask(head=head)].abs().max() == 0
    sees = record.mask(head=head).any(-1)
    assert (weights.sum(-1) - sees.float()).abs().max() <= 1e-6
    assert fused_error(record) <= 1e-5
    return cells


def test_regions_of_a_mask_hide_what_they_say(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=2)
    every = [(q, k) for q in range(8) for k in range(8)]

    def cells(edit: core.edits.EditMask, head: int = 0, layer: int = 1) -> list[tuple[int, int]]:
        run = core.trace(loaded, ids=IDS, interventions=[edit])
        found = hidden(run.attention[layer], head)
        assert all(run.attention[layer].why_masked(q, k, head) == "edited" for q, k in found)
        return found

    assert cells(core.edits.EditMask(queries=range(2, 5), keys=[1, 6, 7])) == [
        (q, k) for q, k in every if q in (2, 3, 4) and k in (1, 6, 7)
    ]
    assert cells(core.edits.EditMask(keys=3)) == [(q, 3) for q in range(8)]
    assert cells(core.edits.EditMask(queries=3)) == [(3, k) for k in range(8)]  # a row of zeros
    assert cells(core.edits.EditMask(cells=[(7, 0), (2, range(4, 6)), (7, 0)])) == [(2, 4), (2, 5), (7, 0)]
    assert cells(core.edits.EditMask(distances=(1, None))) == [(q, k) for q, k in every if k > q]
    assert cells(core.edits.EditMask(distances=(None, -3))) == [(q, k) for q, k in every if q - k >= 3]
    assert cells(core.edits.EditMask(distances=(-1, 0))) == [(q, k) for q, k in every if q - k in (0, 1)]
    apart = core.edits.EditMask(keys=range(4), head=2)
    assert cells(apart, head=2) and not cells(apart, head=1)
    assert not cells(core.edits.EditMask(layer=0, keys=3), layer=1)


def test_a_later_edit_of_the_mask_wins_where_two_overlap(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=1)
    closed, open_again = core.edits.EditMask(keys=range(2, 5)), core.edits.EditMask(queries=4, allowed=True)
    column, cell = [(q, k) for q in range(8) for k in (2, 3, 4)], core.edits.EditMask(cells=[(4, 4)], head=1)

    def cells(*edits: core.edits.Intervention, head: int = 0) -> list[tuple[int, int]]:
        return hidden(core.trace(loaded, ids=IDS, interventions=edits).attention[0], head)

    assert cells(closed, open_again) == [(q, k) for q, k in column if q != 4]
    assert cells(open_again, closed) == column
    assert cells(closed, open_again, cell, head=1) == [(q, k) for q, k in column if q != 4 or k == 4]
    assert cells(closed, open_again, cell, head=0) == [(q, k) for q, k in column if q != 4]
    assert cells(closed, core.edits.EditMask(distances=(0, 0), allowed=True)) == [(q, k) for q, k in column if q != k]
    # Edits by hand lie over another order, whichever comes first.
    for edits in ((core.edits.SetMask("causal"), open_again), (open_again, core.edits.SetMask("causal"))):
        assert cells(*edits) == [(q, k) for q in range(8) for k in range(q + 1, 8) if q != 4]


def test_tokens_taken_as_padding_are_as_if_they_were_not_there(tiny: Tiny) -> None:
    for config in ({"n_encoder_layers": 2}, {"n_decoder_layers": 2}):
        loaded = tiny(**config)
        run = core.trace(loaded, ids=[*IDS, 7, 8, 9], interventions=[core.edits.AsPadding(range(8, 11))])
        assert (residual(run) - residual(core.trace(loaded, ids=IDS))).abs().max() <= 1e-5
    both = tiny(n_encoder_layers=2, n_decoder_layers=1)
    run = core.trace(both, ids=[*IDS, 7], target_ids=[1, 2], interventions=[core.edits.AsPadding(8, "encoder")])
    short = core.trace(both, ids=IDS, target_ids=[1, 2])
    at = torch.arange(2)
    assert (run.last_residual(at) - short.last_residual(at)).abs().max() <= 1e-5


def test_another_order_of_all_heads_or_of_one(tiny: Tiny) -> None:
    every = [(q, k) for q in range(8) for k in range(8)]
    future = [(q, k) for q, k in every if k > q]
    for stack, own in (("encoder", []), ("decoder", future)):
        loaded = tiny(**{f"n_{stack}_layers": 1})

        def record(*edits: core.edits.Intervention, loaded: Loaded = loaded) -> core.AttentionRecord:
            return core.trace(loaded, ids=IDS, interventions=edits).attention[0]

        def words(record: core.AttentionRecord, head: int = 0) -> set[str | None]:
            return {record.why_masked(q, k, head) for q, k in every} - {None}

        assert hidden(record(core.edits.SetMask("none"))) == []
        causal = record(core.edits.SetMask("causal"))
        assert hidden(causal) == future and words(causal) == {"future"}
        for edit in (core.edits.Window(3), core.edits.SetMask("window", 3)):
            windowed = record(edit)
            assert hidden(windowed) == [(q, k) for q, k in every if abs(q - k) >= 3 or (q, k) in own]
            assert words(windowed) == {"outside the window", *(["future"] if own else [])}
        one = record(
            core.edits.SetMask("causal", head=2), core.edits.Window(2, head=2), core.edits.SetMask("none", head=1)
        )
        assert hidden(one, 2) == [(q, k) for q, k in every if not 0 <= q - k < 2]
        assert hidden(one, 0) == own and hidden(one, 1) == []
        assert words(one, 2) == {"future", "outside the window"}
        alone = record(core.edits.SetMask("causal"))
        assert torch.allclose(record(core.edits.SetMask("causal", head=2)).pattern(2), alone.pattern(2), atol=1e-6)
    narrowed = tiny(window=4)
    assert hidden(core.trace(narrowed, ids=IDS, interventions=[core.edits.Window(6)]).attention[0]) == hidden(
        core.trace(narrowed, ids=IDS).attention[0]
    )
    freed = core.trace(
        narrowed, ids=IDS, interventions=[core.edits.SetMask("none", head=1), core.edits.DropCausalMask()]
    )
    assert hidden(freed.attention[0], 1) == []
    assert hidden(freed.attention[0], 0) == [(q, k) for q, k in every if abs(q - k) >= 4]


def test_padding_that_is_looked_at_changes_what_it_stands_beside(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=2)
    inert = residual_of_padded(loaded, [], 5)
    seen = residual_of_padded(loaded, [core.edits.DropPadding()], 5)
    assert (inert - residual_of_padded(loaded, [], 0)).abs().max() <= 1e-5
    assert (inert - seen).abs().max() > 1e-3


def test_a_mask_after_the_softmax_leaves_rows_that_do_not_sum_to_1(tiny: Tiny) -> None:
    loaded = tiny(n_decoder_layers=2)
    free = core.trace(loaded, ids=IDS, interventions=[core.edits.DropCausalMask()]).attention[0]
    run = core.trace(loaded, ids=IDS, interventions=[core.edits.MaskAfterSoftmax()])
    record = run.attention[0]
    assert torch.allclose(record.pattern(), free.pattern() * record.mask(), atol=1e-6)
    sums = record.pattern().sum(-1)
    assert (sums[:, :-1] < 1).all() and torch.allclose(sums[:, -1], torch.ones(4))
    assert torch.equal(record.scores(masked=True), record.scores())
    assert fused_error(record) <= 1e-5
    assert record.receipt().rows_sum_error > 0.1 and record.receipt().masked_max == 0
    # Some rows and keys of it are those of the whole.
    assert torch.allclose(record.pattern(1, [3, 5], [0, 4]), record.pattern()[1:2, [3, 5]][:, :, [0, 4]])


def test_a_finite_fill_is_as_good_as_minus_infinity_until_a_row_sees_nothing(tiny: Tiny) -> None:
    loaded = tiny(n_decoder_layers=2)
    plain = core.trace(loaded, ids=IDS)
    filled = core.trace(loaded, ids=IDS, interventions=[core.edits.MaskFill()])
    assert (residual(plain) - residual(filled)).abs().max() <= 1e-5
    assert filled.attention[0].scores(masked=True)[0, 0, 1] == -1e9
    blind = core.edits.EditMask("decoder", 0, queries=2)
    zeros, alike = (
        core.trace(loaded, ids=IDS, interventions=[blind, *more]).attention[0] for more in ([], [core.edits.MaskFill()])
    )
    assert zeros.pattern(queries=2).abs().max() == 0
    assert torch.allclose(alike.pattern(queries=2), torch.full((4, 1, 8), 1 / 8))
    assert fused_error(alike) <= 1e-5
    weak = core.trace(loaded, ids=IDS, interventions=[core.edits.MaskFill(-1.0)]).attention[0]
    assert weak.pattern()[:, 0, 1:].min() > 0 and fused_error(weak) <= 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_fill_beyond_half_precision_is_its_lowest_number(dtype: torch.dtype) -> None:
    rule = ScoreRule(MaskRule(1, 2, 2, causal=True), 1.0, mask_value=-1e9)
    at = torch.arange(2)
    masked = rule.masked(torch.ones(1, 1, 2, 2, dtype=dtype), at, at)
    assert rule.pattern(masked, at, at)[0, 0].tolist() == [[1, 0], [0.5, 0.5]]


def test_what_runs_in_steps_goes_block_by_block(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny(n_kv_heads=2, position="alibi")
    edits = [core.edits.MaskAfterSoftmax(), core.edits.Temperature(2)]
    whole = residual(core.trace(loaded, ids=IDS, interventions=edits))
    monkeypatch.setattr(rules, "BLOCK_BYTES", 3 * 4 * 8 * 4)  # three rows of four heads and eight keys
    assert torch.allclose(residual(core.trace(loaded, ids=IDS, interventions=edits)), whole, atol=1e-6)


def test_a_class_of_ones_own_works_too(tiny: Tiny) -> None:
    class Louder:
        def hooks(self, model: torch.nn.Module) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
            return {"decoder.blocks.0.attn.hook_z": lambda z: z * 3}

    edits = [core.edits.ScaleHead(3, "decoder", 0, head) for head in range(4)]
    one, other = core.trace(tiny(), ids=IDS, interventions=[Louder()]), core.trace(tiny(), ids=IDS, interventions=edits)
    assert torch.allclose(residual(one), residual(other), atol=1e-6)


def test_tokens_that_were_put_in_one_place_are_still_told_apart(tiny: Tiny) -> None:
    """A second edit of positions speaks of tokens, and not of the places that the first one left."""
    loaded = tiny(position="rotary")

    def places(*edits: core.edits.Intervention) -> list[int]:
        (stack,) = core.trace(loaded, ids=IDS[:4], interventions=edits).positions
        return stack.places.tolist()

    assert places(core.edits.SetPositions((0, 0, 0, 1)), core.edits.SetPositions((3, 2, 1, 0))) == [3, 2, 1, 0]
    assert places(core.edits.DropPositions(), core.edits.SetPositions((3, 2, 1, 0))) == [3, 2, 1, 0]
    assert places(core.edits.SetPositions((0, 0, 0, 1)), core.edits.ShiftPositions(5)) == [5, 5, 5, 6]
    order = places(core.edits.ShufflePositions(3))
    twice = places(core.edits.SetPositions((7, 7, 8, 9)), core.edits.ShufflePositions(3))
    assert twice == [(7, 7, 8, 9)[i] for i in order]


def test_the_mean_of_a_head_is_over_its_own_pass_s_tokens_whatever_other_threads_run(tiny: Tiny) -> None:
    """One thread has looked at the mask of its batch when another one's pass comes in between."""
    loaded = tiny()
    edit = core.edits.Ablate("decoder", 0, 1, to="mean")
    hooks = edit.hooks(loaded.model)
    look, mean = (hooks[f"decoder.blocks.0.attn.hook_{what}"] for what in ("rule", "z"))
    keep = torch.tensor([[True, True, False]])
    look(ScoreRule(MaskRule(2, 3, 3, keep=keep), 1.0))
    other = threading.Thread(target=look, args=(ScoreRule(MaskRule(2, 3, 3), 1.0),))
    other.start()
    other.join()
    z = torch.arange(6.0).view(1, 2, 3, 1).transpose(1, 2)  # [batch, query, head, d_head]
    assert mean(z)[0, :, 1].flatten().tolist() == [3.5] * 3
