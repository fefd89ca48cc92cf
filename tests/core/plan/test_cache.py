"""The KV cache: published sizes, windows, grouped heads, cross-attention, and peers' mistakes as regressions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.model.hooks import hook_points, hooked
from core.model.transformer import Transformer
from core.plan import PRESETS, kv_cache
from tests.core.plan.configs import cases

KiB, GiB = 1 << 10, 1 << 30


@pytest.mark.parametrize(
    ("name", "per_token"),
    [("gpt2", 36), ("gpt3", 4.5 * 1024), ("llama-2-7b", 512), ("llama-3-8b", 128), ("qwen2.5-0.5b", 12)],
)
def test_per_token_in_16_bits(name: str, per_token: float) -> None:
    assert kv_cache(PRESETS[name].config, n=1).per_token == per_token * KiB


def test_keys_and_values_of_every_head_group() -> None:
    """The cookbook's calculator leaves out the factor 2 and grouped heads: it says 1 and 2 GiB."""
    assert kv_cache(PRESETS["llama-2-7b"].config, n=4096).total == 2 * GiB
    assert kv_cache(PRESETS["llama-3-8b"].config, n=8192).total == 1 * GiB


def test_is_what_the_model_computes() -> None:
    """Keys and values that pass the hook points of a decoder, counted on a real pass."""
    for case in cases(8, 12):
        config = replace(case.config, window=None, windowed_layers=None)
        seen: dict[str, int] = {}

        def count(name: str, x: Tensor, seen: dict[str, int] = seen) -> None:
            seen[name] = x.numel() * x.element_size()

        model = Transformer(config).eval()
        names = [n for n in hook_points(model) if n.startswith("decoder") and n.endswith(("hook_k", "hook_v"))]
        ids = torch.zeros(case.batch, case.source_len, dtype=torch.long)
        target = torch.zeros(case.batch, case.target_len, dtype=torch.long) if case.target_len else None
        with torch.no_grad(), hooked(model, {n: lambda x, n=n: count(n, x) for n in names}):
            model(ids, target)
        memory_len = case.source_len if target is not None else 0
        cache = kv_cache(
            config,
            batch=case.batch,
            n=case.target_len or case.source_len,
            memory_len=memory_len,
            dtype="float32",
        )
        assert cache.cross_attention == sum(size for name, size in seen.items() if "cross" in name)
        assert cache.self_attention == sum(size for name, size in seen.items() if "cross" not in name)


def test_mha_gqa_mqa() -> None:
    config = PRESETS["llama-3-8b"].config
    cache = kv_cache(config, batch=2, n=1000)
    assert cache.as_mha == 4 * cache.self_attention == 32 * cache.as_mqa
    assert kv_cache(replace(config, n_kv_heads=1), batch=2, n=1000).self_attention == cache.as_mqa
    assert kv_cache(replace(config, n_kv_heads=32), batch=2, n=1000).self_attention == cache.as_mha


def test_lesson_e6_is_two_n_d_layers() -> None:
    config = PRESETS["gpt2"].config
    elements = kv_cache(config, n=100, dtype="float16").total // 2
    assert elements == 2 * 100 * 768 * 12  # elements, for one text


def test_a_window_bounds_it() -> None:
    mistral = PRESETS["mistral-7b"].config
    full = kv_cache(mistral, n=4096)
    assert kv_cache(mistral, n=32_768).total == full.total
    half = replace(mistral, windowed_layers=tuple(range(0, 32, 2)))
    assert kv_cache(half, n=8192).total == full.total // 2 + kv_cache(replace(mistral, window=None), n=8192).total // 2


def test_format_and_kind() -> None:
    config = PRESETS["llama-2-7b"].config
    assert kv_cache(config, n=10, dtype="int8").total * 4 == kv_cache(config, n=10, dtype="float32").total
    encoder = ModelConfig(vocab_size=10, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=2)
    assert kv_cache(encoder, n=100).total == 0
    with pytest.raises(ConfigError, match="kv_dtype \\('int2'\\)"):
        kv_cache(config, n=10, dtype="int2")
    with pytest.raises(ConfigError, match="n \\(-1\\) must not be negative"):
        kv_cache(config, n=-1)


def test_cross_attention_is_constant_while_decoding() -> None:
    config = PRESETS["t5-small"].config
    caches = [kv_cache(config, n=n, memory_len=20) for n in (1, 10, 100)]
    assert {cache.cross_attention for cache in caches} == {2 * 6 * 20 * 512 * 2}
    assert [cache.self_attention for cache in caches] == [2 * 6 * n * 512 * 2 for n in (1, 10, 100)]
    assert caches[0].to_dict()["total"] == caches[0].total
