"""longest_fit: n fits and n + 1 does not, whatever varies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import PRESETS, Workload, live_peak_bytes, longest_fit, memory_plan, with_layers
from core.plan.live_memory import MeasurementSetup, measure
from tests.core.plan.configs import Case, cases
from tests.thorough import part

GiB = 1 << 30
VARY = ("source_len", "batch", "layers")
SMALL = ModelConfig(vocab_size=50, d_model=32, n_heads=4, d_ff=64, n_decoder_layers=2, n_ctx=64)


@pytest.mark.parametrize("vary", VARY)
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
                memory_plan(case.config, **(case.lengths | {"source_len": n}), training=training).total
                for n in (*range(1, 200), 1000, 1001, 5000, 5001)
            ]
            assert totals == sorted(totals), case


def test_lesson_a7() -> None:
    config = PRESETS["lesson-encoder"].config
    training = longest_fit(config, 8 * GiB, batch=32, training=True, attention="eager")
    inference = longest_fit(config, 8 * GiB, batch=32, attention="eager")
    flash = longest_fit(config, 8 * GiB, batch=32, attention="flash", dtype="float16")
    assert 500 < training.n < 800 < 1700 < inference.n < 2200 < 10_000 < flash.n
    assert longest_fit(config, 80 * GiB, batch=32, training=True, attention="eager").n > 3 * training.n


def test_an_upper_bound_says_so_and_what_is_alive_at_once_fits_longer_texts() -> None:
    """Lesson A7: 623 by the bound, 703 by what is alive, each with the next one that does not fit."""
    config = replace(PRESETS["lesson-encoder"].config, n_ctx=5000)
    options: dict[str, Any] = {"batch": 32, "training": True, "attention": "eager"}
    bound, alive = (longest_fit(config, 8 * GiB, counted=counted, **options) for counted in ("bound", "alive"))
    assert (bound.n, bound.counted, alive.n, alive.counted) == (623, "bound", 703, "alive")
    for fit in (bound, alive):
        assert fit.bytes <= 8 * GiB < fit.next_bytes
    assert live_peak_bytes(config, Workload(source_len=703, **options)) == alive.bytes


@pytest.mark.thorough
@pytest.mark.parametrize("vary", VARY)
@pytest.mark.parametrize("training", [False, True])
def test_what_is_alive_at_once_is_never_more_than_the_bound(vary: Any, training: bool) -> None:
    tried = [(case, attention) for case in cases(17, 2) for attention in ("spelled_out", "flash")]
    # Each question traces a whole step: a usual run asks one of the four.
    for case, attention in part(tried, 4, VARY.index(vary) + training):
        options: dict[str, Any] = {**case.lengths, "training": training, "attention": attention}
        budget = 3 * memory_plan(case.config, **options).total // 2
        bound, alive = (longest_fit(case.config, budget, vary=vary, counted=c, **options) for c in ("bound", "alive"))  # type: ignore[arg-type]
        assert alive.n >= bound.n >= 1, case
        assert alive.bytes <= budget < alive.next_bytes
        assert live_peak_bytes(case.config, Workload(**options)) <= memory_plan(case.config, **options).total


def test_what_is_alive_is_what_a_run_here_has() -> None:
    """The trace on nothing, and the same run with numbers."""
    for training in (False, True):
        work = Workload(batch=2, source_len=32, training=training, attention="eager")
        measured = measure(MeasurementSetup(SMALL, work), 1 << 30)
        (point,) = [point for point in measured.points if point.n == 32]
        assert live_peak_bytes(SMALL, work) == pytest.approx(point.measured, rel=0.01)


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
    with pytest.raises(ConfigError, match="without a window or a bias"):
        longest_fit(PRESETS["t5-small"].config, 8 * GiB, counted="alive", attention="eager", target_len=5)
    with pytest.raises(ConfigError, match=r"counted \('guess'\) must be one of 'bound', 'alive'"):
        longest_fit(PRESETS["gpt2"].config, GiB, counted="guess")  # type: ignore[arg-type]
    for options in ({"training": True, "recompute": "full"}, {"training": True, "dropout": True}, {"piece": 512}):
        with pytest.raises(ConfigError, match="alive at once are counted"):
            longest_fit(PRESETS["gpt2"].config, 8 * GiB, counted="alive", **options)  # type: ignore[arg-type]
