"""Several cards on paper: one is the model itself, more never take more, and together they hold all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import PRESETS, Memory, Workload, memory_plan, parameters, split_over_gpus, stored_weights, traffic
from core.plan.parameters import layer_bytes
from core.plan.verdict import Split, max_per_gpu
from tests.core.plan.configs import cases

LLAMA, GPT2, MISTRAL, T5 = (PRESETS[name].config for name in ("llama-3-8b", "gpt2", "mistral-7b", "t5-small"))
GEMMA = replace(MISTRAL, window=512, n_decoder_layers=12, windowed_layers=tuple(i for i in range(12) if i % 6 != 5))
EXPERTS = replace(MISTRAL, n_experts=8, n_experts_per_token=2, dense_layers=(0,), d_dense=9000)
SPLITS: tuple[Split, ...] = get_args(Split)


def parts(memory: Memory) -> dict[str, int]:
    return {name: size for name, size in memory.to_dict().items() if name != "total"}


def uses() -> Iterator[tuple[ModelConfig, Workload]]:
    for config in (LLAMA, GPT2, MISTRAL, GEMMA, T5):
        for way in (
            {"dtype": "float32"},
            {"dtype": "float16", "weight_dtype": "nf4"},
            {"dtype": "float16", "weight_dtype": "Q4_K_M"},
            {"training": True},
            {"training": True, "rank": 8},
        ):
            options: dict[str, Any] = {"batch": 2, "source_len": 700, "target_len": 60 if config is T5 else 0, **way}
            yield config, Workload(**options)
    for name in ("float16", "nf4"):
        yield EXPERTS, Workload(source_len=700, dtype="float16", weight_dtype=name)


@pytest.mark.parametrize("split", SPLITS)
def test_one_card_has_all_of_it(split: Split) -> None:
    for config, work in uses():
        assert split_over_gpus(config, work, 1, split) == memory_plan(config, work)
    for case in cases(71, 20):
        work = Workload(**case.lengths, dtype=case.dtype)
        assert split_over_gpus(case.config, work, 1, split) == memory_plan(case.config, work)


@pytest.mark.parametrize("split", SPLITS)
def test_more_cards_never_take_more_on_the_fullest_and_hold_all_of_it(split: Split) -> None:
    for config, work in uses():
        whole = before = memory_plan(config, work)
        for cards in (2, 3, 4, 6):
            found = split_over_gpus(config, work, cards, split)
            assert found.total <= before.total, (config, work, cards)
            assert found.total < whole.total
            for name, size in parts(found).items():
                assert size <= parts(whole)[name], (name, cards)
            for name in ("weights", "kv_cache", "gradients", "optimizer", "masters", "activations"):
                assert cards * parts(found)[name] >= parts(whole)[name], (name, cards)
            before = found
    for case in cases(72, 30):
        for way in ({}, {"training": True}):
            work = Workload(**case.lengths, dtype=case.dtype, **way)  # type: ignore[arg-type]
            cards = 2
            try:
                found = split_over_gpus(case.config, work, cards, split)
            except ConfigError:
                continue
            assert found.total <= memory_plan(case.config, work).total, case


def test_across_cuts_matrices_tables_and_cache_and_leaves_the_stream() -> None:
    work = Workload(source_len=8192, dtype="float16")
    whole = memory_plan(LLAMA, work)
    norms = (2 * 32 + 1) * 4096 * 4  # in float32, on every card
    for cards in (2, 4, 8):
        found = split_over_gpus(LLAMA, work, cards)
        assert found.weights == (whole.weights - norms) // cards + norms
        assert found.kv_cache == whole.kv_cache // cards
    sixteen = split_over_gpus(LLAMA, work, 16)  # two cards share a set of keys and values, and each has all of it
    assert sixteen.kv_cache == whole.kv_cache // 8
    keys = 2 * 32 * 1024 * 4096 * 2
    assert sixteen.weights == (whole.weights - norms - keys) // 16 + keys // 8 + norms
    three = split_over_gpus(LLAMA, work, 3)  # eight sets of keys on three cards: one has three
    assert three.kv_cache == whole.kv_cache * 3 // 8


def test_whole_layers_and_the_tables_on_the_ends() -> None:
    work = Workload(source_len=8192, dtype="float16")
    whole = memory_plan(LLAMA, work)
    table = LLAMA.vocab_size * LLAMA.d_model * 2
    last = LLAMA.d_model * 4
    layers = whole.weights - 2 * table - last
    for cards in (2, 3, 4, 32):
        found = split_over_gpus(LLAMA, work, cards, "layers")
        each = -(-32 // cards)
        assert found.weights == layers * each // 32 + table + last  # one of the two tables
        assert found.kv_cache == whole.kv_cache * each // 32
        assert found.transient == whole.transient
    training = split_over_gpus(LLAMA, replace(work, training=True), 4, "layers")
    numbers = parameters(LLAMA).total - LLAMA.vocab_size * LLAMA.d_model
    held = numbers - 24 * parameters(LLAMA).decoder.layer.total
    assert (training.gradients, training.masters, training.optimizer) == (2 * held, 4 * held, 8 * held)
    tied = split_over_gpus(GPT2, Workload(source_len=50), 2, "layers")  # both ends have the one table
    assert tied.weights > parameters(GPT2).source.token * 4 + 6 * parameters(GPT2).decoder.layer.total * 4


def test_the_fullest_of_unlike_stages() -> None:
    """Layers 5 and 11 have no window: one stage of four has one of them, another has none."""
    work = Workload(source_len=8000, dtype="float16", piece=2048)
    found = split_over_gpus(GEMMA, work, 4, "layers")
    kept = 2 * 8 * 128 * 2  # bytes of a key and a value of one layer
    assert found.kv_cache == (2 * 512 + 8000) * kept
    assert len(max_per_gpu(GEMMA, 4, "layers")) == 2
    dense = split_over_gpus(EXPERTS, Workload(source_len=50, dtype="float16"), 8, "layers")
    layers = [replace(EXPERTS, n_decoder_layers=4, dense_layers=layers) for layers in ((), (0,))]
    weights = [stored_weights(config, dtype="float16").total for config in layers]
    assert dense.weights == max(weights) - EXPERTS.vocab_size * EXPERTS.d_model * 2


def test_a_mix_gives_the_ends_more() -> None:
    """Q4_K_M has Q6_K in the first and last eighth: of four stages of Llama 3 8B the outer ones are the larger."""
    work = Workload(source_len=50, dtype="float16", weight_dtype="Q4_K_M")
    sizes = layer_bytes(LLAMA, 2, "Q4_K_M")["decoder"]
    whole = memory_plan(LLAMA, work).weights
    stages = [sum(sizes[first : first + 8]) for first in range(0, 32, 8)]
    assert stages[0] > stages[1] and max(stages) > sum(sizes) / 4
    found = split_over_gpus(LLAMA, work, 4, "layers")
    table = LLAMA.vocab_size * LLAMA.d_model // 256 * 144  # the table of tokens is the lighter end
    assert found.weights == whole - table - sum(sizes) + max(stages)
    for name in ("float16", "nf4", "Q4_K_M", "Q6_K"):  # and they are the matrices that all of it has
        stored = stored_weights(LLAMA, dtype="float16", weight_dtype=name)
        tables = stored.each["", "token"] + stored.each["", "unembed"]
        norms = (2 * 32 + 1) * 4096 * 4
        assert sum(layer_bytes(LLAMA, 2, name)["decoder"]) + tables + norms == stored.total
    shared = replace(GPT2, shared_layers=True)
    assert split_over_gpus(shared, work, 2, "layers").weights == memory_plan(shared, work).weights


def test_what_goes_between_cards() -> None:
    work = Workload(source_len=9, dtype="float16")
    stream = 4096 * 2
    assert traffic(LLAMA, work, 1) == traffic(LLAMA, work, 1, "layers") == 0
    # two all-reduces a layer; in a ring each card sends 2 · (k − 1) / k of the stream
    assert traffic(LLAMA, work, 2) == 32 * 2 * stream
    assert traffic(LLAMA, work, 4) == 32 * 2 * stream * 3 // 2
    assert traffic(LLAMA, work, 4, "layers") == 3 * stream
    assert traffic(replace(LLAMA, parallel=True), work, 2) == 32 * stream
    assert traffic(T5, Workload(source_len=9, target_len=9), 2) == 6 * 3 * 512 * 4


def test_refusals() -> None:
    work = Workload(source_len=9)
    with pytest.raises(ConfigError, match=r"across 13 cards needs a head for each, and this one has 12"):
        split_over_gpus(GPT2, work, 13)
    with pytest.raises(ConfigError, match=r"layers on 13 cards need a layer for each, and this model has 12"):
        split_over_gpus(GPT2, work, 13, "layers")
    with pytest.raises(ConfigError, match=r"cards \(0\) must be at least 1"):
        traffic(GPT2, work, 0)
    with pytest.raises(ConfigError, match=r"split \('rows'\) must be one of 'across', 'layers'"):
        split_over_gpus(GPT2, work, 2, "rows")  # type: ignore[arg-type]
    assert split_over_gpus(GPT2, work, 12).total < split_over_gpus(GPT2, work, 6).total
