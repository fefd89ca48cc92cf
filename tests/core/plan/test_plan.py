"""plan(): its parts add up, its bounds hold against the tracer, its errors say what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import PRESETS, memory_plan, parameters, plan, run_bytes, trace_shapes, with_layers
from core.plan.workload import Attention, Workload
from tests.core.plan.configs import cases
from tests.thorough import part

GPT2 = PRESETS["gpt2"].config


def test_a_plan_adds_up() -> None:
    for case in cases(12, 15):
        for training in (False, True):
            planned = plan(case.config, **case.lengths, dtype=case.dtype, training=training)
            memory = planned.memory
            assert planned.total == sum(memory.to_dict().values()) - memory.total
            assert planned.parameters.total == trace_shapes(case.config, **case.lengths).parameters
            assert bool(memory.gradients) == bool(memory.activations) == training
            assert sum(layers.times for layers in planned.layers) == sum(n for _, n in case.config.stacks)
            plain = json.loads(json.dumps(planned.to_dict()))
            assert plain["total"] == planned.total
            assert plain["layers"][0]["per_layer"] == planned.saved_per_layer


def test_inference_is_never_below_the_tracer() -> None:
    ratios = []
    for i, case in enumerate(cases(13, 25, source=(33, 100, 500), target=(5, 40, 300))):
        ways: tuple[tuple[Attention, Literal["fused", "spelled_out"]], ...] = (
            ("spelled_out", "spelled_out"),
            ("flash", "fused"),
        )
        for attention, path in part(ways, 2, i):
            traced = trace_shapes(case.config, **case.lengths, dtype=case.dtype, path=path)
            memory = memory_plan(case.config, **case.lengths, dtype=case.dtype, attention=attention, logits="all")
            assert memory.weights == traced.weights
            ratios.append(memory.transient / (traced.peak - traced.weights))
            assert ratios[-1] >= 1, (case, attention)
    assert max(ratios) < 1.6
    assert sum(ratios) / len(ratios) < 1.1


def test_training_is_never_below_the_tracer() -> None:
    ratios = []
    for case in cases(14, 30, 8, source=(33, 100, 500), target=(5, 40, 300), vocab=(50, 5000)):
        traced = trace_shapes(case.config, **case.lengths, dtype=case.dtype, training=True)
        memory = memory_plan(
            case.config,
            **case.lengths,
            dtype=case.dtype,
            training=True,
            attention="spelled_out",
            optimizer="sgd",
        )
        assert memory.activations == traced.saved_bytes
        ratios.append((memory.total - memory.masters) / traced.peak)
        assert ratios[-1] >= 1, case
    assert max(ratios) < 2.2


def test_formats() -> None:
    full, half = (plan(GPT2, source_len=100, dtype=dtype) for dtype in ("float32", torch.bfloat16))
    assert full.memory.weights == 2 * half.memory.weights == 4 * parameters(GPT2).total
    assert half.dtype == "bfloat16"
    small = plan(GPT2, source_len=100, dtype="float16", weight_dtype="int8", kv_dtype="int8")
    rows = 12 * (4 * 768 + 3072 + 768)  # of the matrices of the layers, each with a float32 scale
    kept = parameters(GPT2).total - 12 * 12 * 768**2  # tables, norms and biases, which stay in 16 bits
    assert small.memory.weights == 12 * 12 * 768**2 + 4 * rows + 2 * kept
    assert small.memory.kv_cache * 2 == half.memory.kv_cache
    assert small.memory.transient == half.memory.transient


def test_optimizers() -> None:
    n = parameters(GPT2).total
    states = {
        optimizer: memory_plan(GPT2, source_len=10, training=True, optimizer=optimizer).optimizer
        for optimizer in ("sgd", "momentum", "adam", "adamw")
    }
    assert states == {"sgd": 0, "momentum": 4 * n, "adam": 8 * n, "adamw": 8 * n}
    mixed = memory_plan(GPT2, source_len=10, training=True, dtype="bfloat16")
    assert (mixed.weights, mixed.gradients, mixed.masters, mixed.optimizer) == (2 * n, 2 * n, 4 * n, 8 * n)


def test_recompute_trades_memory_for_flops() -> None:
    options: dict[str, Any] = {"batch": 8, "source_len": 1024, "training": True, "attention": "eager"}
    plans = {how: plan(GPT2, **options, recompute=how) for how in ("none", "attention", "full")}
    assert plans["none"].total > plans["attention"].total > plans["full"].total
    assert plans["none"].step_flops < plans["attention"].step_flops < plans["full"].step_flops
    assert plans["full"].saved_per_layer == 8 * 1024 * 768 * 4


def test_kernels_order_memory() -> None:
    config = replace(GPT2, n_ctx=8192)
    totals = [
        memory_plan(config, source_len=4096, attention=a, training=True).total
        for a in ("flash", "eager", "spelled_out")
    ]
    assert totals == sorted(totals)
    assert totals[1] - totals[0] > 12 * 12 * 4096 * 4096 * 4


def test_depth_does_not_change_an_inference_peak() -> None:
    shallow, deep = (memory_plan(with_layers(GPT2, n), source_len=500) for n in (2, 20))
    assert shallow.transient == deep.transient
    assert deep.weights - shallow.weights == 18 * parameters(GPT2).decoder.layer.total * 4


def test_a_traced_run_holds_more_than_a_plain_one() -> None:
    plain = memory_plan(replace(GPT2, head="none"), source_len=500, attention="flash")
    traced = run_bytes(replace(GPT2, head="none"), source_len=500)
    assert plain.weights == traced.weights
    assert traced.captured == 12 * 3 * 500 * 768 * 4
    assert plain.transient < traced.captured + traced.transient < plain.transient + 1.1 * traced.captured


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_len": 0}, r"source_len \(0\) must be at least 1"),
        ({"source_len": 2000}, r"source_len \(2,000\) is more than n_ctx \(1,024\).*Shorten the text"),
        (
            {"source_len": 5, "dtype": "int8"},
            r"dtype \('int8'\) is a format for weights: pass dtype='float16'",
        ),
        ({"source_len": 5, "dtype": "fp4"}, r"dtype \('fp4'\) must be one of"),
        ({"source_len": 5, "optimizer": "lion"}, r"optimizer \('lion'\) must be one of 'sgd'"),
        ({"source_len": 5, "recompute": "some"}, r"recompute \('some'\) must be one of 'none'"),
        ({"source_len": 5, "logits": "some"}, r"logits \('some'\) must be one of 'last', 'all'"),
        ({"source_len": 5, "weight_dtype": "Q9_0"}, r"weight_dtype \('Q9_0'\) must be one of .*'Q4_K_M'"),
        ({"source_len": 5, "kv_dtype": "Q4_K"}, r"kv_dtype \('Q4_K'\) must be one of .*'Q8_0'"),
        ({"source_len": 5, "dtype": "Q4_0"}, r"dtype \('Q4_0'\) is a format for weights"),
        ({"source_len": 5, "piece": 512, "training": True}, r"piece \(512\) is for decoders that read a prompt"),
        ({"source_len": 5, "piece": -1}, r"piece \(-1\) must be at least 1"),
        (
            {"source_len": 5, "weight_dtype": "int8", "training": True},
            r"weight_dtype \('int8'\) is for inference",
        ),
        ({"source_len": 5, "target_len": 5}, r"target_len \(5\) is for encoder-decoders"),
    ],
)
def test_refusals_are_sentences(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(GPT2, **options)


def test_an_encoder_decoder_needs_a_target() -> None:
    config = ModelConfig(vocab_size=10, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
    with pytest.raises(ConfigError, match=r"target_len \(0\) must be at least 1"):
        plan(config, source_len=5)
    assert plan(config, source_len=5, target_len=3).kv_cache.cross_attention == 2 * 5 * 8 * 4


def test_a_workload_and_its_fields_by_name_are_one_question() -> None:
    options: dict[str, Any] = {"batch": 3, "source_len": 17, "dtype": "bfloat16", "training": True, "recompute": "full"}
    assert plan(GPT2, Workload(**options)) == plan(GPT2, **options)
    assert memory_plan(GPT2, Workload(**options)) == plan(GPT2, **options).memory
    with pytest.raises(TypeError, match="not both: batch"):
        plan(GPT2, Workload(**options), batch=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'texts'"):
        plan(GPT2, texts=2, source_len=5)


LLAMA = PRESETS["llama-3-8b"].config
GiB = 1 << 30


@pytest.mark.parametrize(
    ("options", "gib"),
    [
        ({}, 22.357),  # the last row's scores, the fused kernel
        ({"logits": "all"}, 27.286),
        ({"logits": "all", "attention": "eager"}, 149.357),
        ({"piece": 2048}, 19.171),
        ({"piece": 512}, 19.011),
        ({"piece": 2048, "weight_dtype": "Q4_K_M"}, 8.788),
    ],
)
def test_llama_3_8b_writes_after_32768_tokens(options: dict[str, Any], gib: float) -> None:
    assert round(memory_plan(LLAMA, source_len=32_768, dtype="float16", **options).total / GiB, 3) == gib


def test_pieces_need_no_more_than_the_whole_and_chats_need_cache_alone() -> None:
    for case in cases(41, 40, source=(7, 100, 500)):
        if case.config.kind != "decoder":
            continue
        for attention in ("flash", "eager"):
            options: dict[str, Any] = {**case.lengths, "dtype": case.dtype, "attention": attention}
            whole = memory_plan(case.config, **options)
            pieces = [memory_plan(case.config, **options, piece=n) for n in (1, 16, 64)]
            assert [plan.transient for plan in pieces] == sorted(plan.transient for plan in pieces)
            assert pieces[0].transient <= whole.transient, case
            assert {(plan.weights, plan.kv_cache) for plan in pieces} == {(whole.weights, whole.kv_cache)}
    one, eight = (memory_plan(LLAMA, source_len=8192, dtype="float16", piece=2048, batch=n) for n in (1, 8))
    assert (one.kv_cache, eight.kv_cache) == (GiB, 8 * GiB)
    assert eight.transient - one.transient < 1 << 23  # seven more rows of logits


def test_a_run_for_writing_keeps_one_row_of_logits_a_text() -> None:
    assert plan(GPT2, batch=3, source_len=100).logits == 3 * 50_257 * 4
    assert plan(GPT2, batch=3, source_len=100, logits="all").logits == 100 * plan(GPT2, batch=3, source_len=100).logits
    for needs_all in (
        plan(GPT2, source_len=100, training=True),
        plan(replace(PRESETS["bert-base"].config, head="mlm"), source_len=100),
    ):
        assert needs_all.logits == 100 * needs_all.config.vocab_size * 4
