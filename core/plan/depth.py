"""with_layers(): the same model with another number of layers."""

from __future__ import annotations

from dataclasses import replace

from ..model.config import ModelConfig


def with_layers(config: ModelConfig, n: int) -> ModelConfig:
    """The model with n layers in every stack. The pattern of windows, rotation and experts repeats. Raises ConfigError for n below 1."""

    def repeated(layers: tuple[int, ...]) -> tuple[int, ...]:
        if not layers:  # a link may request 10^15 layers of a model that lists none
            return ()
        return tuple(start + i for start in range(0, n, config.n_layers) for i in layers if start + i < n)

    return replace(
        config,
        n_encoder_layers=n if config.n_encoder_layers else 0,
        n_decoder_layers=n if config.n_decoder_layers else 0,
        windowed_layers=None if config.windowed_layers is None else repeated(config.windowed_layers),
        unturned_layers=repeated(config.unturned_layers),
        dense_layers=repeated(config.dense_layers),
    )
