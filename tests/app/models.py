"""Small random models of every kind that the screen must draw, with MiniLM's tokenizer so that sentences run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

import core
from core import checkpoints
from core.checkpoints import Loaded

SMALL: dict[str, Any] = dict(vocab_size=30522, d_model=64, d_ff=64, n_ctx=4096, position="rotary", head="none")


def small(**config: Any) -> core.ModelConfig:
    return core.ModelConfig(**(SMALL | config))


HALF = {"overflowing"}  # in float16, with an MLP whose sums are beyond it
CONFIGS = {
    "pair": small(n_heads=4, n_encoder_layers=2, n_decoder_layers=3),
    "writer": small(n_heads=4, n_encoder_layers=1, n_decoder_layers=2, head="lm"),
    "grouped": small(n_heads=8, n_kv_heads=2, n_decoder_layers=4, window=5, windowed_layers=(1, 3)),
    "deep": small(
        d_model=36, d_ff=36, n_heads=9, n_kv_heads=3, n_decoder_layers=30, head="lm"
    ),  # 270 heads, as SmolLM2 has
    "many": small(d_model=100, n_heads=25, n_decoder_layers=48),
    "one": small(n_heads=1, n_encoder_layers=1),
    "overflowing": small(n_heads=4, n_decoder_layers=4),
}
SPECS = tuple(checkpoints.ModelSpec(id=name, title=name.title(), source="built", location="") for name in CONFIGS)


def load(name: str, **options: Any) -> Loaded:
    """One of these models, or one of the catalog's own."""
    if name not in CONFIGS:
        return checkpoints.load(name, **options)
    tokenizer = checkpoints.load("minilm").tokenizer
    spec = next(spec for spec in SPECS if spec.id == name)
    loaded = core.build(CONFIGS[name], seed=3, dtype=torch.float16 if name in HALF else torch.float32)
    if name in HALF:
        loaded.model.get_submodule("decoder.blocks.2.mlp.down").weight.data.fill_(torch.finfo(torch.float16).max)  # type: ignore[union-attr]
    return replace(loaded, spec=spec, tokenizer=tokenizer)
