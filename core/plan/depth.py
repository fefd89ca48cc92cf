"""with_layers(): the same model, deeper or shallower."""

from __future__ import annotations

from dataclasses import replace

from ..model.config import ModelConfig


def with_layers(config: ModelConfig, n: int) -> ModelConfig:
    """n layers in every stack the model has; which of them have a window repeats as it was.

    One layer of each stack is enough to show every shape of a model: layers repeat. Raises ConfigError for n below 1.
    """
    windowed = config.windowed_layers
    if windowed is not None:
        depth = max(config.n_encoder_layers, config.n_decoder_layers)
        windowed = tuple(layer for layer in range(n) if layer % depth in windowed)
    return replace(
        config,
        n_encoder_layers=n if config.n_encoder_layers else 0,
        n_decoder_layers=n if config.n_decoder_layers else 0,
        windowed_layers=windowed,
    )
