"""Effect of the residual connection on an untrained stack: gradient norms and similarity of the tokens' vectors at every layer.

He et al. 2016, "Identity Mappings in Deep Residual Networks", equation 5: with x + f(x) one path of the gradient has no factors,
∂L/∂x₀ = ∂L/∂x_L · ∏ (I + ∂f/∂x). Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture": the position of the
norm determines its size. Dong et al. 2021, "Attention is not all you need": without the connection all tokens' vectors become equal.
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
SYMBOLS, COPIED, BATCH = 60, 16, 8  # the task: rows of random symbols, each repeated once
WIDTH, HEADS = 128, 4


@dataclass(frozen=True, eq=False)
class ResidualPath:
    """One backward pass through an untrained stack on the task of repeating a row of symbols."""

    norm: Norm  # before each sublayer, after each addition, or nowhere
    residual: bool
    gradients: np.ndarray  # float64 [layer + 1]: ‖∂loss/∂x‖ of the stream before every layer, and after the last
    alike: np.ndarray  # float64 [layer + 1]: mean cosine between the vectors of two tokens of one text


def residual_paths(n_layers: int = 24, seed: int = 0) -> tuple[ResidualPath, ...]:
    """All combinations of norm and residual connection. Takes seconds on a CPU. Raises ConfigError for n_layers below 1."""
    return tuple(
        residual_path(norm, residual, n_layers, seed) for residual in (True, False) for norm in ("pre", "post", "none")
    )


def residual_path(norm: Norm, residual: bool, n_layers: int = 24, seed: int = 0) -> ResidualPath:
    """One combination. The weights are those of core.build for this seed.

    It computes in float64 with eager attention. Without norms the scores become so large that the softmax has only one key. A fused
    kernel in float32 recomputes the weights from the logarithm of their sum, and then has a gradient of 10¹⁰ instead of 32.
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
        x = x.detach().requires_grad_()  # the embedding tables need no gradient
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
    """Mean cosine between two different positions of a text, over all texts of x [batch, pos, d_model]."""
    units = F.normalize(x, dim=-1)
    n = units.shape[1]
    cosines = units @ units.mT  # [batch, pos, pos]
    return (cosines.sum((-2, -1)) - n).mean() / (n * (n - 1))


def without_norms(model: Transformer) -> None:
    """Remove all norms from a model's layers. The final norm stays, so that logits keep their size."""
    assert model.decoder is not None
    for block in model.decoder.blocks:
        assert isinstance(block, Block)
        block.attn_norm = block.mlp_norm = nn.Identity()
