"""run_bytes: weights and captured exact, the peak never below what is measured and close above it."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import core
from core.checkpoints import Loaded
from core.errors import ConfigError
from core.model.config import ModelConfig
from core.model.hooks import hook_points, hooked
from core.model.text import Tokens, from_ids
from core.model.transformer import Transformer, to_dtype
from core.plan import run_bytes
from core.plan.tracing import LiveBytes
from core.run.recorder import HeldTensor
from tests.core.plan.configs import Case, cases

tracing = sys.modules["core.run.trace"]  # core.trace is the function
BASE = core.build(ModelConfig(vocab_size=2, d_model=2, n_heads=1, d_ff=1, n_decoder_layers=1))


def untrained(config: ModelConfig, dtype: torch.dtype) -> Loaded:
    """What core.checkpoints.from_config gives, without the time that drawing its numbers takes: they play no part."""
    model = to_dtype(Transformer(config), dtype).eval().requires_grad_(False)
    return replace(BASE, config=config, model=model, dtype=dtype)


def no_grad(mode: bool = True, real: Any = torch.inference_mode) -> Any:
    return torch.no_grad() if mode else real(False)


def tokens(n: int, batch: int, padded: bool) -> tuple[Tokens, ...] | None:
    """A batch of texts of n tokens; with `padded` the last one of the first text is padding. None for no tokens."""
    if n == 0:
        return None
    text = from_ids(None, [0] * n)
    shorter = replace(text, padding=(*[False] * (n - 1), True)) if padded else text
    return (shorter, *[text] * (batch - 1))


def measure(
    case: Case,
    *,
    padded: bool,
    keep_values: bool,
    spelled_out: bool = False,
    fake: bool = True,
    edits: tuple[core.edits.Intervention, ...] = (),
) -> tuple[int, int, int]:
    """Bytes of weights, of what core.trace keeps of every attention, and at the peak of it and of a look at the next word."""
    with ExitStack() as contexts:
        patch = contexts.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(
            torch, "inference_mode", no_grad
        )  # LiveBytes sees what a compound operation makes under this alone
        patch.setattr(tracing, "HELD_BYTES", 1 << 62 if keep_values else 0)
        if fake:
            contexts.enter_context(FakeTensorMode())
        loaded = untrained(case.config, getattr(torch, case.dtype))
        model = loaded.model
        hooks = {name: lambda x: None for name in hook_points(model) if spelled_out and name.endswith("hook_scores")}
        contexts.enter_context(hooked(model, hooks))
        live = contexts.enter_context(LiveBytes())
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
        sources, targets = tokens(case.source_len, case.batch, padded), tokens(case.target_len, case.batch, padded)
        assert sources is not None
        run = core.trace_tokens(loaded, sources, targets, edits)
        if model.head is not None:
            last = torch.tensor([(case.target_len or case.source_len) - 1 - padded])
            probs = model.head(run.last_residual(last)).float().softmax(-1)
            assert probs.shape == (case.batch, 1, case.config.vocab_size)
        kept = [t for record in run.records for t in (record.batch_q, record.batch_k)]
        kept += [record.values.tensor for record in run.records if isinstance(record.values, HeldTensor)]
        kept += [
            t for record in run.records for t in (record.replaced_scores, record.replaced_pattern) if t is not None
        ]
        storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in kept}
        return weights, sum(storages.values()), live.peak


def predicted(case: Case, *, padded: bool, keep_values: bool = True) -> Any:
    return run_bytes(case.config, **case.lengths, dtype=case.dtype, padded=padded, keep_values=keep_values)


LONG = {"source": (256, 300, 700, 2048), "target": (256, 300, 1024), "vocab": (50, 30_000)}


def test_never_below_and_close_above() -> None:
    for i, case in enumerate(cases(5, 70, 10, **LONG)):
        padded, keep_values = i % 3 == 0, i % 4 != 3
        weights, captured, peak = measure(case, padded=padded, keep_values=keep_values)
        run = predicted(case, padded=padded, keep_values=keep_values)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total, (case, run)
        assert run.total - weights <= 1.35 * (peak - weights), (case, run)
        assert run.total <= 1.3 * peak, (case, run)


def test_never_below_on_short_texts() -> None:
    for i, case in enumerate(cases(6, 30, 8)):
        weights, captured, peak = measure(case, padded=i % 2 == 0, keep_values=True)
        run = predicted(case, padded=i % 2 == 0)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total, (case, run)


def test_never_below_where_scores_are_edited() -> None:
    for i, case in enumerate(cases(8, 20, 8, source=(100, 300), target=(40, 256))):
        padded = i % 2 == 0
        weights, captured, peak = measure(case, padded=padded, keep_values=True, spelled_out=True)
        run = run_bytes(case.config, **case.lengths, dtype=case.dtype, padded=padded, spelled_out=True)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total <= 1.5 * peak, (case, run)


RULES: tuple[core.edits.Intervention, ...] = (
    core.edits.EditMask(queries=range(5, 30), keys=2),
    core.edits.EditMask(queries=3, keys=2, head=0),
    core.edits.EditMask(distances=(None, -3)),
    core.edits.EditMask(distances=(-9, -3), head=0),
    core.edits.Window(8),
    core.edits.Window(8, head=0),
    core.edits.MaskFill(-1e9),
    core.edits.MaskAfterSoftmax(),
)


@pytest.mark.thorough
def test_never_below_where_masks_and_softmaxes_are_edited() -> None:
    for i, case in enumerate(cases(11, 24, source=(100, 300, 2048, 6000), target=(40, 256), vocab=(50,))):
        padded, spelled_out, edits = i % 3 == 0, i % 4 == 0, RULES[i % len(RULES) :][: 1 + i % 2]
        if spelled_out and case.source_len > 300:
            continue
        weights, captured, peak = measure(case, padded=padded, keep_values=True, spelled_out=spelled_out, edits=edits)
        options: dict[str, Any] = {"padded": padded, "spelled_out": spelled_out, "edited_rules": True}
        run = run_bytes(case.config, **case.lengths, dtype=case.dtype, **options)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total, (case, edits, run)


def test_on_real_tensors() -> None:
    for case in cases(7, 4, source=(256,), target=(256,)):
        weights, captured, peak = measure(case, padded=False, keep_values=True, fake=False)
        run = predicted(case, padded=False)
        assert (run.weights, run.captured) == (weights, captured)
        assert peak <= run.total <= 1.3 * peak


def test_parts_add_up() -> None:
    config = ModelConfig(vocab_size=100, d_model=64, n_heads=4, d_ff=256, n_decoder_layers=3)
    run = run_bytes(config, source_len=300)
    assert run.weights + run.captured + run.transient == run.total
    assert run.captured == 3 * 3 * 300 * 64 * 4
    assert run.values == 3 * 300 * 64 * 4
    assert run_bytes(config, source_len=300, keep_values=False).captured == run.captured - run.values
    assert run_bytes(config, source_len=300, dtype=torch.bfloat16).weights * 2 == run.weights
    assert set(run.to_dict()) == {field.name for field in dataclasses.fields(run)}


def test_gpt2_at_4096_keeps_a_thirtieth_of_the_maps() -> None:
    config = ModelConfig(vocab_size=50_257, d_model=768, n_heads=12, d_ff=3072, n_decoder_layers=12, n_ctx=4096)
    run = run_bytes(config, source_len=4096, keep_values=False)
    assert run.captured == 288 << 20
    assert 12 * 12 * 4096 * 4096 * 4 == 9216 << 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_len": 0}, r"source_len \(0\) must be at least 1"),
        ({"source_len": 5, "batch": 0}, r"batch \(0\) must be at least 1"),
        (
            {"source_len": 5, "target_len": 3},
            r"target_len \(3\) is for encoder-decoders; this model is decoder-only",
        ),
        ({"source_len": 5, "dtype": "float5"}, r"dtype \('float5'\) must be one of 'float64'"),
    ],
)
def test_refusals_are_sentences(options: dict[str, Any], message: str) -> None:
    config = ModelConfig(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_decoder_layers=1)
    with pytest.raises(ConfigError, match=message):
        run_bytes(config, **options)
