"""Configurations that cannot be built are refused when they are made, by the name of the field and its number."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from core import ModelConfig
from core.errors import ConfigError
from core.model.config import RotaryScaling

SHAPE: dict[str, Any] = {"vocab_size": 50, "d_model": 16, "n_heads": 2, "d_ff": 32, "n_decoder_layers": 2}


@pytest.mark.parametrize("field", ["norm_eps", "embed_scale", "attn_scale", "logit_scale", "rotary_base"])
@pytest.mark.parametrize("value", [nan, inf])
def test_what_is_no_finite_number_is_refused(field: str, value: float) -> None:
    settings: dict[str, Any] = SHAPE | {field: value}
    with pytest.raises(ConfigError, match=rf"{field} \({value}\) must be a finite number"):
        ModelConfig(**settings)


@pytest.mark.parametrize("field", ["factor", "beta_fast", "attention_factor", "low_freq_factor"])
def test_nor_is_it_in_a_rotary_scaling(field: str) -> None:
    settings: dict[str, Any] = {"kind": "yarn", "factor": 2.0, "n_ctx_original": 8} | {field: nan}
    with pytest.raises(ConfigError, match=rf"{field} \(nan\) must be a finite number"):
        RotaryScaling(**settings)


@pytest.mark.parametrize("field", ["rotary_base", "rotary_base_windowed"])
@pytest.mark.parametrize("value", [0.0, 1.0, -10.0])
def test_a_base_without_frequencies_is_refused(field: str, value: float) -> None:
    settings: dict[str, Any] = SHAPE | {"position": "rotary", field: value}
    with pytest.raises(ConfigError, match=rf"{field} \({value}\) must be above 1"):
        ModelConfig(**settings)
