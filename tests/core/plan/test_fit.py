"""longest_fit: n fits and n + 1 does not, whatever varies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import ConfigError
from core.plan import PRESETS, longest_fit, memory_plan, with_layers
from tests.core.plan.configs import Case, cases

GiB = 1 << 30


@pytest.mark.parametrize("vary", ["source_len", "batch", "layers"])
@pytest.mark.parametrize("training", [False, True])
def test_n_fits_and_the_next_does_not(vary: Any, training: bool) -> None:
    for case in cases(15, 25):
        options: dict[str, Any] = {**case.lengths, "training": training}
        budget = 3 * memory_plan(case.config, **options).total
        fit = longest_fit(case.config, budget, vary=vary, **options)
        assert fit.n >= 1
        assert fit.bytes <= budget < fit.next_bytes

        def total(n: int, options: dict[str, Any] = options, case: Case = case) -> int:
            if vary == "layers":
                return memory_plan(with_layers(case.config, n), **options).total
            changed: dict[str, Any] = {**options, vary: n}
            return memory_plan(case.config, **changed).total

        assert (total(fit.n), total(fit.n + 1)) == (fit.bytes, fit.next_bytes)
        assert fit.memory is not None and fit.memory.total == fit.bytes


def test_memory_never_shrinks() -> None:
    """What halving relies on."""
    for case in cases(16, 20):
        for training in (False, True):
            totals = [
                memory_plan(case.config, **{**case.lengths, "source_len": n}, training=training).total
                for n in (*range(1, 200), 1000, 1001, 5000, 5001)
            ]
            assert totals == sorted(totals), case


def test_lesson_a7() -> None:
    config = PRESETS["lesson-encoder"].config
    training = longest_fit(config, 8 * GiB, batch=32, training=True)
    inference = longest_fit(config, 8 * GiB, batch=32)
    flash = longest_fit(config, 8 * GiB, batch=32, attention="flash", dtype="float16")
    assert 500 < training.n < 800 < 1700 < inference.n < 2200 < 10_000 < flash.n
    assert longest_fit(config, 80 * GiB, batch=32, training=True).n > 3 * training.n


def test_a_table_of_positions_is_a_ceiling() -> None:
    medium = PRESETS["gpt2-medium"].config
    fit = longest_fit(medium, 8 * GiB)
    assert (fit.n > 1024, fit.ceiling, fit.usable) == (True, 1024, 1024)
    free = longest_fit(replace(medium, position="rotary"), 8 * GiB)
    assert (free.ceiling, free.usable) == (None, free.n)
    assert longest_fit(medium, 8 * GiB, vary="batch", source_len=100).ceiling is None


def test_nothing_fits() -> None:
    fit = longest_fit(PRESETS["llama-3-8b"].config, 24 * GiB, training=True)
    assert (fit.n, fit.bytes, fit.memory) == (0, 0, None)
    assert fit.next_bytes > 24 * GiB
    assert fit.to_dict()["usable"] == 0


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"vary \('heads'\) must be one of 'source_len'"):
        longest_fit(PRESETS["gpt2"].config, GiB, vary="heads")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="is for encoder-decoders; this model is decoder-only: vary source_len"):
        longest_fit(PRESETS["gpt2"].config, GiB, vary="target_len", source_len=5)
