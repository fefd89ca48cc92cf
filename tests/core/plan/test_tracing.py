"""The tracer: the lessons' table of shapes, from a run; and models too large to exist."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.model.hooks import hook_points, hooked
from core.model.transformer import Transformer
from core.plan import PRESETS, trace_shapes, with_layers
from tests.core.plan.configs import cases

LESSON = PRESETS["lesson-encoder"].config


def test_lesson_a1_shapes_in_order() -> None:
    steps = trace_shapes(LESSON, batch=32, source_len=50, padded=True).steps
    layer = [
        (s.name.removeprefix("encoder.blocks.0."), s.shape) for s in steps if s.name.startswith("encoder.blocks.0.")
    ]
    wanted = [
        ("attn_norm", (32, 50, 512)),
        ("attn.q", (32, 50, 512)),
        ("attn.k", (32, 50, 512)),
        ("attn.v", (32, 50, 512)),
        ("attn.hook_q", (32, 50, 8, 64)),
        ("attn.mT", (32, 8, 64, 50)),
        ("attn.hook_scores", (32, 8, 50, 50)),
        ("attn.mask", (32, 1, 50, 50)),
        ("attn.hook_pattern", (32, 8, 50, 50)),
        ("attn.hook_z", (32, 50, 8, 64)),
        ("attn.flatten", (32, 50, 512)),
        ("hook_attn_out", (32, 50, 512)),
        ("hook_resid_mid", (32, 50, 512)),
        ("mlp_norm", (32, 50, 512)),
        ("mlp.up", (32, 50, 2048)),
        ("mlp.hook_post", (32, 50, 2048)),
        ("hook_mlp_out", (32, 50, 512)),
        ("hook_resid_post", (32, 50, 512)),
    ]
    found = iter(layer)
    assert all(step in found for step in wanted), layer  # in this order
    assert steps[-1].name == "encoder.hook_final"
    assert [s.shape for s in steps if s.name == "encoder.embed.hook_position"] == [(32, 50, 512)]
    assert sum(s.name.endswith("hook_resid_post") for s in steps) == 6


def test_every_dimension_has_a_name_and_every_name_one_size() -> None:
    steps = trace_shapes(LESSON, batch=32, source_len=50).steps
    sizes = {
        "batch": 32,
        "pos": 50,
        "query": 50,
        "key": 50,
        "d_model": 512,
        "head": 8,
        "kv_head": 8,
        "d_head": 64,
        "d_ff": 2048,
        "head × d_head": 512,
        "kv_head × d_head": 512,
    }
    named = 0
    for step in steps:
        for axis, size in zip(step.axes, step.shape, strict=True):
            if axis:
                named += 1
                assert size in (sizes[axis], 1), step
    assert named > 0.95 * sum(len(step.axes) for step in steps)


def test_steps_are_what_a_real_run_passes() -> None:
    """Every listed hook point of a real pass, with the same shape, in the same order."""
    for case in cases(17, 15):
        model = Transformer(case.config).eval()
        seen: list[tuple[str, tuple[int, ...]]] = []

        def look(name: str, x: object, seen: list[tuple[str, tuple[int, ...]]] = seen) -> None:
            if isinstance(x, torch.Tensor):
                seen.append((name, tuple(x.shape)))

        ids = torch.zeros(case.batch, case.source_len, dtype=torch.long)
        target = torch.zeros(case.batch, case.target_len, dtype=torch.long) if case.target_len else None
        looks = {n: lambda x, n=n: look(n, x) for n, point in hook_points(model).items() if point.is_public}
        with torch.no_grad(), hooked(model, looks):
            model(ids, target)
        steps = trace_shapes(case.config, **case.lengths).steps
        traced = [(s.name, s.shape) for s in steps if ".hook_" in s.name]
        assert traced == seen, case


def test_a_fused_run_has_no_map() -> None:
    shape: dict[str, Any] = {"source_len": 300, "batch": 2}
    fused = trace_shapes(with_layers(LESSON, 1), **shape, path="fused")
    spelled = trace_shapes(with_layers(LESSON, 1), **shape)
    assert not any(step.shape[-2:] == (300, 300) for step in fused.steps)
    assert any(step.shape[-2:] == (300, 300) for step in spelled.steps)
    assert fused.flops == spelled.flops
    assert fused.peak < spelled.peak


def test_lesson_a2_models_too_large_to_exist() -> None:
    gpt3 = PRESETS["gpt3"].config
    one, two, five = (trace_shapes(with_layers(gpt3, n), source_len=2048) for n in (1, 2, 5))
    assert one.parameters + 95 * (two.parameters - one.parameters) == 174_604_259_328
    assert one.flops + 95 * (two.flops - one.flops) == 734_804_261_732_352
    assert five.flops == one.flops + 4 * (two.flops - one.flops)
    assert five.peak - five.weights == two.peak - two.weights  # layers give back what they take


@pytest.mark.thorough
def test_lesson_a2_traced_through_all_96_layers() -> None:
    gpt3 = PRESETS["gpt3"].config
    two, whole = (trace_shapes(with_layers(gpt3, n), source_len=2048) for n in (2, 96))
    assert gpt3.n_decoder_layers == 96
    assert (whole.parameters, whole.flops) == (174_604_259_328, 734_804_261_732_352)
    assert whole.peak - whole.weights == two.peak - two.weights


def test_saved_tensors_say_where_they_are() -> None:
    traced = trace_shapes(with_layers(LESSON, 1), batch=2, source_len=10, training=True, loss=False)
    modules = {tensor.module for tensor in traced.saved}
    assert {"encoder.blocks.0.attn", "encoder.blocks.0.mlp", "encoder.blocks.0.attn_norm"} <= modules
    assert traced.saved_bytes == sum(tensor.bytes for tensor in traced.saved)
    assert trace_shapes(with_layers(LESSON, 1), source_len=10).saved == ()


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"source_len \(0\)"):
        trace_shapes(LESSON, source_len=0)
    with pytest.raises(ConfigError, match="is a format for weights"):
        trace_shapes(LESSON, source_len=5, dtype="int8")


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "relative"])
def test_queries_and_keys_are_views_unless_they_are_turned(position: Any) -> None:
    config = ModelConfig(
        vocab_size=31, d_model=24, n_heads=4, d_ff=40, n_ctx=64, n_decoder_layers=2, position=position, n_token_types=2
    )
    steps = trace_shapes(config, batch=2, source_len=7).steps
    views = {name: [s.view for s in steps if s.name.endswith(f"hook_{name}")] for name in "qkv"}
    turned = position == "rotary"
    assert views == {"q": [not turned] * 2, "k": [not turned] * 2, "v": [True] * 2}


def test_tables_that_the_model_looks_up_itself_have_their_axes() -> None:
    config = ModelConfig(
        vocab_size=31, d_model=24, n_heads=4, d_ff=40, n_ctx=64, n_encoder_layers=2, position="relative", n_token_types=2
    )  # fmt: skip
    steps = trace_shapes(config, batch=2, source_len=7).steps
    bias = [s for s in steps if s.name.endswith("relative_bias.embedding")]
    kinds = [s for s in steps if s.name.endswith("token_type")]
    assert [(s.axes, s.shape) for s in bias] == [(("batch", "query", "key", "head"), (1, 7, 7, 4))] * 2
    assert [(s.axes, s.shape) for s in kinds] == [(("batch", "pos", "d_model"), (2, 7, 24))]
    assert all("" not in s.axes for s in steps)
