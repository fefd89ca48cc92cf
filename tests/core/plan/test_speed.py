"""Speed: the roofline of a prompt, a token and a step of training, by hand and by what must hold of any model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import ConfigError
from core.plan import DEVICES, PRESETS, Device, Speed, Workload, decode, kv_cache, memory_plan, parameters, plan, speed
from core.plan.operations import device_named, ideal_bytes, prompt, total_flops
from core.plan.plan import reading, writing
from tests.core.plan.configs import cases

LLAMA, GPT2, BERT, T5, MISTRAL = (
    PRESETS[name].config for name in ("llama-3-8b", "gpt2", "bert-base", "t5-small", "mistral-7b")
)


def card(name: str) -> Device:
    found = device_named(name)
    assert found is not None
    return found


A100, RTX4090 = card("A100 80 GB"), card("RTX 4090")


def tokens_a_second(found: Speed, batch: int = 1) -> float:
    return batch / found.token_seconds


def test_a_token_reads_every_weight_and_the_cache_once() -> None:
    """52 and 127 tokens a second at most: what bandwidth leaves (15.0 GB of weights, 4.3 and 1.1 GB of cache)."""
    for device, n, most in ((RTX4090, 32_768, 52), (A100, 8192, 127)):
        work = Workload(source_len=n, dtype="float16", piece=2048)
        found = speed(LLAMA, work, device)
        table = 2 * LLAMA.vocab_size * LLAMA.d_model  # is looked up
        assert found.weights_read == memory_plan(LLAMA, work).weights - table
        assert found.cache_read == kv_cache(LLAMA, n=n).total
        least = (found.weights_read + found.cache_read) / (device.gigabytes_per_second * 1e9)
        assert least < found.token_seconds < 1.005 * least
        assert round(tokens_a_second(found)) == most
        assert found.token_limit == "memory" and found.token_share < 0.02


def test_more_chats_share_the_weights() -> None:
    one, many = (speed(LLAMA, Workload(source_len=2048, dtype="float16", batch=batch), A100) for batch in (1, 32))
    assert many.weights_read == one.weights_read and many.cache_read == 32 * one.cache_read
    assert 15 < tokens_a_second(many, 32) / tokens_a_second(one) < 32
    assert one.token_seconds < many.token_seconds < 2 * one.token_seconds


def test_fewer_bits_are_read_faster() -> None:
    plain, small = (
        speed(LLAMA, Workload(source_len=100, dtype="float16", weight_dtype=name), RTX4090) for name in (None, "Q4_K_M")
    )
    assert 2.5 < plain.token_seconds / small.token_seconds < 4
    assert small.weights_read < plain.weights_read / 2.5
    assert small.prompt_seconds <= plain.prompt_seconds


def test_a_prompt_is_a_matter_of_arithmetic_and_its_hidden_half_is_skipped() -> None:
    work = Workload(source_len=8192, dtype="float16", piece=2048)
    found = speed(LLAMA, work, A100)
    assert found.prompt_limit == "compute" and found.prompt_share > 0.99
    matrices = 2 * 8192 * sum(op.times * op.flops for op in decode(LLAMA, cached=1) if op.weights and op.stack) // 2
    seen = 8192 * 8193 // 2 * 4 * 4096 * 32
    assert found.prompt_seconds == pytest.approx((matrices + seen) / 312e12, rel=0.01)
    eager = speed(LLAMA, replace(work, piece=0, attention="eager"), A100)
    assert eager.prompt_seconds > 1.1 * found.prompt_seconds  # all of the map, and it is written down
    short = speed(LLAMA, replace(work, source_len=10), A100)
    assert short.prompt_limit == "memory" and short.prompt_share < 0.1


def test_pieces_read_the_weights_again() -> None:
    whole, pieces = (
        sum(part.bytes for part in reading(LLAMA, Workload(source_len=8192, dtype="float16", piece=piece)))
        for piece in (0, 2048)
    )
    layers = memory_plan(LLAMA, source_len=1, dtype="float16").weights - 4 * LLAMA.vocab_size * LLAMA.d_model
    again = 3 * layers + 3 * kv_cache(LLAMA, n=8192).total / 2
    assert pieces - whole == pytest.approx(again, rel=0.01)


def test_sums_are_those_of_the_operations() -> None:
    for case in cases(81, 60):
        for attention in ("flash", "eager"):
            work = Workload(**case.lengths, dtype=case.dtype, attention=attention)
            parts = list(reading(case.config, work))
            ops = prompt(case.config, work)
            assert len(parts) == len(ops)
            assert sum(part.flops for part in parts) <= total_flops(ops)
            assert sum(part.bytes for part in parts) >= ideal_bytes(ops)
            if attention == "flash":
                assert sum(part.bytes for part in parts) == ideal_bytes(ops)
            else:
                assert sum(part.flops for part in parts) == total_flops(ops)
            for device in DEVICES:
                found = speed(case.config, work, device)
                assert 0 <= found.token_share <= 1 and 0 < found.prompt_share <= 1
                assert found.prompt_seconds > 0
                assert (found.token_seconds > 0) == (case.config.n_decoder_layers > 0) == bool(found.weights_read)


def test_a_step_of_training() -> None:
    for config, target in ((GPT2, 0), (BERT, 0), (T5, 100)):
        work = Workload(source_len=100, target_len=target, batch=8, dtype="float16", training=True)
        found = speed(config, work, A100)
        assert (found.prompt_seconds, found.token_seconds, found.weights_read, found.cache_read) == (0, 0, 0, 0)
        step = plan(config, work).step_flops / 312e12
        assert found.step_seconds > 0.85 * step  # hidden cells are skipped
        changes: list[tuple[dict[str, Any], bool]] = [
            ({"recompute": "full"}, True),
            ({"rank": 8}, False),
            ({"optimizer": "sgd"}, False),
        ]
        for rather, longer in changes:
            other = speed(config, replace(work, **rather), A100).step_seconds
            assert other > found.step_seconds if longer else other < found.step_seconds, (config, rather)
    update = 8 * parameters(GPT2).total / 2039e9  # of one token, the update of Adam's averages alone takes longer
    assert speed(GPT2, Workload(source_len=1, training=True), A100).step_seconds > update


def test_cards_share_the_work() -> None:
    work = Workload(source_len=4096, dtype="float16")
    one, four = (speed(LLAMA, work, A100, cards) for cards in (1, 4))
    assert four.prompt_seconds == pytest.approx(one.prompt_seconds / 4)
    assert four.token_seconds == pytest.approx(one.token_seconds / 4)
    assert (four.weights_read, four.cache_read) == (-(-one.weights_read // 4), one.cache_read // 4)
    assert speed(LLAMA, work, A100, 16).cache_read == one.cache_read // 8
    with pytest.raises(ConfigError, match=r"cards \(0\) must be at least 1"):
        speed(LLAMA, work, A100, 0)


def test_a_window_is_all_that_is_read() -> None:
    short, long = (speed(MISTRAL, Workload(source_len=n, dtype="float16"), A100) for n in (4096, 65_536))
    assert short.cache_read == long.cache_read and short.token_seconds == pytest.approx(long.token_seconds)
    assert sum(part.flops for part in writing(MISTRAL, Workload(source_len=65_536))) > 0


def test_encoders_write_nothing() -> None:
    found = speed(BERT, Workload(source_len=128), A100)
    assert found.prompt_seconds > 0 == found.token_seconds == found.weights_read == found.cache_read
    assert found.to_dict()["step_seconds"] == 0
