"""What the service says of positions: the numbers of core.labs.positions and core.measures, as plain data, of real models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError, InterventionError
from core.labs.positions import before_rotary, equivariance, score_by_distance, shift_invariance, shuffled_words
from core.model.config import RotaryScaling
from core.model.positions import alibi_slopes, relative_bucket
from core.model.text import Tokens
from core.read import measures
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine
from core.service.facts import facts_of
from core.service.positions import REACH, order_change, positions_of, rotary_pairs_of, rows_of, scores_of
from tests.core.serving import assert_plain

Tiny = Callable[..., Loaded]
ANIMAL = "The animal didn't cross the street because it was too tired."
KING = "The old king loved the golden bird, and the old"
SWAPPED = (0, 1, 8, 3, 4, 5, 6, 7, 2, 9, 10, 11, 12, 13, 14, 15)
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]


@pytest.fixture(scope="module")
def animal() -> core.Trace:
    return core.trace(core.load("minilm"), ANIMAL)


@pytest.fixture(scope="module")
def king() -> core.Trace:
    return core.trace(core.load("storyteller"), KING)


def test_the_words_are_shuffled_and_nothing_else(animal: core.Trace) -> None:
    tokens = animal.source
    places = shuffled_words(tokens, 3)
    assert sorted(places) == list(range(16)) and places[0] == 0 and places[15] == 15
    assert places == shuffled_words(tokens, 3) != shuffled_words(tokens, 4)
    two = Tokens("a b", (1, 2), ("a", "b"), ((0, 1), (2, 3)), (0, 1), (0, 0), (False,) * 2, (0, 0), (False,) * 2)
    assert all(shuffled_words(two, seed) == (1, 0) for seed in range(4))
    assert shuffled_words(replace(two, padding=(False, True)), 0) == (0, 1)


def test_the_proof_of_equivariance(animal: core.Trace, king: core.Trace) -> None:
    for places in (SWAPPED, shuffled_words(animal.source, 1)):
        proof = equivariance(animal, places)
        assert proof.without < 1e-5 and proof.same < 1e-5 and proof.trained > 0.3
    decoder = equivariance(king, [1, 0, *range(2, len(king.source))])
    assert decoder.without < 1e-5 and decoder.masked is not None and decoder.masked > 0.1
    with pytest.raises(HeadlightError, match="not an order of 16 tokens"):
        equivariance(animal, [0] * 16)


def test_a_whole_text_moved_on(animal: core.Trace, king: core.Trace) -> None:
    moved = shift_invariance(king, 100)
    assert moved.scores < 1e-4 and moved.weights < 1e-5
    assert shift_invariance(animal, 100).weights > 0.1  # a learned table knows where each token stands
    with pytest.raises(InterventionError, match="0 to 511"):
        shift_invariance(animal, 500)


def test_how_far_every_head_moves(animal: core.Trace) -> None:
    dropped = core.trace(animal.loaded, ANIMAL, interventions=[core.edits.DropPositions()])
    site = facts_of(animal, "").sites[0]
    change = order_change(animal, dropped, site, 8)
    assert change.before is not None and change.after is not None
    assert change.moved.shape == (6, 12) and change.before.shape == (6, 12, 17) and change.rows == change.of == 16
    assert change.moved[0, 2] == pytest.approx(0.90, abs=5e-3) and np.argmax(change.moved) == 2
    assert (change.moved > 0.5).sum() == 7
    assert change.before[0, 2, 7] == pytest.approx(1.00, abs=5e-3) and change.after[0, 2, 7] == pytest.approx(
        0.11, abs=5e-3
    )
    one_back = measures.previous_token(dropped.attention[0].pattern(2)).item()
    assert change.after[0, 2, 7] == pytest.approx(one_back, abs=1e-6)
    # of words that have swapped their places, distance is by places: the head for one back keeps it
    swapped = core.trace(animal.loaded, ANIMAL, interventions=[core.edits.SetPositions(SWAPPED)])
    change = order_change(animal, swapped, site, 8)
    assert change.after is not None and change.places == SWAPPED
    assert change.after[0, 2, 7] == pytest.approx(1.00, abs=5e-3)
    by_hand = measures.by_distance(swapped.attention[3].pattern(), torch.tensor(SWAPPED), 8)
    assert np.allclose(change.after[3], by_hand.numpy(), equal_nan=True, atol=1e-6)
    with pytest.raises(HeadlightError, match="different tokens"):
        order_change(animal, core.trace(animal.loaded, "Another text."), site, 8)


def test_of_rotary_positions_taken_away_distance_is_by_the_words(tiny: Tiny) -> None:
    loaded = tiny(position="rotary")
    runs = [core.trace(loaded, ids=IDS, interventions=edits) for edits in ((), [core.edits.DropPositions()])]
    change = order_change(runs[0], runs[1], facts_of(runs[0], "").sites[0], 3)
    assert change.places == tuple(range(len(IDS))) and change.after is not None
    by_hand = measures.by_distance(runs[1].attention[0].pattern(), torch.arange(len(IDS)), 3)
    assert np.allclose(change.after[0], by_hand.numpy(), equal_nan=True, atol=1e-6)


def test_cross_attention_moves_and_has_no_distance() -> None:
    loaded = core.load("translator")
    german, english = "Ein Hund rennt durch den Schnee.", "A dog runs"
    run = core.trace(loaded, german, english)
    places = shuffled_words(run.source, 1)
    moved = core.trace(loaded, german, english, interventions=[core.edits.SetPositions(places, "encoder")])
    sites = {site.id: site for site in facts_of(run, "").sites}
    crossed = order_change(run, moved, sites["cross"], 8)
    assert crossed.before is None and crossed.after is None and crossed.moved.max() > 0.05
    assert order_change(run, moved, sites["encoder"], 8).moved.max() > 0.05
    assert equivariance(run, places).without < 1e-5


def test_the_learned_table(animal: core.Trace) -> None:
    (known,) = positions_of(animal)
    assert (known.kind, known.n_ctx, known.d_model, known.parameters) == ("learned", 512, 384, 196_608)
    assert known.places == tuple(range(16)) and known.compared == 512
    assert known.closest is not None and known.closest[2] > 0
    assert known.alike is not None and known.alike[0] == pytest.approx(1, abs=1e-6)
    table = animal.positions[0].table()
    rows = rows_of(animal, "encoder", 0, 64)
    assert table is not None and rows.shape == (64, 384)
    for feature in (0, 4, 10, 20):
        assert np.abs(rows[:16, feature] - table[:, feature].numpy()).max() < 1e-6

    def cosine(i: int, j: int) -> float:
        return float(rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]))

    assert cosine(20, 26) == pytest.approx(0.67, abs=5e-3) and cosine(20, 23) == pytest.approx(0.47, abs=5e-3)
    assert rows_of(animal, "encoder", 500, 64).shape == (12, 384)
    with pytest.raises(core.errors.TextError) as refused:
        core.trace(animal.loaded, ids=[101] + [1996] * 600 + [102])
    said = str(refused.value)
    assert said == known.too_long and "602" in said and "512" in said
    with pytest.raises(HeadlightError, match="no decoder"):
        rows_of(animal, "decoder", 0, 64)
    with pytest.raises(HeadlightError, match="0 to 511"):
        rows_of(animal, "encoder", 512, 1)


def test_sinusoids_are_of_a_model_that_has_them(king: core.Trace) -> None:
    run = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog")
    encoder, decoder = positions_of(run)
    assert (encoder.stack, decoder.stack, encoder.kind, encoder.parameters) == ("encoder", "decoder", "sinusoidal", 0)
    assert encoder.closest is not None and encoder.closest[2] == pytest.approx(2.671, abs=1e-3)
    rows = rows_of(run, "encoder", 0, 64)
    steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    assert steps == pytest.approx([2.671] * 63, abs=1e-3)
    (turned,) = positions_of(king)
    assert turned.kind == "rotary" and turned.closest is None and turned.too_long is None
    with pytest.raises(HeadlightError, match="its positions are rotary"):
        rows_of(king, "decoder", 0, 4)


@pytest.mark.parametrize("kind", ["alibi", "relative"])
def test_rules_over_distance(tiny: Tiny, kind: str) -> None:
    run = core.trace(tiny(position=kind), ids=IDS)
    known = positions_of(run)[0]
    assert known.kind == kind and known.bias is not None and known.bias.shape == (run.config.n_heads, 2 * REACH + 1)
    given = run.attention[0].rule.bias
    assert given is not None
    block = given.block(torch.arange(len(IDS)), torch.arange(len(IDS)))[0].detach()
    for query, key in ((0, 0), (8, 1), (5, 4)):
        assert known.bias[:, REACH + key - query] == pytest.approx(block[:, query, key].numpy(), abs=1e-6)
    if kind == "alibi":
        assert known.slopes == pytest.approx(alibi_slopes(run.config.n_heads).numpy())
        assert known.parameters == 0
    else:
        assert known.buckets is not None
        distances = torch.arange(-REACH, REACH + 1)
        own = relative_bucket(
            distances, run.config.n_relative_buckets, run.config.max_relative_distance, known.stack == "encoder"
        )
        assert known.buckets.tolist() == own.tolist()
        assert known.parameters == run.config.n_relative_buckets * run.config.n_heads


def test_clocks_give_the_score_of_a_distance(king: core.Trace) -> None:
    old, the, record = 11, 10, king.attention[1]
    before = before_rotary(king, record)
    clock = rotary_pairs_of(king, record, before, 0, old, the)
    assert clock.places == (11, 10) and not clock.masked and clock.factor == 1 and len(clock.frequencies) == 16
    scores = scores_of(clock, range(-10, 31))
    assert scores[11] == pytest.approx(clock.score, abs=1e-4) and clock.score == pytest.approx(7.232, abs=1e-3)
    assert scores[10:].argmax() == 1
    assert rotary_pairs_of(king, record, before, 0, the, old).masked


@pytest.mark.parametrize(
    "config",
    [
        {"rotary_fraction": 0.67, "n_kv_heads": 2},
        {"rotary_scaling": RotaryScaling(kind="yarn", factor=4.0, n_ctx_original=16)},
        {"rotary_scaling": RotaryScaling(kind="dynamic", factor=2.0, n_ctx_original=4)},
    ],
)
def test_clocks_of_partial_grouped_and_stretched_rotary(tiny: Tiny, config: dict) -> None:
    run = core.trace(tiny(position="rotary", **config), ids=IDS)
    record = run.attention[-1]
    before = before_rotary(run, record)
    for head, query, key in ((0, 8, 1), (record.n_heads - 1, 5, 5), (1, 2, 7)):
        clock = rotary_pairs_of(run, record, before, head, query, key)
        assert scores_of(clock, [query - key])[0] == pytest.approx(clock.score, abs=1e-4)


def test_the_score_by_distance_by_hand() -> None:
    q, k = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0.0, 1.0, 3.0])  # one pair, one feature that is not turned
    frequency = torch.tensor([0.5])
    expected = [(np.cos(0.5 * d + np.pi / 2 * -1) + 6) / 2 for d in (0, 1, -2)]
    assert score_by_distance(q, k, frequency, 0.5, [0, 1, -2]).tolist() == pytest.approx(expected)


def test_the_service_has_them_as_plain_data() -> None:
    shared = LocalService(Engine(load_model=core.load))

    async def ask() -> list[object]:
        key, other = [
            await shared.submit(Request("minilm", (ANIMAL,), interventions=edits))
            for edits in ((), (core.edits.DropPositions(),))
        ]
        turned = await shared.submit(Request("storyteller", (KING,)))
        change = await shared.order_change(key, other, "encoder")
        assert change is await shared.order_change(key, other, "encoder") and change.moved[0, 2] > 0.8
        clock = await shared.rotary_pairs(turned, 1, 0, 11, 10)
        assert clock.score == pytest.approx(7.232, abs=1e-3)
        with pytest.raises(HeadlightError, match="does not rotate queries"):
            await shared.rotary_pairs(key, 1, 0, 11, 10)
        with pytest.raises(HeadlightError, match="no query 400"):
            await shared.rotary_pairs(turned, 1, 0, 400, 10)
        rows = await shared.position_rows(key, "encoder", 0, 4)
        return [
            change,
            clock,
            rows,
            await shared.positions(key),
            await shared.equivariance(key, SWAPPED),
            await shared.moved_on(turned, 100),
        ]

    for answer in asyncio.run(ask()):
        assert_plain(answer)
