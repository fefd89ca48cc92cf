"""build(): a model with random weights from a config."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..model.config import ModelConfig
from ..model.transformer import Transformer, to_dtype
from . import Loaded, ModelSpec


def build(
    config: ModelConfig, seed: int = 0, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Loaded:
    """An untrained model, reproducible by its seed. It has no tokenizer: trace it with ids=[...]."""
    with SeededInit(seed):
        model = initialise(Transformer(config))
    model = to_dtype(model, dtype).to(device).eval().requires_grad_(False)
    spec = ModelSpec(
        id="built",
        title=f"random {config.kind}",
        source="built",
        location="",
        n_params=sum(p.numel() for p in model.parameters()),
        note=f"random weights, seed {seed}",
    )
    return Loaded(
        spec=spec,
        config=config,
        model=model,
        tokenizer=None,
        device=torch.device(device),
        dtype=dtype,
        unused=(),
        pad_id=0,
        start_id=0 if config.kind == "encoder-decoder" else None,
    )


# Functions that draw random numbers: of torch.nn.init, as modules call them, and those that the others call.
RANDOM_INITIALISERS = (
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.kaiming_uniform_,
    Tensor.uniform_,
    Tensor.normal_,
)


class SeededInit(TorchFunctionMode):
    """Initialises weights from its own generator, so that the global one, which other threads use, plays no part."""

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in RANDOM_INITIALISERS:
            kwargs = kwargs | {"generator": self.generator}
        return func(*args, **kwargs)


def initialise(model: Transformer) -> Transformer:
    """Initialise weights as in Vaswani et al. 2017 and Glorot & Bengio 2010, so that scores and logits are of the order of 1."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():  # after the linear layers, because a tied table is initialised as an embedding
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    return model
