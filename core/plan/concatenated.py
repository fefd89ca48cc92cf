"""Parameters of a model whose positions are put beside its words, not added to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model.config import ModelConfig
from .parameters import parameters


@dataclass(frozen=True)
class Concatenated:
    """Parameters of all layers with their last norms, without embeddings and head."""

    added: int  # as the model is: a position is added to the word
    beside: int  # the position has as many numbers of its own, so that the stream is twice as wide
    width: int  # of the stream as it is


def concatenated(config: ModelConfig) -> Concatenated:
    """Every matrix that reads from the stream or writes into it is twice as large; heads and MLP are as wide as before."""
    wide = replace(config, d_model=2 * config.d_model, d_head=config.d_head, d_v=config.d_v, d_embed=0, d_unembed=0)
    added, beside = (found.encoder.total + found.decoder.total for found in (parameters(config), parameters(wide)))
    return Concatenated(added, beside, config.d_model)
