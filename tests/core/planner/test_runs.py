"""run_bytes: weights and captured exact, the peak never below what is measured and close above it."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from core.config import ModelConfig
from core.errors import ConfigError
from core.hooks import hook_points, hooked
from core.model import Transformer
from core.planner import run_bytes
from core.planner.live import LiveBytes
from tests.core.planner.configs import Case, cases


def measure(
    case: Case, *, padded: bool, keep_values: bool, spelled_out: bool = False, fake: bool = True
) -> tuple[int, int, int]:
    """Bytes of weights, of what is captured, and at the peak, of a pass that keeps what a trace keeps."""
    dtype = getattr(torch, case.dtype)
    kept: list[Tensor] = []

    def keep(x: Any) -> None:
        kept.append(x)

    def note(x: Any) -> None:
        noted.append(x)

    def size(x: Any) -> None:
        norms.append(torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32))

    norms: list[Tensor] = []
    noted: list[Tensor] = []
    with ExitStack() as contexts:
        if fake:
            contexts.enter_context(FakeTensorMode())
        contexts.enter_context(torch.no_grad())
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        model = Transformer(case.config).eval()
        torch.set_default_dtype(before)
        for stack in model.stacks:
            if case.config.position == "sinusoidal":
                stack.embed.sinusoid = stack.embed.sinusoid.to(dtype)
        letters = ("hook_q", "hook_k", "hook_v") if keep_values else ("hook_q", "hook_k")
        hooks = {
            name: keep if name.endswith(letters) else size
            for name in hook_points(model)
            if name.endswith((*letters, "_out", "hook_embed", "hook_final")) or "hook_resid" in name
        }
        hooks |= {name: note for name in hook_points(model) if name.endswith(("hook_positions", "hook_angles"))}
        if spelled_out:
            hooks |= {name: lambda x: None for name in hook_points(model) if name.endswith("hook_scores")}
        live = LiveBytes()
        live.track(*model.parameters(), *model.buffers())
        weights = live.live
        with live, hooked(model, hooks):
            ids = torch.zeros(case.batch, case.source_len, dtype=torch.long)
            target = torch.zeros(case.batch, case.target_len, dtype=torch.long) if case.target_len else None
            real = torch.ones(ids.shape, dtype=torch.bool) if padded else None
            target_real = torch.ones(target.shape, dtype=torch.bool) if padded and target is not None else None
            x = model.last_residual(ids, target, real, target_real)
            if model.head is not None:
                probs = model.head(x[:, -1:]).float().softmax(-1)
                assert probs.shape[-1] == case.config.vocab_size
        storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in kept}
        return weights, sum(storages.values()), live.peak


def predicted(case: Case, *, padded: bool, keep_values: bool = True) -> Any:
    return run_bytes(case.config, **case.lengths, dtype=case.dtype, padded=padded, keep_values=keep_values)


LONG = {"source": (256, 300, 700, 2048), "target": (256, 300, 1024), "vocab": (50, 30_000)}


def test_never_below_and_close_above() -> None:
    for i, case in enumerate(cases(5, 70, **LONG)):
        padded, keep_values = i % 3 == 0, i % 4 != 3
        weights, captured, peak = measure(case, padded=padded, keep_values=keep_values)
        run = predicted(case, padded=padded, keep_values=keep_values)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total, (case, run)
        assert run.total - weights <= 1.35 * (peak - weights), (case, run)
        assert run.total <= 1.3 * peak, (case, run)


def test_never_below_on_short_texts() -> None:
    for i, case in enumerate(cases(6, 30)):
        weights, captured, peak = measure(case, padded=i % 2 == 0, keep_values=True)
        run = predicted(case, padded=i % 2 == 0)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total, (case, run)


def test_never_below_where_scores_are_edited() -> None:
    for i, case in enumerate(cases(8, 20, source=(100, 300), target=(40, 256))):
        padded = i % 2 == 0
        weights, captured, peak = measure(case, padded=padded, keep_values=True, spelled_out=True)
        run = run_bytes(case.config, **case.lengths, dtype=case.dtype, padded=padded, spelled_out=True)
        assert (run.weights, run.captured) == (weights, captured), case
        assert peak <= run.total <= 1.5 * peak, (case, run)


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
        ({"source_len": 5, "dtype": "float8"}, r"dtype \('float8'\) must be one of 'float64'"),
    ],
)
def test_refusals_are_sentences(options: dict[str, Any], message: str) -> None:
    config = ModelConfig(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_decoder_layers=1)
    with pytest.raises(ConfigError, match=message):
        run_bytes(config, **options)
