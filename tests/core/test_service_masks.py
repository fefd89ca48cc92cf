"""What the service says of masks is what core works out, in plain data."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest

import core
from core.errors import HeadlightError
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine

T = TypeVar("T")
KING = "The old king loved the golden bird, and the old"


@pytest.fixture(scope="module")
def service() -> LocalService:
    return LocalService(Engine())


def ask(made: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(made)


def key_of(service: LocalService, model: str, text: str, *edits: Any, target: str | None = None) -> str:
    return ask(service.submit(Request(model, (text,), target, tuple(edits))))


def test_scores_before_the_mask_and_the_mask_give_the_weights(service: LocalService) -> None:
    key = key_of(service, "storyteller", KING)
    found = ask(service.masked(key, "decoder"))
    run = core.trace(core.load("storyteller"), KING)
    assert found.scores.shape == (6, 8, 12, 12) and found.layers == tuple(range(6))
    (mask,), weights = found.masks, ask(service.heads(key))["decoder"].weights
    assert found.mask_index == ((0,),) * 6 and np.array_equal(mask > 0, np.triu(np.ones((12, 12)), 1) > 0)
    shown = np.where(mask > 0, -np.inf, found.scores[3, 6])
    shown = np.exp(shown - shown.max(-1, keepdims=True))
    assert np.allclose(shown / shown.sum(-1, keepdims=True), weights[3, 6], atol=1e-6)
    one = ask(service.masked(key, "decoder", [3]))
    assert one.layers == (3,) and np.array_equal(one.scores[0], found.scores[3])
    assert np.allclose(one.scores[0, 6, 11, 3], run.attention[3].scores(6, 11, 3).item())
    with pytest.raises(HeadlightError, match="no layer 6"):
        ask(service.masked(key, "decoder", [6]))


def test_what_a_run_makes_of_its_text_before_and_after_an_edit(service: LocalService) -> None:
    plain = ask(service.outcome(key_of(service, "storyteller", KING)))
    (man, label, chance), *_ = plain.words
    assert label == "man" and chance == pytest.approx(0.474, abs=1e-3)
    assert plain.losses.mean() == pytest.approx(3.496, abs=1e-3) and len(plain.losses) == 11
    cut = key_of(service, "storyteller", KING, core.edits.EditMask(queries=11, keys=3))
    assert ask(service.outcome(cut, [man])).asked == pytest.approx((0.382,), abs=1e-3)
    with pytest.raises(HeadlightError, match="no token"):
        ask(service.outcome(cut, [10**6]))


def test_an_encoder_has_a_vector_instead(service: LocalService) -> None:
    found = ask(service.outcome(key_of(service, "minilm", "The dog ran.")))
    assert found.words == () and len(found.losses) == 0 and found.vector.shape == (384,)


def test_padding_of_two_texts(service: LocalService) -> None:
    texts = ("The cat sat on the mat because it was tired.", "The dog ran.")
    key = key_of(service, "minilm", "\n".join(texts))
    found = ask(service.padded(key, texts, "right", 1))
    assert found.labels[1][:4] == ("[CLS]", "The", "dog", "ran") and sum(found.padding[1]) == 7
    assert found.layer == 3 and found.on_padding.max() == 0
    assert found.on_padding_free[3, 11] == pytest.approx(0.652, abs=1e-3)
    assert found.output[0] < 1e-5 and found.cosine[1] == pytest.approx(0.821, abs=1e-3)
    assert found.masked.shape == found.free.shape == (12, 13, 13)
    assert pickle.dumps(found)
    left = ask(service.padded(key, texts, "left", 1, 0))
    assert left.padding[1][:7] == (True,) * 7 and left.layer == 0


def test_padding_of_what_an_encoder_decoder_reads(service: LocalService) -> None:
    texts = ("Ein Hund rennt durch den Schnee.", "Ein Kind lacht.", "Hunde.")
    found = ask(service.padded(key_of(service, "translator", texts[0]), texts, "right", 2))
    assert len(found.labels) == 3 and found.output[0] < 1e-4 and found.on_padding.max() == 0
    assert found.on_padding_free.max() > 0.1 and found.output[1] > 0.01 and not found.causal


def test_leakage_and_the_scale(service: LocalService) -> None:
    key = key_of(service, "storyteller", KING)
    leak = ask(service.leakage(key))
    assert leak.relearnt.mean() < 0.5 < leak.losses.mean() and leak.steps == 400
    found = ask(service.unscaled(key))
    assert (found.own.entropy, found.without.entropy) == pytest.approx((1.15, 0.22), abs=0.005)
    spreads = ask(service.spreads())
    assert [each.d for each in spreads][-1] == 512
    with pytest.raises(HeadlightError, match="Choose the Storyteller"):
        ask(service.leakage(key_of(service, "copy", "iklippan=iklippan")))
