"""Weights in the formats of files: blocks with their scales, mixes as llama.cpp makes them, and what stays as it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from core import ModelConfig
from core.errors import ConfigError
from core.plan import PRESETS, decode, kv_cache, memory_plan, parameters, stored_weights
from core.plan.operations import ideal_bytes
from core.plan.parameters import Matrix, _alike, _gguf, matrices
from core.plan.workload import CACHE, FORMATS, MIXES, WEIGHT_FORMATS
from tests.core.plan.configs import cases
from tests.thorough import part

LLAMA = PRESETS["llama-3-8b"].config
GiB = 1 << 30

# bits for each weight of files of Llama 3.1 8B, which has the shape of Llama 3 8B: llama.cpp, tools/quantize/README.md
PUBLISHED = {
    "IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294, "IQ3_XXS": 3.2548,
    "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818, "Q2_K_S": 2.9697, "Q2_K": 3.1593,
    "Q3_K_S": 3.6429, "Q3_K_L": 4.2979, "Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633,
    "Q8_0": 8.5008, "float16": 16.0005,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_mix_has_the_bits_that_its_file_has(name: str) -> None:
    assert stored_weights(LLAMA, dtype="float16", weight_dtype=name).bits_each == pytest.approx(
        PUBLISHED[name], abs=6e-5
    )


@pytest.mark.parametrize(
    ("name", "bits"),
    [("Q4_0", 4.5), ("Q4_1", 5.0), ("Q5_0", 5.5), ("Q5_1", 6.0), ("Q8_0", 8.5), ("Q2_K", 2.625), ("Q3_K", 3.4375), ("Q4_K", 4.5),
     ("Q5_K", 5.5), ("Q6_K", 6.5625), ("IQ4_NL", 4.5), ("IQ4_XS", 4.25), ("MXFP4", 4.25), ("int4", 4.15625), ("nf4", 4.5)],
)  # fmt: skip
def test_blocks_with_their_scales(name: str, bits: float) -> None:
    found = FORMATS[name]
    assert found.bits_each == bits
    assert found.row(10 * found.numbers) * 8 == pytest.approx(10 * found.bits, abs=7)
    assert found.row(10 * found.numbers + 1) > found.row(10 * found.numbers)  # a block that is begun is there


def test_every_parameter_is_counted_once() -> None:
    for case in cases(31, 40):
        numbers = sum(matrix.times * matrix.rows * matrix.width for matrix in matrices(case.config))
        count = parameters(case.config).total
        assert 0 < numbers <= count
        for name in WEIGHT_FORMATS:
            found = stored_weights(case.config, dtype="float16", weight_dtype=name)
            assert found.total > 0 and found.bits_each < 70
        plain = stored_weights(case.config, dtype="float16").total
        assert plain == memory_plan(case.config, **case.lengths, dtype="float16").weights


def test_layers_that_are_alike_are_counted_as_one_by_one() -> None:
    """For every number of layers and every mix; and of more layers than anybody could count there are as few kinds."""
    for n in part(range(1, 130), 7):
        alike = list(_alike(n))
        assert sum(times for _, times in alike) == n
        config = ModelConfig(vocab_size=256, d_model=256, n_heads=4, n_kv_heads=1, d_ff=256, n_decoder_layers=n)
        for mix in MIXES:
            for kind in ("v", "o", "down", "up", "gate"):
                one_by_one = Counter(
                    _gguf(config, Matrix("decoder", f"attn {kind}", layer, n, 256, 256), mix).name for layer in range(n)
                )
                together = Counter[str]()
                for layer, times in alike:
                    together[_gguf(config, Matrix("decoder", f"attn {kind}", layer, n, 256, 256), mix).name] += times
                assert together == one_by_one, (mix, kind, n)
    assert len(list(_alike(10**15))) < 20


def test_what_is_not_quantized_stays() -> None:
    """int4 leaves tables, norms and the unembedding in 16 bits; a GGUF mix quantizes the table and keeps norms in float32."""
    table = LLAMA.vocab_size * LLAMA.d_model
    int4 = stored_weights(LLAMA, dtype="float16", weight_dtype="int4")
    assert int4.each["", "token"] == int4.each["", "unembed"] == 2 * table
    assert int4.each["decoder", "mlp up"] == 14_336 * (4096 * 4 + 32 * 20) // 8
    mix = stored_weights(LLAMA, dtype="float16", weight_dtype="q4_k_m")  # as people write it
    assert mix.each["", "token"] == table // 256 * 144
    assert mix.each["", "unembed"] == table // 256 * 210
    assert mix.each["decoder", "attn q"] == 4096 * 4096 // 256 * 144
    v, n = 1024 * 4096 // 256, 32
    more = sum(i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2 for i in range(n))
    assert mix.each["decoder", "attn v"] == v * (more * 210 + (n - more) * 144) // n
    tied = stored_weights(replace(LLAMA, tied=True), dtype="float16", weight_dtype="Q4_0")
    assert tied.each["", "token"] == tied.each["", "unembed"] == table // 256 * 210


def test_rows_that_are_no_whole_blocks_take_another_type() -> None:
    minilm = PRESETS["minilm"].config  # 384 is 1.5 blocks of 256
    found = stored_weights(minilm, dtype="float16", weight_dtype="Q4_K_M")
    assert found.each["encoder", "attn q"] == 384 * (384 // 32) * 22  # Q5_0 in place of Q4_K
    odd = replace(minilm, d_model=60, n_heads=2, n_kv_heads=2, d_head=30, d_ff=100)
    assert stored_weights(odd, dtype="float16", weight_dtype="Q4_0").each["encoder", "attn q"] == 60 * 60 * 2


def test_a_quantized_cache() -> None:
    plain = kv_cache(LLAMA, n=8192, dtype="float16").total
    assert plain == GiB
    for name, bits in (("Q8_0", 8.5), ("q4_0", 4.5), ("Q5_1", 6.0), ("int8", 8), ("float8", 8)):
        assert kv_cache(LLAMA, n=8192, dtype=name).total == plain * bits / 16
    with pytest.raises(ConfigError, match=r"d_head \(80\) is no multiple"):
        kv_cache(replace(LLAMA, d_head=80), n=5, dtype="Q8_0")
    assert set(CACHE) <= FORMATS.keys() and set(MIXES) < set(WEIGHT_FORMATS)


def test_a_token_reads_the_weights_as_they_are_stored() -> None:
    full, small = (ideal_bytes(decode(LLAMA, cached=1, weight_dtype=name)) for name in ("float16", "Q4_K_M"))
    table = LLAMA.vocab_size * LLAMA.d_model  # is looked up
    assert full == pytest.approx(2 * (parameters(LLAMA).total - table), rel=1e-3)
    looked_up = stored_weights(LLAMA, dtype="float16", weight_dtype="Q4_K_M").each["", "token"]
    assert small == pytest.approx(
        stored_weights(LLAMA, dtype="float16", weight_dtype="Q4_K_M").total - looked_up, rel=2e-3
    )
