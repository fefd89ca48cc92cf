"""Memory of training besides the weights: gradients, optimizer state, saved activations and temporary buffers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..model.config import ModelConfig
from .adapters import adapter_work, kept_frozen, kept_with_adapters
from .depth import with_layers
from .dtypes import FLOAT, INT
from .saved import SavedItem, saved_head, saved_layer, saved_outside
from .uncounted import rare_parts
from .workload import Optimizer, Workload

STATES = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}  # float32 numbers per parameter


@dataclass(frozen=True)
class Kept:
    """Saved activations of the whole model. `layers` groups the layers of each stack that save the same tensors."""

    layers: tuple[KeptLayers, ...]
    outside: tuple[SavedItem, ...]

    @property
    def total(self) -> int:
        return sum(layers.total for layers in self.layers) + sum(item.bytes for item in self.outside)


@dataclass(frozen=True)
class KeptLayers:
    """`times` layers of one stack that save the same tensors; `items` are those of one layer."""

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


def optimizer_bytes(n_parameters: int, optimizer: Optimizer) -> int:
    """float32 averages: of the gradient for momentum, of it and of its square for Adam (Kingma & Ba 2015)."""
    return STATES[optimizer] * FLOAT * n_parameters


def master_bytes(n_parameters: int, by: int) -> int:
    """The float32 master copy of 16-bit weights (Micikevicius et al. 2018); 0 for float32 weights."""
    return FLOAT * n_parameters if by < FLOAT else 0


def kept_activations(config: ModelConfig, workload: Workload) -> Kept:
    """Activations that autograd saves in a forward pass, without the loss.

    With recompute "attention", scores and weights are freed and recomputed; with "full", only the input of each layer is saved
    (Korthikanti et al. 2022, arXiv:2205.05198, §5). Empty for models that core.plan.uncounted rejects for training.
    """
    layers: list[KeptLayers] = []
    outside: list[SavedItem] = []
    if rare_parts(config):
        return Kept((), ())
    for name, n_layers, n, memory_len in workload.stacks(config):
        windowed = config.n_windowed(n_layers)
        for times, window in ((n_layers - windowed, None), (windowed, config.window)):
            causal = name == "decoder" and config.causal
            items = saved_layer(config, workload, causal=causal, n=n, memory_len=memory_len, window=window)
            if workload.rank:
                items = kept_with_adapters(items, config, workload, n=n, memory_len=memory_len)
            if times:
                layers.append(KeptLayers(name, times, _recomputed(config, workload, items, n)))
        feeds = config.kind == "encoder-decoder" and name == "encoder"
        outside += saved_outside(config, workload, name=name, n=n, feeds_decoder=feeds)
    outside += saved_head(config, positions=workload.batch * workload.last_len, by=workload.by)
    return Kept(tuple(layers), kept_frozen(outside) if workload.rank else tuple(outside))


def _recomputed(config: ModelConfig, workload: Workload, items: tuple[SavedItem, ...], n: int) -> tuple[SavedItem, ...]:
    if workload.recompute == "full":
        stream = workload.batch * n * config.d_model * workload.by
        return (SavedItem("layer input", stream, "the layer is run again from it"),)
    if workload.recompute == "attention":
        return tuple(item for item in items if not any(what in item.name for what in (" weights", " mask", " buckets")))
    return items


def backward_work(config: ModelConfig, workload: Workload) -> int:
    """Upper bound of the temporary buffers of the backward pass, besides gradients and saved activations."""
    return max(backward_moments(config, workload).values())


def backward_moments(config: ModelConfig, workload: Workload) -> dict[str, int]:
    """Upper bounds of the bytes, besides gradients and saved activations, at the possible peaks of a backward pass.

    loss: logits, their log-probabilities and the gradients of both. layer: the largest one, including its recomputed activations.
    table: the gradient of a token table while it is accumulated, unless only adapters are trained.
    """
    batch, by, n = workload.batch, workload.by, workload.last_len
    words = config.vocab_size if config.head != "none" else config.d_model
    logits = batch * n * words * by
    longest = max(workload.source_len, workload.target_len)
    tokens = batch * longest
    heads = tokens * config.n_heads * config.d_head * by
    stream = max(tokens * config.d_model * FLOAT, 2 * heads)  # norms compute in float32
    hidden = tokens * config.d_ff * by
    cells = max(n, workload.source_len) * longest
    maps = batch * config.n_heads * cells * by if workload.attention in ("eager", "spelled_out") else 0
    layer = 6 * stream + max((3 if config.gated else 2) * hidden, 2 * maps + 2 * maps // by + 4 * heads)
    if config.position in ("relative", "alibi") or config.window is not None:  # distances, buckets and the bias
        distances = 53 if config.position == "relative" else 2 * INT + 2
        layer = max(layer, 6 * stream + maps + heads + cells * (distances + FLOAT * config.n_heads))
    uses = len(config.stacks) + (1 if config.tied and config.head != "none" else 0)
    table = config.vocab_size * config.d_model * by
    added_up = table if uses > 1 else 0  # the gradient of the first use of a shared table
    weight = config.d_model * max(config.d_ff, config.n_heads * config.d_head) * by  # a gradient before accumulation
    if workload.recompute != "none":
        whole = kept_activations(with_layers(config, 1), replace(workload, recompute="none", dropout=False))
        layer += max(layers.per_layer for layers in whole.layers)
    if workload.rank:  # tables have no gradient
        return {"loss": max(3 * logits, 2 * logits + stream), "layer": layer + adapter_work(config, workload)}
    return {
        "loss": max(3 * logits, 2 * logits + table + stream),
        "layer": layer + added_up + weight,
        "table": 2 * added_up + table + stream,
    }
