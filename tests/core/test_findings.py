"""Findings of the models that ship, number by number, and of tiny models of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.read import head_roles, measures
from core.read.attribution import has_looks
from core.read.edge_attribution import head_logit_attribution, top_token_attribution
from core.read.findings import Finding
from core.read.head_roles import are_common, are_long, common_words
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import texts
from tests.thorough import part

Tiny = Callable[..., Loaded]
IOI = "When Mary and John went to the store, John gave a drink to"
ROME = "London is in England, Rome is in"
PARIS = "The capital of France is"
KEYS = "The keys to the old cabinet"
DOG = "The dog chased the cat and the cat chased the"
ANIMAL = "The animal didn't cross the street because it was too"
FISH = (
    "My grandfather was a fisherman. Every morning he took his boat out to sea, and every evening he came home with a "
    "basket full of"
)
ALICE = Path(__file__).parent / "alice.txt"  # the beginning of Carroll's book of 1865, shortened: 960 tokens


@cache
def run(text: str) -> core.Trace:
    return core.trace(smollm2(), text)


def words(of: core.Trace, found: Finding) -> tuple[str, str]:
    queries, keys = of.tokens_of(of.attention.at(found.layer, found.site, found.stack))
    return queries.labels[found.query], keys.labels[found.key]


# text, the word that is likeliest and its probability, kind, layer, head, query, key, weight, what it adds
OPENINGS = (
    (IOI, "Mary", 0.923, "writes", 23, 0, "to", "Mary", 0.689, 1.146),
    (ROME, "Italy", 0.914, "writes", 23, 4, "in", "Rome", 0.882, 2.748),
    (PARIS, "Paris", 0.773, "writes", 23, 4, "is", "France", 0.903, 2.820),
    (KEYS, "were", 0.149, "writes", 26, 0, "cabinet", "keys", 0.893, 3.206),
    (DOG, "dog", 0.984, "writes", 23, 0, "the", "dog", 0.734, 1.099),
    (ANIMAL, "far", 0.604, "stands out", 13, 8, "it", "animal", 0.750, 0.103),
    (FISH, "fish", 0.487, "writes", 23, 5, "of", "fisherman", 0.435, 1.190),
)


@pytest.mark.thorough(but=1)
@needs_smollm2
@pytest.mark.parametrize("case", part(OPENINGS, 3), ids=lambda case: case[1])
def test_openings_of_smollm2(case: tuple[Any, ...]) -> None:
    text, word, probability, kind, layer, head, query, key, weight, addition = case
    of = run(text)
    likeliest = of.predictions(k=1)
    assert likeliest.strings[0][0].strip("Ġ") == word
    assert likeliest.probs[0][0] == pytest.approx(probability, abs=6e-4)
    found = core.opening_finding(of)
    assert (found.kind, found.layer, found.head, words(of, found)) == (kind, layer, head, (query, key))
    assert found.weight == pytest.approx(weight, abs=6e-4) and found.addition == pytest.approx(addition, abs=1e-3)
    looks = core.edge_attribution(of, found.query)
    assert looks[layer, head, found.key].item() == pytest.approx(addition, abs=1e-3)
    heads = [part.value for part in of.logit_attribution(found.query).parts if part.part == "head"]
    assert torch.allclose(looks.sum(-1).flatten(), torch.tensor(heads), atol=1e-4)
    if kind == "writes":
        assert found.word == word
    else:
        assert found.habit == pytest.approx(0.018, abs=5e-4)


@needs_smollm2
def test_findings_of_smollm2_are_each_of_another_head() -> None:
    found = {one.kind: one for one in core.findings(run(IOI))}
    assert list(found) == ["writes", "votes against", "after a repeat", "one back", "rests"]
    against, repeat, back, rests = list(found.values())[1:]
    assert (against.layer, against.head, words(run(IOI), against)) == (24, 4, ("to", "Mary"))
    assert (against.weight, against.addition) == pytest.approx((0.810, -1.311), abs=6e-4)
    assert (repeat.layer, repeat.head, repeat.query, words(run(IOI), repeat)) == (17, 4, 9, ("John", "went"))
    assert repeat.weight == pytest.approx(0.818, abs=6e-4)
    assert (back.layer, back.head, back.mean) == (16, 0, pytest.approx(0.786, abs=6e-4))
    assert (rests.layer, rests.head, rests.mean) == (18, 7, pytest.approx(0.9999, abs=1e-4))
    adds = head_logit_attribution(run(IOI))[0]
    assert (adds[23, 0].item(), adds[24, 4].item()) == pytest.approx((1.143, -1.310), abs=6e-4)
    same = {one.kind: one for one in core.findings(run(DOG))}["same word"]
    assert (same.layer, same.head, same.query, same.key) == (8, 1, 7, 4)
    assert same.weight == pytest.approx(0.893, abs=6e-4)
    paris = {one.kind: one for one in core.findings(run(PARIS))}["votes against"]
    assert (paris.layer, paris.head) == (16, 0)
    assert (paris.weight, paris.addition) == pytest.approx((0.777, -0.397), abs=6e-4)
    small = {one.kind: one for one in core.findings(run(ANIMAL))}["largest push"]
    assert (small.layer, small.head, small.addition) == (10, 1, pytest.approx(0.078, abs=6e-4))


@needs_smollm2
def test_a_head_moves_the_likeliest_words() -> None:
    moved = top_token_attribution(run(KEYS))
    assert moved.values.shape == (30, 9, 100)
    of = dict(zip(moved.strings, moved.values[26, 0].tolist(), strict=True))
    assert (of["Ġare"], of["Ġwas"]) == pytest.approx((3.72, -0.63), abs=6e-3)
    assert max(of, key=of.__getitem__) == "Ġare" and of["Ġwas"] < 0


@needs_smollm2
def test_where_heads_rest_without_the_row_that_sees_nothing_else() -> None:
    found = measures.sink(run(IOI).attention)
    assert found is not None and (found.key, found.rows) == (0, 13)
    assert (found.shares.mean(), int((found.shares > 0.5).sum())) == (pytest.approx(0.548, abs=5e-4), 166)
    pattern = run(IOI).attention[3].pattern()
    rows = torch.arange(14) > 0
    assert measures.sink_share(pattern, 0, rows).tolist() == pytest.approx(found.shares[3].tolist(), abs=1e-5)
    assert (measures.sink_share(pattern) > measures.sink_share(pattern, 0, rows)).all()
    roles = head_roles.run_roles(run(IOI), sink_key=0)
    assert roles[18][7].name == "rests" and roles[16][0].name == "one back"
    rests = np.array([[role.rests for role in layer] for layer in roles])
    assert rests == pytest.approx(found.shares, abs=1e-5)
    named = sum(role.name not in ("mixed", "rests") for layer in roles for role in layer)
    assert named > sum(role.name != "mixed" for layer in head_roles.run_roles(run(IOI)) for role in layer)


@needs_smollm2
@pytest.mark.thorough
def test_a_long_text_opens_on_a_word_far_back() -> None:
    of = core.trace(smollm2(), ALICE.read_text(encoding="utf-8"))
    assert len(of.source) == 960
    found = {one.kind: one for one in core.findings(of)}
    writes, repeat = found["writes"], found["after a repeat"]
    assert (writes.word, writes.layer, writes.head, writes.query - writes.key) == ("Rabbit", 23, 2, 836)
    assert (writes.weight, writes.addition) == pytest.approx((0.753, 1.677), abs=1e-3)
    assert of.predictions(k=1).probs[0][0] == pytest.approx(0.888, abs=6e-4)
    assert (repeat.layer, repeat.head, repeat.weight) == (17, 3, pytest.approx(0.962, abs=6e-4))
    strongest = core.strongest_edges(of, k=3)
    assert strongest.keys[23, 2, 0, 0] == writes.key
    assert strongest.weights[23, 2, 0, 0].item() == pytest.approx(writes.weight, abs=1e-5)


@needs_smollm2
@pytest.mark.parametrize(
    "text",
    part(["Hello", "Good morning", "🎉🎉🎉", "Der Hund", "blue blue blue blue", "def add(a, b):\n    return a +"]),
)
def test_any_text_opens_on_something_that_was_typed(text: str) -> None:
    of = run(text)
    found = core.findings(of)
    first = found[0]
    assert 0 <= first.key <= first.query < len(of.source) and first.weight > 0
    assert first.key < first.query or len(of.source) == 1
    assert len({(one.layer, one.head) for one in found}) == len(found)
    assert first.word and np.isfinite(first.addition or 0)


def test_findings_of_an_encoder_and_of_a_translator() -> None:
    of = core.trace(core.load("minilm"), ANIMAL + " tired.")
    found = {one.kind: one for one in core.findings(of)}
    assert list(found) == ["stands out", "one back", "one ahead", "rests"]
    first = found["stands out"]
    assert (first.layer, first.head, words(of, first), first.addition) == (2, 1, ("it", "tired"), None)
    assert (first.weight, first.habit) == pytest.approx((0.715, 0.062), abs=6e-4)
    assert found["one back"].mean == pytest.approx(0.99986, abs=1e-5)
    assert found["one ahead"].mean == pytest.approx(0.591, abs=6e-4)
    assert (found["rests"].layer, found["rests"].head, found["rests"].mean) == (4, 5, pytest.approx(0.906, abs=6e-4))
    of = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    found = {one.kind: one for one in core.findings(of)}
    first = found["writes"]
    assert (first.site, first.layer, first.head, words(of, first), first.word) == (
        "cross_attn", 2, 6, ("A", "Hund"), "dog"
    )  # fmt: skip
    assert (first.weight, first.addition) == pytest.approx((0.990, 2.447), abs=6e-4)
    assert of.predictions([first.query], 1).probs[0][0] == pytest.approx(0.927, abs=6e-4)
    assert (found["one word"].layer, found["one word"].head, found["one word"].mean) == (
        1, 1, pytest.approx(0.546, abs=6e-4)
    )  # fmt: skip
    assert (found["rests"].layer, found["rests"].head) == (1, 4)
    assert found["rests"].mean == pytest.approx(0.342, abs=6e-4)


WITHOUT_WORDS = {"n_encoder_layers": 2, "n_decoder_layers": 2, "head": "none"}  # an encoder–decoder that writes none


@pytest.mark.parametrize("config", [*part(SAMPLE[::2], 3), WITHOUT_WORDS], ids=name)
def test_every_kind_of_model_has_findings_that_are_cells_of_its_maps(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    rng = random.Random(name(config))
    sources, targets = texts(loaded.config.kind, rng.choice(("none", "left", "right")), rng)
    of = core.trace_tokens(loaded, sources, targets, ()).text(1)
    found = core.findings(of)
    opening = core.opening_finding(of)
    assert (opening.kind, opening.layer, opening.head, opening.query, opening.key) == (
        found[0].kind, found[0].layer, found[0].head, found[0].query, found[0].key
    )  # fmt: skip
    assert len({(one.layer, one.head) for one in found}) == len(found)
    for one in found:
        record = of.attention.at(one.layer, one.site, one.stack)
        queries, keys = of.tokens_of(record)
        assert not queries.padding[one.query] and not keys.padding[one.key]
        assert record.row(one.head, one.query)[one.key].item() == pytest.approx(one.weight, abs=1e-5)
        if has_looks(of):
            expected = core.edge_attribution(of, one.query, one.token)[one.layer, one.head, one.key].item()
            assert one.addition == pytest.approx(expected, abs=1e-4)
        else:
            assert one.addition is None


def test_a_translation_without_logits_has_findings_too() -> None:
    """No look adds anything there, and none is measured against a habit: it opens where the picture does."""
    loaded = make_loaded(head="none", n_encoder_layers=1, n_decoder_layers=2)
    sources, targets = texts(loaded.config.kind, "none", random.Random(0))
    of = core.trace_tokens(loaded, sources, targets, ()).text(1)
    assert not has_looks(of)
    first, *others = core.findings(of)
    link = next(link for link in head_roles.opening_edges(of) if (link.stack, link.site) == ("decoder", "cross_attn"))
    assert (first.kind, first.site, first.layer, first.head, first.query, first.key) == (
        "stands out", "cross_attn", link.layer, link.head, link.query, link.key
    )  # fmt: skip
    assert (first.weight, first.addition) == (link.weight, None)
    assert "one word" in {one.kind for one in others}


def test_a_translation_longer_than_its_source_has_findings_too() -> None:
    target = "A woman in a red dress is dancing on the street."
    of = core.trace(core.load("translator"), "Eine Frau in einem roten Kleid tanzt auf der Straße.", target)
    first, *others = core.findings(of)
    assert of.target is not None and len(of.target) > len(of.source)
    assert (first.kind, first.word, words(of, first)) == ("writes", "red", ("a", "roten"))
    assert [one.kind for one in others] == ["one word", "rests"]


def test_common_words_are_those_with_the_lowest_numbers(tiny: Tiny) -> None:
    loaded = core.load("minilm")
    assert {"the", "because", "it"} <= common_words(loaded) and "animal" not in common_words(loaded)
    tokens = loaded.tokens("the animal ran")
    assert are_common(loaded, tokens)[1:3] == [True, False] and are_long(tokens)[1:4] == [False, True, False]
    assert common_words(tiny()) == frozenset()
