"""Words to swap: each is what a run of the new text gives, and the texts of SmolLM2 get the words that a person would take."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
import torch

import core
from core import device
from core.errors import StaleTrace, TextError, TooLarge
from core.read import swaps as module
from core.read.swaps import content_words, same_length, swaps
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

MARY = "When Mary and John went to the store, John gave a drink to"


@pytest.mark.thorough
@needs_smollm2
def test_the_swaps_of_smollm2(monkeypatch: Any) -> None:
    run = core.trace(smollm2(), MARY)
    assert [run.source.labels[i] for i in content_words(smollm2(), run.source)] == [
        "Mary",
        "John",
        "went",
        "store",
        "John",
        "gave",
        "drink",
    ]
    so_far = list(swaps(run))
    assert len(so_far) > 2 and so_far[-1].done == so_far[-1].of and len(so_far[-1].found) <= 3
    best = next(iter(so_far[-1].found))
    assert (best.position, best.replaced, best.word, best.next_word) == (9, "John", "Mary", "John")
    assert best.probability == pytest.approx(0.7496, abs=0.002)
    assert [s.divergence for s in so_far[-1].found] == sorted((s.divergence for s in so_far[-1].found), reverse=True)
    for swap in so_far[-1].found:
        alone = core.trace(smollm2(), swap.text)
        assert alone.source.ids == tuple(swap.token if i == swap.position else t for i, t in enumerate(run.source.ids))
        p, q = (t.activation("head.hook_logits", [13])[0].softmax(-1) for t in (run, alone))
        assert int(q.argmax()) == swap.next_token != int(p.argmax())
        assert q.max().item() == pytest.approx(swap.probability, abs=1e-4)
        m = (p + q) / 2
        divergence = 0.5 * ((p * (p / m).log()).sum() + (q * (q / m).log()).sum()).item()
        assert swap.divergence == pytest.approx(divergence, abs=1e-4) and 0 < swap.divergence < math.log(2)
        logs = [t.activation("head.hook_logits").log_softmax(-1) for t in (run, alone)]
        ids = [torch.tensor(t.source.ids[1:])[:, None] for t in (run, alone)]
        likely = [log[:-1].gather(-1, i).sum().item() for log, i in zip(logs, ids, strict=True)]
        assert swap.fall == pytest.approx(likely[0] - likely[1], abs=1e-2) and swap.fall <= module.MIN_LIKELY


@needs_smollm2
def test_the_capital_gets_another_city_and_a_stopped_search_runs_no_more() -> None:
    steps = swaps(core.trace(smollm2(), "Paris is in France. Tokyo is in"), 1)
    *_, last = steps
    assert [(s.replaced, s.word, s.next_word) for s in last.found] == [("Tokyo", "Rome", "Italy")]
    steps = swaps(core.trace(smollm2(), MARY))
    first = next(steps)
    assert first.done < first.of
    steps.close()  # type: ignore[attr-defined]
    assert list(steps) == []
    assert [(s.found, s.of) for s in swaps(core.trace(smollm2(), "It is in"))] == [((), 0)]


@needs_smollm2
@pytest.mark.parametrize(
    "text, other, says",
    [
        ("When John went", "When Elizabeth Anne went", "‘Elizabeth Anne’ is 2 tokens, ‘John’ is 1: write one of 1."),
        (
            "Paris is in France.",
            "Paris is in very nice France.",
            "‘very nice’ is 2 tokens more than this text has there",
        ),
        ("A big cat sat.", "A cat sat.", "‘big’ is 1 token, and the other text has nothing there: write one of 1."),
        ("a cat", "a cat  ", "2 and 3 tokens. Write one of 2"),
    ],
)
def test_unequal_lengths_name_the_words(text: str, other: str, says: str) -> None:
    with pytest.raises(TextError) as error:
        same_length(smollm2().tokens(text), smollm2().tokens(other))
    assert says in str(error.value)


@needs_smollm2
def test_the_places_where_two_texts_differ() -> None:
    tokens = smollm2().tokens
    assert same_length(tokens(MARY), tokens(MARY.replace(", John gave", ", Mary took"))) == (9, 10)
    assert same_length(tokens(MARY), tokens(MARY)) == ()


def test_models_without_suggestions_say_why(monkeypatch: Any) -> None:
    encoder = core.trace(make_loaded(n_encoder_layers=2), ids=[1, 2, 3])
    with pytest.raises(TextError, match="does not write on after a text"):
        swaps(encoder)
    with pytest.raises(TextError, match="no tokenizer"):
        swaps(core.trace(make_loaded(), ids=[1, 2, 3]))
    run = core.trace(core.load("storyteller"), "Dorothy ran home over the prairie to Uncle Henry and Aunt")
    with monkeypatch.context() as patch:
        patch.setattr(device, "SMALL", 0)
        patch.setattr(device, "free_bytes", lambda device: 10)
        with pytest.raises(TooLarge, match=r"Trying words in a text of .* would need .* are free"):
            swaps(run)


def test_after_a_training_no_more_is_suggested(monkeypatch: Any) -> None:
    """A model of one's own copy: the shipped one is shared."""
    loaded = deepcopy(core.load("storyteller"))
    monkeypatch.setattr(module, "ROWS", 2)
    steps = swaps(core.trace(loaded, "Dorothy ran home over the prairie to Uncle Henry and Aunt"))
    assert next(steps).of > 2
    with torch.no_grad():
        next(loaded.model.parameters()).add_(1)
    with pytest.raises(StaleTrace):
        list(steps)
