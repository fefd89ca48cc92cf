"""Memory of the fullest of several GPUs that share a model, and the traffic between them. Computed, not measured.

across  tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053): every matrix of the layers is split, each GPU has some of the
        heads and a part of every MLP and table, and the whole residual stream. Query heads stay with the keys and values that
        they share; if there are more GPUs than KV heads, several GPUs have the same KV head
layers  pipeline parallelism (Huang et al. 2019, arXiv:1811.06965): every GPU has ⌈layers / GPUs⌉ layers of each stack, and the
        first and last have the tables. The whole batch passes from GPU to GPU, so the temporary buffers are those of one GPU

Communication buffers (NCCL) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from ..errors import ConfigError
from ..model.config import ModelConfig
from .adapters import adapter_numbers
from .dtypes import MIXES, check_choice, weight_format
from .parameters import parameters
from .plan import Memory, memory_plan
from .training import master_bytes, optimizer_bytes
from .weights import layer_bytes, stored_weights
from .workload import Workload

Split = Literal["across", "layers"]


def on_cards(config: ModelConfig, work: Workload, cards: int, split: Split = "across") -> Memory:
    """Bytes of the fullest of `cards` GPUs; for one GPU those of memory_plan.

    Raises ConfigError as memory_plan does, and unless `cards` is from 1 to the number of heads (across) or layers (layers).
    """
    parts = fullest(config, cards, split)
    if cards == 1:
        return memory_plan(config, work)
    memories = [memory_plan(part, work) for part in parts]
    best = max(memories, key=lambda memory: memory.total)
    part = parts[memories.index(best)]
    if split == "layers":
        best = _one_end(config, part, work, best)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) in MIXES:
        return replace(best, weights=_mixed(config, part, work, cards, split))
    return best


def fullest(config: ModelConfig, cards: int, split: Split) -> tuple[ModelConfig, ...]:
    """The parts of a model that the fullest GPU may have, as configurations. Raises ConfigError as on_cards does."""
    check_choice("split", split, Split)
    if cards < 1:
        raise ConfigError(f"cards ({cards}) must be at least 1")
    if cards == 1:
        return (config,)
    if split == "across":
        if cards > config.n_heads:
            raise ConfigError(
                f"a model cut across {cards} cards needs a head for each, and this one has {config.n_heads}: take fewer cards"
            )
        return (_across(config, cards),)
    layers = min(n for _, n in config.stacks)
    if cards > layers:
        raise ConfigError(
            f"whole layers on {cards} cards need a layer for each, and this model has {layers}: take fewer cards"
        )
    return tuple(_stages(config, cards))


def traffic(config: ModelConfig, work: Workload, cards: int, split: Split = "across") -> int:
    """Bytes sent for each new token of each text; in an encoder, for each token of the text.

    across: each GPU takes part in an all-reduce after each sublayer, which in a ring sends 2 · (cards − 1) / cards of the residual
    stream (Patarasuk & Yuan 2009). layers: the residual stream is sent cards − 1 times. Raises ConfigError as on_cards does.
    """
    fullest(config, cards, split)
    stream = config.d_model * work.by
    if split == "layers":
        return (cards - 1) * stream
    n_layers = config.n_decoder_layers or config.n_encoder_layers
    sublayers = 3 if config.kind == "encoder-decoder" else 1 if config.parallel else 2
    return -(-2 * (cards - 1) * n_layers * sublayers * stream // cards)


def _across(config: ModelConfig, cards: int) -> ModelConfig:
    shared = config.n_heads // config.n_kv_heads  # query heads per KV head
    if cards <= config.n_kv_heads:
        sets = _share(config.n_kv_heads, cards)
        heads = sets * shared
    else:
        sets, heads = 1, _share(shared, cards // config.n_kv_heads)
    return replace(
        config,
        n_heads=heads,
        n_kv_heads=sets,
        d_ff=_share(config.d_ff, cards),
        d_dense=_share(config.d_dense, cards),
        d_shared=_share(config.d_shared, cards),
        vocab_size=_share(config.vocab_size, cards),
    )


def _stages(config: ModelConfig, cards: int) -> Iterator[ModelConfig]:
    """Stages of ⌈layers / cards⌉ layers that differ in their number of layers with a window or a dense MLP."""
    most = max(n for _, n in config.stacks)
    each = _share(most, cards)
    encoders, decoders = _share(config.n_encoder_layers, cards), _share(config.n_decoder_layers, cards)
    seen = set[tuple[int, int]]()
    named = bool(config.windowed_layers or config.dense_layers)
    for first in range(0, most if named else 1, each):
        first = min(first, most - each)
        windowed, dense = (
            _within(layers, first, each) for layers in (config.windowed_layers or (), config.dense_layers)
        )
        if (len(windowed), len(dense)) in seen:
            continue
        seen.add((len(windowed), len(dense)))
        yield replace(
            config,
            n_encoder_layers=encoders,
            n_decoder_layers=decoders,
            windowed_layers=None if config.windowed_layers is None else windowed,
            dense_layers=dense,
            unturned_layers=_within(config.unturned_layers, first, each),
        )


def _within(layers: tuple[int, ...], first: int, many: int) -> tuple[int, ...]:
    return tuple(layer - first for layer in layers if first <= layer < first + many)


def _one_end(config: ModelConfig, part: ModelConfig, work: Workload, memory: Memory) -> Memory:
    """The memory without the smaller table: a stage has the token table or the unembedding, unless they are tied."""
    if config.tied or config.head == "none":
        return memory
    counted = parameters(part)
    numbers = min(counted.source.token, counted.unembed)
    stored = stored_weights(part, dtype=work.dtype, weight_dtype=work.weight_dtype)
    lighter = min(stored.each["", "token"], stored.each["", "unembed"])
    if not work.training or work.rank:
        return replace(memory, weights=memory.weights - lighter)
    return replace(
        memory,
        weights=memory.weights - lighter,
        gradients=memory.gradients - numbers * work.by,
        masters=memory.masters - master_bytes(numbers, work.by),
        optimizer=memory.optimizer - optimizer_bytes(numbers, work.optimizer),
    )


def _mixed(config: ModelConfig, part: ModelConfig, work: Workload, cards: int, split: Split) -> int:
    """Weights of the fullest GPU in a mix of types, where the type of a matrix depends on its position in the whole model."""
    whole = stored_weights(config, dtype=work.dtype, weight_dtype=work.weight_dtype)
    adapters = adapter_numbers(part, work.rank) * work.by if work.rank else 0
    if split == "across":  # at the mean bits per parameter
        return -(-whole.total * parameters(part).total // parameters(config).total) + adapters
    lighter = 0 if config.tied or config.head == "none" else min(whole.each["", "token"], whole.each["", "unembed"])
    if config.shared_layers:
        return whole.total - lighter + adapters
    elsewhere = 0  # bytes of the layers of other GPUs
    for stack in layer_bytes(config, work.by, weight_format(work.weight_dtype)).values():
        each = _share(len(stack), cards)
        elsewhere += sum(stack) - max(sum(stack[first : first + each]) for first in range(0, len(stack), each))
    return whole.total - lighter - elsewhere + adapters  # including the norms of all layers, which are small


def _share(n: int, cards: int) -> int:
    return -(-n // cards)
