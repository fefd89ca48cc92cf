"""Fixtures of the core's tests: small models with perturbed weights, ready to trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from core import AttentionRecord, ModelConfig, build
from core.checkpoints import Loaded

TINY: dict[str, Any] = {"vocab_size": 61, "d_model": 20, "n_heads": 4, "d_head": 6, "d_ff": 23, "n_ctx": 37}
KINDS: dict[str, dict[str, int]] = {
    "encoder": {"n_encoder_layers": 2},
    "decoder": {"n_decoder_layers": 2},
    "encoder-decoder": {"n_encoder_layers": 2, "n_decoder_layers": 2},
}


def make_loaded(seed: int = 0, **config: Any) -> Loaded:
    """A tiny random model whose norms and biases are perturbed too, since fresh ones (ones and zeros) hide mistakes."""
    if not config.get("n_encoder_layers") and not config.get("n_decoder_layers"):
        config["n_decoder_layers"] = 2
    loaded = build(ModelConfig(**(TINY | config)), seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for parameter in loaded.model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return loaded


def fused_error(record: AttentionRecord) -> float:
    """The receipt's |pattern @ v − fused kernel|, which must exist."""
    error = record.receipt().fused_error
    assert error is not None
    return error


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Loaded]:
    """tiny(seed=0, **config) -> a small model; without layer counts a two-layer decoder."""
    return make_loaded


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a published model's folder, to be spoiled."""
    from tests.core.published import reference  # it brings transformers, which few tests need

    def copy(name: str) -> Path:
        return Path(shutil.copytree(reference(name).folder, tmp_path / "model", dirs_exist_ok=True))

    return copy
