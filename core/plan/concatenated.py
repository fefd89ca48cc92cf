"""Parameters of a model that concatenates position vectors to token vectors instead of adding them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model.config import ModelConfig
from .parameters import parameters


@dataclass(frozen=True)
class Concatenated:
    """Parameters of all layers and final norms, without embeddings and head."""

    added: int  # of the model as it is
    beside: int  # with concatenated position vectors of d_model numbers, so that the residual stream is twice as wide
    width: int  # d_model of the model as it is


def concatenated(config: ModelConfig) -> Concatenated:
    """Matrices that read from or write to the residual stream become twice as large; the widths of heads and MLP do not change."""
    wide = replace(config, d_model=2 * config.d_model, d_head=config.d_head, d_v=config.d_v, d_embed=0, d_unembed=0)
    added, beside = (count.encoder.total + count.decoder.total for count in (parameters(config), parameters(wide)))
    return Concatenated(added, beside, config.d_model)
