"""build(): a fresh model with random weights from nothing but a config."""

from __future__ import annotations

import torch
from torch import nn

from .checkpoints import Loaded, ModelSpec
from .config import ModelConfig
from .model import Transformer


def build(
    config: ModelConfig, seed: int = 0, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Loaded:
    """The model that `config` describes, untrained, the same for the same seed. It has no tokenizer: trace it with ids=[...]."""
    with torch.random.fork_rng():  # the caller's own random numbers go on as if nothing had happened
        torch.manual_seed(seed)
        model = initialise(Transformer(config)).to(device=device, dtype=dtype).eval().requires_grad_(False)
    n_params = sum(p.numel() for p in model.parameters())
    spec = ModelSpec(
        id="built",
        title=f"random {config.kind}",
        source="built",
        location="",
        n_params=n_params,
        note=f"random weights, seed {seed}",
    )
    start_id = 0 if config.kind == "encoder-decoder" else None
    return Loaded(
        spec=spec,
        config=config,
        model=model,
        tokenizer=None,
        device=torch.device(device),
        dtype=dtype,
        unused=(),
        pad_id=0,
        start_id=start_id,
    )


def initialise(model: Transformer) -> Transformer:
    """Fill the weights as Vaswani et al. 2017 and Glorot & Bengio 2010 do: scores and logits start out of the order of 1."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():  # after the linears: a tied table is both, and starts as a table
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    return model
