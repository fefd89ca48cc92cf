"""The text's own next words: their probability, rank and loss, on the models that ship and against torch's cross entropy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import core
from core.checkpoints import Loaded
from core.errors import TextError
from core.read import next_token_loss as given_words
from core.read.next_token_loss import given, probabilities

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


def test_losses_are_the_cross_entropy_of_the_text_shifted_by_one(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny()
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([IDS]))[0, :-1]
    expected = F.cross_entropy(logits, torch.tensor(IDS[1:]), reduction="none")
    monkeypatch.setattr(given_words, "LOGIT_BYTES", 3 * 61 * 4)  # in four pieces
    found = given(core.trace(loaded, ids=IDS))
    assert found.positions.tolist() == list(range(10)) and found.ids.tolist() == IDS[1:]
    assert torch.allclose(found.losses, expected, atol=1e-5)
    assert torch.allclose(found.probabilities, logits.softmax(-1)[range(10), IDS[1:]], atol=1e-6)
    order = logits.argsort(-1, descending=True)
    assert found.ranks.tolist() == [1 + order[i].tolist().index(IDS[i + 1]) for i in range(10)]


def test_some_positions_and_some_words(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS)
    every, some = given(run), given(run, [7, 2])
    assert some.positions.tolist() == [7, 2] and torch.allclose(some.losses, every.losses[[7, 2]], atol=1e-6)
    best = run.predictions([4], k=3)
    assert probabilities(run, best.ids[0], 4).tolist() == pytest.approx(best.probs[0], abs=1e-6)
    assert probabilities(run, range(61)).sum().item() == pytest.approx(1, abs=1e-5)
    assert len(given(core.trace(tiny(), ids=[5])).losses) == 0
    for wrong in ([10], [-1], [99]):
        with pytest.raises(IndexError, match="has no next token in a text of 11"):
            given(run, wrong)
    with pytest.raises(IndexError, match="token 61 of a vocabulary of 61"):
        probabilities(run, [61])
    with pytest.raises(IndexError, match="position 11 of 11"):
        probabilities(run, [1], 11)


def test_the_storys_next_words() -> None:
    run = core.trace(core.load("storyteller"), 'The wolf knocked at the door and said, "Open the')
    door = run.predictions(k=1)
    assert door.strings[0][0].endswith("door")
    assert probabilities(run, [door.ids[0][0]]).item() == pytest.approx(0.389, abs=1e-3)


def test_dropping_the_mask_of_a_trained_model_does_not_show_leakage() -> None:
    loaded, text = core.load("storyteller"), "The old king loved the golden bird, and the old"
    losses = [
        given(core.trace(loaded, text, interventions=edits)).losses.mean().item()
        for edits in ([], [core.edits.DropCausalMask()])
    ]
    assert losses == pytest.approx([3.496, 3.516], abs=1e-3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_has_no_loss_and_changes_none(side: str) -> None:
    loaded = core.load("storyteller")
    texts = ["The old king loved the golden bird, and the old", "Once upon a time"]
    padded = core.trace(loaded, texts, padding_side=side).text(1)  # type: ignore[arg-type]
    alone = given(core.trace(loaded, texts[1]))
    found = given(padded)
    assert found.ids.tolist() == alone.ids.tolist() and found.ranks.tolist() == alone.ranks.tolist()
    assert torch.allclose(found.losses, alone.losses, atol=1e-4)


def test_the_target_of_a_translation() -> None:
    run = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    found = given(run)
    assert run.target is not None and run.target.labels[6] == "snow"
    assert found.probabilities[5].item() == pytest.approx(0.962, abs=1e-3)
    assert found.probabilities[2].item() == pytest.approx(0.482, abs=1e-3) and found.ranks[2] == 1
    assert found.probabilities[0].item() == pytest.approx(0.86226, abs=1e-4)


def test_a_model_that_writes_nothing_says_so() -> None:
    run = core.trace(core.load("minilm"), "The cat sat on the mat.")
    for ask in (lambda: given(run), lambda: probabilities(run, [5])):
        with pytest.raises(TextError, match="does not write the next word"):
            ask()
