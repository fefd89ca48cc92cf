"""Padding is inert where it is masked, on the numbers of a published run, and is not where it is seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.labs.masks import padding_invariance

LONG, SHORT = "The cat sat on the mat because it was tired.", "The dog ran."


@pytest.fixture(scope="module")
def minilm() -> Loaded:
    return core.load("minilm")


def test_a_text_in_a_batch_is_the_text_alone_because_its_padding_is_masked(minilm: Loaded) -> None:
    alone = core.trace(minilm, SHORT)
    masked = padding_invariance(core.trace(minilm, [LONG, SHORT]).text(1), alone)
    assert torch.count_nonzero(masked.on_padding) == 0
    assert masked.output < 1e-5 and masked.weights < 1e-5 and masked.cosine == pytest.approx(1, abs=1e-6)
    seen = padding_invariance(
        core.trace(minilm, [LONG, SHORT], interventions=[core.edits.DropPadding()]).text(1), alone
    )
    assert seen.on_padding.max().item() == pytest.approx(0.652, abs=1e-3)
    assert divmod(int(seen.on_padding.argmax()), 12) == (3, 11)
    assert seen.cosine == pytest.approx(0.821, abs=1e-3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_decoder_hides_padding_on_the_right_twice(tiny: Callable[..., Loaded], side: str) -> None:
    loaded = tiny(n_decoder_layers=2, position="rotary")
    rows = [[5, 6, 7, 8, 9], [5, 6]]
    alone = core.trace(loaded, ids=rows[1])
    prompts = core.trace(loaded, ids=rows[0]).source
    width = len(prompts)
    padded = tuple(_padded(loaded, row, width, side) for row in rows)
    masked = padding_invariance(core.trace_tokens(loaded, padded, None, ()).text(1), alone)
    free = padding_invariance(core.trace_tokens(loaded, padded, None, (core.edits.DropPadding(),)).text(1), alone)
    assert masked.output < 1e-4
    if side == "right":
        assert free.output < 1e-4 and free.on_padding.max() == 0
    else:
        assert free.output > 1e-3 and free.on_padding.max() > 0.1


def _padded(loaded: Loaded, ids: list[int], width: int, side: str) -> core.Tokens:
    from dataclasses import replace

    n = width - len(ids)
    own = [0] * n + ids if side == "left" else ids + [0] * n
    tokens = core.trace(loaded, ids=own).source
    flags = [True] * n + [False] * len(ids) if side == "left" else [False] * len(ids) + [True] * n
    return replace(tokens, padding=tuple(flags))


def test_another_text_is_refused(minilm: Loaded) -> None:
    with pytest.raises(ValueError, match="not the text"):
        padding_invariance(core.trace(minilm, SHORT), core.trace(minilm, LONG))
