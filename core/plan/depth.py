"""with_layers(): the same model, deeper or shallower."""

from __future__ import annotations

from dataclasses import replace

from ..model.config import ModelConfig


def with_layers(config: ModelConfig, n: int) -> ModelConfig:
    """n layers in every stack the model has; which of them have a window, turn or have one MLP repeats as it was.

    One layer of each stack is enough to show every shape of a model: layers repeat. Raises ConfigError for n below 1.
    """
    depth = max(config.n_encoder_layers, config.n_decoder_layers)

    def repeated(layers: tuple[int, ...]) -> tuple[int, ...]:
        # As many steps as layers are named: a link may ask for 10^15 layers of a model that names none.
        return (
            tuple(start + layer for start in range(0, n, depth) for layer in layers if start + layer < n)
            if layers
            else ()
        )

    return replace(
        config,
        n_encoder_layers=n if config.n_encoder_layers else 0,
        n_decoder_layers=n if config.n_decoder_layers else 0,
        windowed_layers=None if config.windowed_layers is None else repeated(config.windowed_layers),
        unturned_layers=repeated(config.unturned_layers),
        dense_layers=repeated(config.dense_layers),
    )
