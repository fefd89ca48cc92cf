"""The set-ups of benchmarks/fits.py are runs that can be planned, and a small one takes what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.fits import SET_UPS, SetUp, alive, config_of, error, made, said
from core.model.config import ModelConfig
from core.plan import Workload

SMALL = ModelConfig(
    vocab_size=2000, d_model=64, n_heads=4, n_kv_heads=2, d_ff=256, n_decoder_layers=6, n_ctx=1200, position="rotary"
)


@pytest.mark.thorough(but=6)
@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: set_up.title)
def test_a_set_up_is_a_workload(set_up: SetUp) -> None:
    config = config_of(set_up)
    set_up.work.check(config)
    assert 0 <= set_up.written < set_up.work.source_len
    assert set_up.work.source_len <= config.n_ctx
    assert said(set_up, config) > 0


@pytest.mark.parametrize(
    "set_up",
    [
        SetUp("read", SMALL, Workload(source_len=1200), "llama"),
        SetUp("all logits", SMALL, Workload(source_len=1200, logits="all"), "llama"),
        SetUp("window", replace(SMALL, window=40), Workload(source_len=1200), "mistral"),
        SetUp("written", SMALL, Workload(source_len=1200), "llama", "write", 10),
    ],
    ids=lambda set_up: set_up.title,
)
def test_a_small_run_takes_what_is_said(set_up: SetUp) -> None:
    config = config_of(set_up)
    assert abs(error(said(set_up, config), alive(made(config, "float32", None), set_up))) < 3
