"""Rejects model components that a plan does not support, instead of counting them incorrectly."""

from __future__ import annotations

from ..errors import ConfigError
from ..model.config import ModelConfig


def rare_parts(config: ModelConfig) -> list[str]:
    """The components of a model that saved activations and diagrams do not support, in words."""
    parts = {
        "a mixture of experts": config.n_experts > 0,
        "multi-head latent attention": config.kv_rank > 0,
        "a soft-cap on scores": config.score_softcap is not None,
        "a soft-cap on logits": config.logit_softcap is not None,
        "attention sinks": config.sinks,
        "norms after the sublayers alone": config.norm_order == "after",
        "one norm for both sublayers": config.shared_norm,
        "a first layer without a norm": not config.first_attn_norm,
        "norms without weights": not config.norm_weight,
        "queries and keys normed at their full width or after they turn": config.qk_norm
        and config.qk_norm_place != "head",
        "layers that share their weights": config.shared_layers,
        "word vectors of another width than the stream": config.embed_width != config.d_model
        or config.unembed_width != config.d_model,
        "disentangled attention": config.position == "disentangled",
        "a bias of distance beside other positions": config.relative_bias,
        "a bias of distance of each layer's own": config.relative_per_layer,
        "layers that do not turn": bool(config.unturned_layers),
        "queries that grow with the text": config.query_growth != 0,
        "an activation that learns": config.activation == "xielu",
        "a squared activation": config.activation == "relu_squared",
        "an activation by a sigmoid": config.activation == "quick_gelu",
    }
    return [part for part, has in parts.items() if has]


def check_counted(config: ModelConfig, what: str) -> None:
    """Raises ConfigError if a model has an unsupported component. `what` is the beginning of the sentence."""
    if parts := rare_parts(config):
        raise ConfigError(f"{what} for a model with {parts[0]}. Its parameters, its operations and its runs are.")
