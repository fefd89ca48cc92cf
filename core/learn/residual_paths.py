"""The use of the residual connection: how large the gradient is at every layer of a fresh stack, and how alike its words become.

He et al. 2016, "Identity Mappings in Deep Residual Networks", equation 5: with x + f(x) the gradient has a way back on which nothing
multiplies it, ∂L/∂x₀ = ∂L/∂x_L · ∏ (I + ∂f/∂x). Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture": where
the norm stands decides how large it is. Dong et al. 2021, "Attention is not all you need": without that connection all words of a
text become one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..checkpoints.build import build
from ..model.config import ModelConfig
from ..model.hooks import Hook, hooked
from ..model.transformer import Block, Transformer
from .training import PlainAttention
from .watched_training import no_residual

Norm = Literal["pre", "post", "none"]
SYMBOLS, COPIED, BATCH = 60, 16, 8  # what is copied: rows of random symbols, each written twice
WIDTH, HEADS = 128, 4


@dataclass(frozen=True, eq=False)
class ResidualPath:
    """One backward pass through a fresh stack that is to write a row of symbols once more."""

    norm: Norm  # before each sublayer, after each addition, or nowhere
    residual: bool
    gradients: np.ndarray  # float64 [layer + 1]: ‖∂loss/∂x‖ of the stream before every layer, and after the last
    alike: np.ndarray  # float64 [layer + 1]: the mean cosine between the vectors of two words of one text


def residual_paths(n_layers: int = 24, seed: int = 0) -> tuple[ResidualPath, ...]:
    """With the residual connection and without it: the norm before the sublayers, after them, and none. Some seconds on a CPU.

    Raises ConfigError for a number of layers that no model has.
    """
    return tuple(
        residual_path(norm, residual, n_layers, seed) for residual in (True, False) for norm in ("pre", "post", "none")
    )


def residual_path(norm: Norm, residual: bool, n_layers: int = 24, seed: int = 0) -> ResidualPath:
    """One of them. The weights are core.build's, the same for the same seed.

    Without norms the scores grow so large that the softmax has one key alone: in float32 a fused kernel's backward pass, which
    has only the logarithm of the sum to go back from, then gives a gradient of 10¹⁰ where there is one of 32. So it is float64,
    and attention in plain steps.
    """
    config = ModelConfig(
        d_model=WIDTH,
        n_heads=HEADS,
        d_ff=4 * WIDTH,
        n_decoder_layers=n_layers,
        vocab_size=SYMBOLS,
        n_ctx=2 * COPIED,
        position="learned",
        norm_order="post" if norm == "post" else "pre",
    )
    model = build(config, seed).model.cpu().double()
    assert model.decoder is not None and model.head is not None
    if norm == "none":
        without_norms(model)
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(SYMBOLS, (BATCH, COPIED), generator=generator)
    ids = torch.cat([row, row], 1)  # [batch, pos]
    streams: list[Tensor] = []

    def begin(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # where the gradient ends: the tables before it have no use for theirs
        return keep(x)

    def keep(x: Tensor) -> Tensor:
        x.retain_grad()
        streams.append(x)
        return x

    points = [f"decoder.blocks.{i}.hook_resid_post" for i in range(n_layers)]
    hooks: dict[str, Hook] = {} if residual else no_residual(model)
    hooks |= {"decoder.embed.hook_embed": begin, **dict.fromkeys(points, keep)}
    with torch.enable_grad(), hooked(model, hooks), PlainAttention():
        logits = model.head(model.last_residual(ids[:, :-1]))[:, COPIED - 1 :]  # [batch, 16, vocab]
        F.cross_entropy(logits.flatten(0, 1), ids[:, COPIED:].flatten()).backward()
    gradients = torch.stack([x.grad.norm() for x in streams if x.grad is not None])
    alike = torch.stack([mean_cosine(x.detach()) for x in streams])
    return ResidualPath(norm, residual, gradients.numpy(), alike.numpy())


def mean_cosine(x: Tensor) -> Tensor:
    """[batch, pos, d_model] -> the mean cosine between two different positions of a text, over all texts."""
    units = F.normalize(x, dim=-1)
    n = units.shape[1]
    cosines = units @ units.mT  # [batch, pos, pos]
    return (cosines.sum((-2, -1)) - n).mean() / (n * (n - 1))


def without_norms(model: Transformer) -> None:
    """Take every norm out of a fresh model's layers. The one before the head stays, so that logits keep their size."""
    assert model.decoder is not None
    for block in model.decoder.blocks:
        assert isinstance(block, Block)
        block.attn_norm = block.mlp_norm = nn.Identity()
