"""build(): a fresh model with random weights from nothing but a config."""

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
    """The model that `config` describes, untrained, the same for the same seed. It has no tokenizer: trace it with ids=[...]."""
    with Seeded(seed):
        model = initialise(Transformer(config))
    model = to_dtype(model, dtype).to(device).eval().requires_grad_(False)
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


# Functions that draw: torch.nn.init's own functions where a module calls them by name, and what the others end in.
DRAWN = (nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_, Tensor.uniform_, Tensor.normal_)


class Seeded(TorchFunctionMode):
    """Has the numbers of new weights drawn from a generator of its own: the process has one that everybody else draws from."""

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in DRAWN:
            kwargs = kwargs | {"generator": self.generator}
        return func(*args, **kwargs)


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
