"""Patterns of many attentions from few products are those of each by itself, to the bit."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

import core
from core.run import attention
from core.run.attention import patterns_of
from tests.core.conftest import make_loaded
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import texts

TEXT = "When Mary and John went to the store, John gave a drink to"
EDITS = (core.edits.EditMask("decoder", 1, range(3, 6), range(0, 2), head=1), core.edits.Temperature(2.0, "decoder", 2))


def same(run: core.Trace, queries: Any = None) -> bool:
    """Whether every record's own pattern equals the joint one."""
    joint = patterns_of(run.attention, queries)
    return all(torch.equal(own.pattern(queries=queries), one) for own, one in zip(run.attention, joint, strict=True))


@pytest.mark.thorough(but=14)
@pytest.mark.parametrize("config", SAMPLE, ids=name)
def test_joint_patterns_equal_those_of_each_record(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    rng = random.Random(name(config))
    run = core.trace_tokens(loaded, *texts(loaded.config.kind, rng.choice(("none", "left", "right")), rng), ())
    for text in range(run.texts):
        seen = run.text(text)
        assert same(seen) and same(seen, [0]) and same(seen, slice(1, None, 2))


def test_a_layer_that_was_edited_keeps_its_own_mask_and_temperature() -> None:
    run = core.trace(core.load("storyteller"), TEXT, interventions=EDITS)
    plain = core.trace(core.load("storyteller"), TEXT)
    assert same(run)
    edited = [*patterns_of(run.attention)]
    assert edited[1][1, 4, 0] == 0 and not torch.equal(edited[2], plain.attention[2].pattern())


def test_layers_of_a_language_model_share_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    run = core.trace(core.load("smollm2"), TEXT)
    computed = []
    own = core.AttentionRecord.pattern

    def counted(record: core.AttentionRecord, *args: Any, **options: Any) -> torch.Tensor:
        computed.append(record.n_heads)
        return own(record, *args, **options)

    monkeypatch.setattr(core.AttentionRecord, "pattern", counted)
    assert len([*patterns_of(run.attention)]) == 30 and computed == [270]
    monkeypatch.setattr(attention, "CELLS", 10 * 9 * len(run.source) ** 2)
    computed.clear()
    assert len([*patterns_of(run.attention)]) == 30 and computed == [90, 90, 90]
