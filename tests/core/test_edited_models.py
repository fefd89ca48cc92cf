"""What edits do to the models that people see. Other code found the same numbers on the same weights, the storyteller's before they
were rounded to int8."""

from __future__ import annotations

import pytest

import core
from core.checkpoints import Loaded
from core.edits import Intervention

KING = "The old king loved the golden bird, and the old"
AUNT = "Dorothy ran home over the prairie to Uncle Henry and Aunt"
ANIMAL = "The animal didn't cross the street because it was too tired."


@pytest.fixture(scope="module")
def storyteller() -> Loaded:
    return core.load("storyteller")


@pytest.fixture(scope="module")
def minilm() -> Loaded:
    return core.load("minilm")


def next_word(loaded: Loaded, text: str, word: str, *edits: Intervention) -> float:
    """How likely the model thinks that this word comes next."""
    guesses = core.trace(loaded, text, interventions=edits).predictions(k=loaded.config.vocab_size)
    return dict(zip(guesses.strings[0], guesses.probs[0], strict=True))[f"Ġ{word}"]


def test_one_look_cut_in_every_head_or_in_one(storyteller: Loaded) -> None:
    plain = core.trace(storyteller, KING)
    assert plain.attention[3].pattern(6, 11, 3).item() == pytest.approx(0.813, abs=1e-3)
    assert next_word(storyteller, KING, "man") == pytest.approx(0.474, abs=1e-3)
    cut, one = core.edits.EditMask(queries=11, keys=3), core.edits.EditMask("decoder", 3, 11, 3, head=6)
    assert core.trace(storyteller, KING, interventions=[cut]).attention[3].pattern(6, 11, 3).item() == 0
    assert next_word(storyteller, KING, "man", cut) == pytest.approx(0.382, abs=1e-3)
    assert next_word(storyteller, KING, "man", one) == pytest.approx(0.464, abs=1e-3)
    after = core.trace(storyteller, KING, interventions=[cut, core.edits.MaskAfterSoftmax()])
    assert after.attention[3].pattern(6, 11).sum().item() == pytest.approx(0.199, abs=1e-3)


def test_a_head_that_an_answer_depends_on_and_one_that_it_does_not(storyteller: Loaded) -> None:
    for expected, edits in (
        (0.894, []),
        (0.0284, [core.edits.Ablate("decoder", 0, 5)]),
        (0.885, [core.edits.Ablate("decoder", 1, 0)]),
        (0.0376, [core.edits.EditMask("decoder", 0, 13, 13, head=5)]),
        (0.0067, [core.edits.EditMask("decoder", None, 13, 13)]),
        (0.890, [core.edits.DropCausalMask()]),
        (0.745, [core.edits.NoScale()]),
        (0.0002, [core.edits.DropPositions()]),
        (0.0014, [core.edits.Temperature(4)]),
    ):
        assert next_word(storyteller, AUNT, "Em", *edits) == pytest.approx(expected, abs=1e-3), edits


def test_where_it_looks_when_positions_go_or_two_words_swap_theirs(minilm: Loaded) -> None:
    def look(key: int, *edits: Intervention) -> float:
        return core.trace(minilm, ANIMAL, interventions=edits).attention[3].pattern(1, 10, key).item()

    animal, street = 2, 8
    swapped = core.edits.SetPositions([0, 1, street, 3, 4, 5, 6, 7, animal, *range(9, 16)])
    assert look(animal) == pytest.approx(0.677, abs=1e-3)
    assert look(animal, core.edits.DropPositions()) == pytest.approx(0.036, abs=1e-3)
    assert look(animal, swapped) == pytest.approx(0.255, abs=1e-3)
    assert look(street, swapped) == pytest.approx(0.521, abs=1e-3)
