"""trace(): texts, batches, targets, predictions and positions, and a sentence for everything that cannot run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import TextError
from core.run.trace_record import TraceRecord
from core.trace import DEPRECATED, AttentionsTrace, Trace, as_trace
from tests.core.test_engine import word_tokenizer

Tiny = Callable[..., Loaded]


def reader(loaded: Loaded) -> Loaded:
    return replace(loaded, tokenizer=word_tokenizer())


def test_a_batch_is_seen_text_by_text(tiny: Tiny) -> None:
    run = core.trace(reader(tiny()), ["the cat sat", "it ran far away from us"])
    assert run.texts == 2 and run.source.labels[:3] == ("the", "cat", "sat")
    assert run.source.padding == (False, False, False, True, True, True)
    first, other = run.text(0), run.text(1)
    assert other.source.text == "it ran far away from us"
    assert other.attention[0].q.data_ptr() != first.attention[0].q.data_ptr()
    assert first.attention[0].why_masked(5, 4) == "padding" and other.attention[0].why_masked(5, 4) is None
    assert run.predictions().positions == (2,) and other.predictions().positions == (5,)
    with pytest.raises(IndexError, match="text 2 of a batch of 2"):
        run.text(2)


def test_predictions_are_the_models_own_probabilities(tiny: Tiny) -> None:
    loaded = tiny(n_decoder_layers=2)
    run = core.trace(loaded, ids=[5, 6, 7, 8])
    with torch.inference_mode():
        probs, ids = loaded.model(torch.tensor([[5, 6, 7, 8]]))[0].softmax(-1).topk(4)
    found = run.predictions([1, 3], k=4)
    assert found.ids == (tuple(ids[1].tolist()), tuple(ids[3].tolist()))
    assert torch.allclose(torch.tensor(found.probs), probs[[1, 3]], atol=1e-6)
    with pytest.raises(IndexError, match="position 4 of 4"):
        run.predictions([4])
    with pytest.raises(TextError, match="no head"):
        core.trace(tiny(n_encoder_layers=1, head="none"), ids=[1]).predictions()


def test_an_encoder_decoder_reads_the_target_behind_its_start(tiny: Tiny) -> None:
    loaded = reader(tiny(n_encoder_layers=1, n_decoder_layers=1))
    run = core.trace(loaded, "the cat sat", "it ran")
    assert run.target is not None
    assert run.target.ids == (0, 9, 10) and run.target.special[0] and run.target.text == "it ran"
    assert [run.tokens_of(r)[0].text + "|" + run.tokens_of(r)[1].text for r in run.attention] == [
        "the cat sat|the cat sat", "it ran|it ran", "it ran|the cat sat",
    ]  # fmt: skip
    assert core.trace(loaded, "the cat").target is not None
    assert len(core.trace(loaded, "the cat").target or ()) == 1
    both = core.trace(loaded, ["the cat", "it ran far"], ["it", "the cat sat on"])
    assert both.target is not None and both.target.padding == (False, False, True, True, True)


@pytest.mark.parametrize(
    ("position", "has"),
    [
        ("learned", "table"),
        ("sinusoidal", "table"),
        ("rotary", "angles"),
        ("alibi", "bias"),
        ("relative", "bias"),
        ("none", None),
    ],
)
def test_positions_are_the_models_own(tiny: Tiny, position: str, has: str | None) -> None:
    loaded = tiny(position=position)
    (record,) = core.trace(loaded, ids=[1, 2, 3]).positions
    assert record.kind == position and record.places.tolist() == [0, 1, 2]
    table, angles = record.table(), record.angles()
    assert (table is not None, angles is not None, record.bias is not None) == tuple(
        has == w for w in ("table", "angles", "bias")
    )
    if position == "learned":
        assert table is not None
        assert torch.equal(table, loaded.model.get_parameter("decoder.embed.position.weight")[:3])
    if position == "rotary":
        assert angles is not None and angles.shape == (3, 3)
        assert torch.allclose(angles[2], 2 / 10_000 ** (torch.arange(3) * 2 / 6))
    if record.bias is not None:
        block = record.bias.block(torch.arange(3), torch.arange(3))
        assert block.shape == (1, 4, 3, 3)
    if position == "alibi":
        assert record.bias is not None
        assert torch.allclose(
            record.bias.block(torch.tensor([2]), torch.arange(3))[0, 0, 0], -0.25 * torch.tensor([2.0, 1, 0])
        )


def test_dropped_positions_show_what_was_added(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=[1, 2, 3], interventions=[core.edits.DropPositions()])
    table = run.positions[0].table()
    assert table is not None and table.abs().max() == 0


def test_tracing_leaves_the_model_as_it_was(tiny: Tiny) -> None:
    loaded = tiny()
    before = {name: parameter.clone() for name, parameter in loaded.model.named_parameters()}
    core.trace(loaded, ids=[1, 2, 3], interventions=[core.edits.Ablate("decoder", 0, 0), core.edits.DropPositions()])
    assert all(torch.equal(parameter, before[name]) for name, parameter in loaded.model.named_parameters())
    assert not any(module._forward_hooks for module in loaded.model.modules())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "text or as token ids, not neither"),
        ({"source": "the cat", "ids": [1]}, "not both"),
        ({"source": []}, "list of source texts is empty"),
        ({"source": ""}, "empty"),
        ({"ids": []}, "Give at least one"),
        ({"ids": [61]}, "0 to 60"),
        ({"ids": [-1]}, "negative"),
        ({"ids": [1] * 38}, "38 tokens long, and random decoder has positions for 37"),
        ({"source": "the cat", "target": "it"}, "Leave the target out"),
    ],
)
def test_what_cannot_run_says_why(tiny: Tiny, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TextError, match=words):
        core.trace(reader(tiny()), **arguments)


def test_a_model_without_a_tokenizer_takes_ids(tiny: Tiny) -> None:
    with pytest.raises(TextError, match=r"ids=\[\.\.\.\]"):
        core.trace(tiny(), "the cat")
    assert core.trace(tiny(), ids=[1, 2]).source.strings == ("1", "2")


def test_half_precision_runs_and_is_shown_in_float32(tiny: Tiny) -> None:
    loaded = core.build(tiny().config, dtype=torch.bfloat16)
    run = core.trace(loaded, ids=[1, 2, 3, 4])
    assert run.dtype == "bfloat16" and run.attention[0].pattern().dtype == torch.float32
    assert {step.dtype for step in run.steps if step.name.endswith("hook_q")} == {"bfloat16"}
    assert (run.attention[0].pattern().sum(-1) - 1).abs().max() <= 1e-6


def test_every_way_to_a_run_returns_a_trace_and_shares_its_tensors(tiny: Tiny) -> None:
    shown: list[core.Trace] = []
    run = core.trace(tiny(), ids=[5, 6, 7], watch=shown.append)
    tokens = core.trace_tokens(tiny(), run.sources, None, (), shown.append)
    weights = core.from_attentions([run.attention[0].pattern()[None]])
    cached = core.from_cache({"blocks.0.attn.hook_pattern": run.attention[0].pattern()})
    assert all(isinstance(one, Trace) for one in (run, tokens, weights, cached, run.text(0), *shown))
    assert isinstance(weights, AttentionsTrace) and isinstance(cached.text(0), AttentionsTrace)
    assert len(shown) == 2 * (1 + len(run.attention))
    assert as_trace(run) is run
    again = as_trace(TraceRecord(**{field.name: getattr(run, field.name) for field in fields(run)}))
    assert again.records is run.records and again.norms is run.norms


def test_old_names_of_members_warn(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=[5, 6, 7])
    for old, new in DEPRECATED.items():
        with pytest.warns(DeprecationWarning, match=f"Trace.{old} is now Trace.{new}"):
            assert str(getattr(run, old)) == str(getattr(run, new))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = getattr(run, "nonsense")  # noqa: B009
