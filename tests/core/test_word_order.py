"""Order comes in through positions alone: the proof on real models, the tables' rows, and queries before they are turned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.labs.positions import before_rotary, closest_rows, cosine_by_distance, cosine_to
from core.model.positions import rotate, sinusoid_table
from core.read import measures

Tiny = Callable[..., Loaded]
ANIMAL = "The animal didn't cross the street because it was too tired."
KING = "The old king loved the golden bird, and the old"
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]


def minilm_table() -> torch.Tensor:
    return core.load("minilm").model.get_parameter("encoder.embed.position.weight")


def test_words_moved_without_positions_give_the_same_map_reordered() -> None:
    loaded = core.load("minilm")
    first = core.trace(loaded, ANIMAL, interventions=[core.edits.DropPositions()])
    order = torch.arange(16)
    order[2], order[8] = 8, 2  # animal and street swap
    ids = [first.source.ids[i] for i in order]
    moved = core.trace(loaded, ids=ids, interventions=[core.edits.DropPositions()])
    for before, after in zip(first.attention, moved.attention, strict=True):
        assert (before.pattern()[..., order, :][..., order] - after.pattern()).abs().max() < 1e-5
    # with positions they do not
    trained, swapped = core.trace(loaded, ANIMAL), core.trace(loaded, ids=ids)
    far = [
        (a.pattern()[..., order, :][..., order] - b.pattern()).abs().max()
        for a, b in zip(trained.attention, swapped.attention, strict=True)
    ]
    assert max(far) > 0.3


def test_words_moved_or_positions_moved_is_the_same() -> None:
    loaded = core.load("minilm")
    order = torch.arange(16)
    order[2], order[8] = 8, 2
    places = core.trace(loaded, ANIMAL, interventions=[core.edits.SetPositions(order.tolist())])
    words = core.trace(loaded, ids=[places.source.ids[i] for i in order])
    for a, b in zip(places.attention, words.attention, strict=True):
        assert (a.pattern()[..., order, :][..., order] - b.pattern()).abs().max() < 1e-5
    # rows follow words, so this compares word by word: where animal and street have changed places
    trained = core.trace(loaded, ANIMAL)
    labels = trained.source.labels
    it, animal, street = labels.index("it"), labels.index("animal"), labels.index("street")
    assert trained.attention[3].row(1, it)[animal].item() == pytest.approx(0.677, abs=1e-3)
    assert places.attention[3].row(1, it)[animal].item() == pytest.approx(0.255, abs=1e-3)
    assert places.attention[3].row(1, it)[street].item() == pytest.approx(0.52, abs=5e-3)
    assert measures.total_variation(trained.attention[3].pattern(), places.attention[3].pattern())[1] > 0.05


def test_without_positions_the_head_for_one_back_is_lost() -> None:
    loaded = core.load("minilm")
    trained = core.trace(loaded, ANIMAL)
    dropped = core.trace(loaded, ANIMAL, interventions=[core.edits.DropPositions()])
    before, after = (run.attention[0].pattern([2]) for run in (trained, dropped))
    assert measures.previous_token(before).item() == pytest.approx(1.00, abs=5e-3)
    assert measures.previous_token(after).item() == pytest.approx(0.11, abs=5e-3)
    assert dropped.attention[3].row(1, 10)[2].item() == pytest.approx(0.036, abs=1e-3)
    moved = measures.total_variation(before, after).item()
    assert moved == pytest.approx((before - after).abs().sum(-1).mean().item() / 2, abs=1e-6) and moved > 0.8
    one_back = measures.by_distance(before, trained.positions[0].places, 5)[0]
    assert one_back.argmax() == 4 and one_back[4].item() == pytest.approx(
        measures.previous_token(before).item(), abs=1e-6
    )


def test_rows_of_the_learned_table() -> None:
    table = minilm_table()
    alike = cosine_to(table, 20)
    assert alike[[20, 26, 23]].tolist() == pytest.approx([1, 0.67, 0.47], abs=5e-3)
    # six rows away is more alike than three: it does not simply fall with distance
    curve = cosine_by_distance(table[1:], 8)
    assert len(curve) == 9 and curve[0].item() == pytest.approx(1, abs=1e-6) and curve[6] > curve[3]
    i, j, distance = closest_rows(table)
    by_hand = torch.cdist(table.double(), table.double()).fill_diagonal_(float("inf"))
    assert distance == pytest.approx(by_hand.min().item(), rel=1e-6) and distance > 0
    assert by_hand[i, j].item() == pytest.approx(distance, rel=1e-6)


def test_rows_of_a_sinusoid_depend_on_their_distance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = sinusoid_table(256, 64, "interleaved")
    curve = cosine_by_distance(table)
    assert len(curve) == 256
    for i, j in ((0, 5), (100, 105), (250, 200)):
        assert cosine_to(table, i)[j].item() == pytest.approx(curve[abs(i - j)].item(), abs=1e-5)
    steps = (table[1:] - table[:-1]).norm(dim=-1)
    assert torch.allclose(steps, steps[0].expand_as(steps), atol=1e-4)
    whole = closest_rows(table)
    assert whole[2] == pytest.approx(steps[0].item(), abs=1e-4)
    monkeypatch.setattr("core.model.rules.BLOCK_BYTES", 256 * 8 * 7)  # in blocks of seven rows
    assert closest_rows(table)[2] == pytest.approx(whole[2], abs=1e-9)
    assert closest_rows(torch.tensor([[0.0], [3.0], [1.0], [3.0]])) == (1, 3, 0.0)
    with pytest.raises(ValueError, match="one row"):
        closest_rows(table[:1])


@pytest.mark.parametrize("fraction", [1.0, 0.67])
def test_queries_before_they_are_turned(tiny: Tiny, fraction: float) -> None:
    run = core.trace(tiny(position="rotary", rotary_fraction=fraction, n_kv_heads=2), ids=IDS)
    for record in run.attention:
        before = before_rotary(run, record)
        angles = run.positions[0].angles()
        assert angles is not None and len(before.pairs) == angles.shape[-1]
        for straight, turned in ((before.q, record.q), (before.k, record.k)):
            assert torch.allclose(rotate(straight, angles.cos(), angles.sin()), turned, atol=1e-5)
            for a, b in before.pairs:
                assert torch.allclose(straight[..., [a, b]].norm(dim=-1), turned[..., [a, b]].norm(dim=-1), atol=1e-5)


def test_a_sentence_moved_on_turns_every_hand_and_no_score() -> None:
    loaded = core.load("storyteller")
    here = core.trace(loaded, KING)
    n = len(here.source)
    there = core.trace(loaded, KING, interventions=[core.edits.SetPositions(range(100, 100 + n))])
    for a, b in zip(here.attention, there.attention, strict=True):
        assert (a.scores() - b.scores()).abs().max() < 1e-4
    assert not torch.allclose(here.attention[1].q, there.attention[1].q, atol=0.1)
    assert torch.allclose(
        before_rotary(here, here.attention[1]).q, before_rotary(there, there.attention[1]).q, atol=1e-4
    )


def test_what_is_not_turned_says_so() -> None:
    run = core.trace(core.load("minilm"), ANIMAL)
    with pytest.raises(HeadlightError, match="does not rotate queries and keys"):
        before_rotary(run, run.attention[0])


def test_two_words_on_a_line_of_clocks() -> None:
    run = core.trace(core.load("storyteller"), KING)
    labels = run.source.labels
    before = before_rotary(run, run.attention[1])
    old, the = 11, 10
    assert (labels[old], labels[the]) == ("old", "the")
    q, k = before.q[0, old], before.k[0, the]
    angles = run.positions[0].angles()
    assert angles is not None

    def score(distance: int) -> float:
        turn = angles[1] * distance
        turned = rotate(q[None, None], turn.cos(), turn.sin())[0, 0]
        return (turned @ k / q.shape[-1] ** 0.5).item()

    assert score(old - the) == pytest.approx(run.attention[1].scores(0, old, the).item(), abs=1e-4)
    assert score(1) == pytest.approx(7.232, abs=1e-3)
    assert max(range(12), key=score) == 1
