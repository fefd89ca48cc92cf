"""What training holds beside the weights: gradients, the optimizer's state, kept activations, and the work of the moment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from core.config import ModelConfig
from core.errors import ConfigError

from .depth import with_layers
from .saved import Attention, SavedItem, saved_head, saved_layer, saved_outside

Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Recompute = Literal["none", "attention", "full"]

STATES: dict[str, int] = {
    "sgd": 0,
    "momentum": 1,
    "adam": 2,
    "adamw": 2,
}  # float32 numbers for each parameter
FLOAT = 4


@dataclass(frozen=True)
class Kept:
    """What autograd keeps of the whole model. `layers` names each stack's layers by what they look like."""

    layers: tuple[KeptLayers, ...]
    outside: tuple[SavedItem, ...]

    @property
    def total(self) -> int:
        return sum(layers.total for layers in self.layers) + sum(item.bytes for item in self.outside)


@dataclass(frozen=True)
class KeptLayers:
    """`times` layers of one stack that keep the same; `items` are one layer's."""

    stack: str
    times: int
    items: tuple[SavedItem, ...]

    @property
    def per_layer(self) -> int:
        return sum(item.bytes for item in self.items)

    @property
    def total(self) -> int:
        return self.times * self.per_layer

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"per_layer": self.per_layer, "total": self.total}


def check_training(optimizer: str, recompute: str) -> None:
    """Raises ConfigError for an optimizer or a way to recompute that is not known here."""
    for name, value, allowed in (("optimizer", optimizer, Optimizer), ("recompute", recompute, Recompute)):
        if value not in get_args(allowed):
            raise ConfigError(f"{name} ({value!r}) must be one of {', '.join(map(repr, get_args(allowed)))}")


def optimizer_bytes(n_parameters: int, optimizer: Optimizer) -> int:
    """float32 averages: one of the gradient for momentum, one of it and one of its square for Adam (Kingma & Ba 2015)."""
    return STATES[optimizer] * FLOAT * n_parameters


def master_bytes(n_parameters: int, by: int) -> int:
    """The float32 copy that 16-bit weights are updated in (Micikevicius et al. 2018); none for float32 weights."""
    return FLOAT * n_parameters if by < FLOAT else 0


def kept_activations(
    config: ModelConfig,
    *,
    batch: int,
    source_len: int,
    target_len: int = 0,
    by: int = 4,
    attention: Attention = "eager",
    dropout: bool = False,
    recompute: Recompute = "none",
) -> Kept:
    """What autograd keeps of a forward pass, the loss not counted.

    recompute "attention" lets go of scores and weights and works them out again; "full" keeps the input of each layer
    alone (Korthikanti et al. 2022, arXiv:2205.05198, §5).
    """
    layers: list[KeptLayers] = []
    outside: list[SavedItem] = []
    memory_len = n = 0
    for name, n_layers in config.stacks:
        n = source_len if name == config.stacks[0][0] else target_len
        windowed = sum(config.is_windowed(layer) for layer in range(n_layers))
        for times, window in ((n_layers - windowed, None), (windowed, config.window)):
            items = saved_layer(
                config,
                causal=name == "decoder",
                batch=batch,
                n=n,
                memory_len=memory_len,
                by=by,
                attention=attention,
                window=window,
                dropout=dropout,
            )
            if times:
                layers.append(KeptLayers(name, times, _recomputed(config, items, batch, n, by, recompute)))
        feeds = config.kind == "encoder-decoder" and name == "encoder"
        outside += saved_outside(config, name=name, batch=batch, n=n, by=by, feeds_decoder=feeds)
        memory_len = n
    outside += saved_head(config, positions=batch * n, by=by)
    return Kept(tuple(layers), tuple(outside))


def _recomputed(
    config: ModelConfig, items: tuple[SavedItem, ...], batch: int, n: int, by: int, recompute: Recompute
) -> tuple[SavedItem, ...]:
    if recompute == "full":
        return (SavedItem("layer input", batch * n * config.d_model * by, "the layer is run again from it"),)
    if recompute == "attention":
        return tuple(item for item in items if not any(what in item.name for what in (" weights", " mask", " buckets")))
    return items


def backward_work(
    config: ModelConfig,
    *,
    batch: int,
    source_len: int,
    target_len: int = 0,
    by: int = 4,
    attention: Attention = "eager",
    recompute: Recompute = "none",
) -> int:
    """An upper bound on what comes and goes while the backward pass runs, beside gradients and kept activations.

    Either the loss (scores, their log-probabilities and the gradient of both), or the widest layer, or the gradient of a
    token table on its way to be added up. With recompute a layer's activations are back for as long as it lasts.
    """
    n = target_len or source_len
    words = config.vocab_size if config.head != "none" else config.d_model
    logits = batch * n * words * by
    longest = max(source_len, target_len)
    tokens = batch * longest
    heads = tokens * config.n_heads * config.d_head * by
    stream = max(tokens * config.d_model * FLOAT, 2 * heads)  # norms work in float32
    hidden = tokens * config.d_ff * by
    cells = max(n, source_len) * longest
    maps = batch * config.n_heads * cells * by if attention in ("eager", "spelled_out") else 0
    layer = 6 * stream + max((3 if config.gated else 2) * hidden, 2 * maps + 2 * maps // by + 4 * heads)
    if config.position in ("relative", "alibi") or config.window is not None:  # distances, buckets, bias in the making
        distances = 53 if config.position == "relative" else 2 * 8 + 2
        layer = max(layer, 6 * stream + maps + heads + cells * (distances + FLOAT * config.n_heads))
    uses = len(config.stacks) + (1 if config.tied and config.head != "none" else 0)
    table = config.vocab_size * config.d_model * by
    added_up = table if uses > 1 else 0  # the first part of a shared table's gradient waits for the others
    weight = (
        config.d_model * max(config.d_ff, config.n_heads * config.d_head) * by
    )  # a new gradient, before it is added
    if recompute != "none":
        whole = kept_activations(
            with_layers(config, 1),
            batch=batch,
            source_len=source_len,
            target_len=target_len,
            by=by,
            attention=attention,
        )
        layer += max(layers.per_layer for layers in whole.layers)
    loss = max(3 * logits, 2 * logits + table + stream)
    return max(loss, layer + added_up + weight, 2 * added_up + table + stream)
