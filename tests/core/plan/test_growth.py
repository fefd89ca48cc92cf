"""Growth: factors by hand, the shares of both parts, and the numbers that one layer moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from core.errors import ConfigError
from core.labs.sizes import LENGTHS, ScaledSize, bottleneck, memory_accesses, scaling_factors
from core.plan import PRESETS, Workload, memory_plan
from core.plan.operations import device_named
from tests.core.plan.configs import cases

GPT2, LLAMA, T5, BERT = (PRESETS[name].config for name in ("gpt2", "llama-3-8b", "t5-small", "bert-base"))
A100 = device_named("A100 80 GB")
assert A100 is not None


def test_d_model_makes_layers_four_times_as_large_and_tables_twice() -> None:
    for config, target in ((GPT2, 0), (LLAMA, 0), (T5, 9), (BERT, 0)):
        found = scaling_factors(config, Workload(source_len=512, target_len=target), "d_model")
        assert 3.98 < found["parameters"]["layers"] <= 4  # norms and biases twice alone
        assert found["parameters"]["tables"] == 2
        assert 2 < found["parameters"]["total"] < 4
        assert found["cache"]["total"] == (None if config is BERT else 2)
        assert 2 < found["flops"]["total"] < 4


def test_each_of_the_others() -> None:
    work = Workload(source_len=512, training=True)
    layers, longer, heads, batch = (
        scaling_factors(GPT2, work, what) for what in ("layers", "source_len", "heads", "batch")
    )
    assert (layers["parameters"]["layers"], layers["parameters"]["tables"]) == (2, 1)
    assert layers["cache"]["total"] == longer["cache"]["total"] == batch["cache"]["total"] == 2
    for found in (longer, heads, batch):
        assert found["parameters"] == {"layers": 1, "tables": 1, "total": 1}
        assert found["memory"]["weights"] == found["memory"]["gradients"] == found["memory"]["optimizer"] == 1
    assert 2 < longer["flops"]["total"] < 4 and batch["flops"]["total"] == 2
    assert heads["flops"]["total"] == 1 and heads["cache"]["total"] == 1
    assert longer["memory"]["activations"] == pytest.approx(2, rel=0.001)  # a fused kernel keeps no map
    maps = Workload(source_len=4096, training=True, attention="eager")
    assert 3 < scaling_factors(GPT2, maps, "source_len")["memory"]["activations"] < 4
    assert 1.5 < scaling_factors(GPT2, maps, "heads")["memory"]["activations"] < 2
    assert found["memory"]["kv_cache"] is None  # there was none


def test_factors_are_those_of_the_planner() -> None:
    for case in cases(91, 40):
        work = Workload(**case.lengths, dtype=case.dtype)
        for what in get_args(ScaledSize):
            if what == "heads" and case.config.position == "rotary":
                continue  # half a head may be too narrow to turn
            found = scaling_factors(case.config, work, what)
            before = memory_plan(case.config, work)
            if what in ("source_len", "batch"):
                twice: dict[str, Any] = {what: 2 * getattr(work, what)}
                after = memory_plan(case.config, replace(work, **twice))
                assert found["memory"]["total"] == after.total / before.total
            assert what == "heads" or all(value is None or value >= 1 for value in found["memory"].values()), (
                what,
                found,
            )


def test_the_longer_the_text_the_more_of_the_work_is_maps() -> None:
    assert A100 is not None
    for config, attention in ((GPT2, "flash"), (GPT2, "eager"), (LLAMA, "flash")):
        found = bottleneck(config, Workload(source_len=7, dtype="float16", attention=attention), A100)
        assert [row["n"] for row in found] == list(LENGTHS)
        for row in found:
            for share in ("flops_share", "seconds_share"):
                assert row["attention"][share] + row["products"][share] == pytest.approx(1)
            assert row["products"]["flops"] > 0 and row["attention"]["bytes"] > 0
        shares = [row["attention"]["flops_share"] for row in found]
        assert shares == sorted(shares) and shares[0] < 0.11 and shares[-1] > 0.7
        assert found[-1]["attention"]["limit"] == ("memory" if attention == "eager" else "compute")
    # 2 · n · 12 d² for the products of a layer beside 4 · n² · d for its maps: as much of each at n = 6 d
    (even,) = bottleneck(GPT2, Workload(source_len=1, attention="eager", dtype="float16"), A100, (6 * 768,))
    assert even["attention"]["flops"] == even["products"]["flops"]


def test_accesses_grow_with_n_squared_with_n_and_with_d_squared() -> None:
    d, heads, biases = 768, 12, 3 * 768 + 768 + 3072 + 768
    found = {
        n: memory_accesses(GPT2, Workload(source_len=n, dtype="float16", batch=4)) for n in (100, 200, 6400, 12_800)
    }
    for n, numbers in found.items():
        assert numbers["weights"] == 4 * d * d + 2 * d * 4 * d + biases
        assert numbers["fused"] == 4 * n * d
        # scores written; read and written by the scale, the mask (a byte a cell: a quarter of a number) and the softmax; read at last
        assert numbers["eager"] == 8 * heads * n * n + n * n // 4 + 4 * n * d
        assert numbers["stream"] == n * (8 * d + 2 * 5 * d)
    assert found[12_800]["eager"] / found[6400]["eager"] > 3.9
    assert set(found[100]["formulas"]) == {"eager", "fused", "weights", "stream"}
    for other, target in ((T5, 7), (BERT, 0), (LLAMA, 0)):
        moved = memory_accesses(other, Workload(source_len=2000, target_len=target))
        assert moved["eager"] > moved["fused"] > 0 and moved["weights"] > 0


def test_refusals() -> None:
    work = Workload(source_len=5)
    with pytest.raises(ConfigError, match=r"what \('width'\) must be one of 'd_model'"):
        scaling_factors(GPT2, work, "width")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"d_head \(75\) must be even"):
        scaling_factors(replace(GPT2, d_head=75), work, "heads")
