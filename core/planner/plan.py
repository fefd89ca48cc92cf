"""plan(): everything that is known about a transformer before it runs, in closed form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.config import ModelConfig
from core.errors import ConfigError

from .cache import KVCache, kv_cache
from .dtypes import bytes_of, check_activations, check_lengths
from .operations import Operation, decode, ideal_bytes, prefill, total_bytes, total_flops
from .parameters import Parameters, parameters
from .passes import Path, pass_moments
from .runs import weight_bytes
from .saved import Attention, SavedItem, check_attention, lesson_terms
from .training import (
    KeptLayers,
    Optimizer,
    Recompute,
    backward_work,
    check_training,
    kept_activations,
    master_bytes,
    optimizer_bytes,
)

PATHS: dict[str, Path] = {
    "eager": "eager",
    "spelled_out": "spelled_out",
    "efficient": "fused",
    "flash": "fused",
}


@dataclass(frozen=True)
class Memory:
    """Bytes by what they are for; they add up to `total`. What a phase does not have is 0."""

    weights: int
    masters: int  # float32 copies of 16-bit weights
    gradients: int
    optimizer: int
    activations: int  # kept for the backward pass
    kv_cache: int
    transient: int  # comes and goes: the widest moment of the pass, or of the backward pass

    @property
    def total(self) -> int:
        return sum(asdict(self).values())

    def to_dict(self) -> dict[str, int]:
        return asdict(self) | {"total": self.total}


@dataclass(frozen=True)
class Plan:
    """What one forward pass, or one step of training, takes. All counts are ints; memory is in bytes."""

    config: ModelConfig
    batch: int
    source_len: int
    target_len: int
    dtype: str
    training: bool
    attention: str
    parameters: Parameters
    memory: Memory
    layers: tuple[KeptLayers, ...]  # what autograd keeps, layer by layer, whether this is training or not
    outside: tuple[SavedItem, ...]  # and beside the layers
    lesson_terms: dict[str, int]
    logits: int  # scores of every word at every position
    kv_cache: KVCache
    prefill: tuple[Operation, ...]
    decode: tuple[Operation, ...]  # one more token for each text; empty for encoders
    step_flops: int  # of this phase: the forward pass, with training the backward pass and what is recomputed
    ideal_bytes: int  # the least memory traffic of the forward pass

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.memory.total

    @property
    def saved_per_layer(self) -> int:
        """Bytes that autograd keeps of the first layer."""
        return self.layers[0].per_layer

    @property
    def saved_items(self) -> tuple[SavedItem, ...]:
        """The same, tensor by tensor."""
        return self.layers[0].items

    @property
    def flops(self) -> int:
        """FLOPs of the forward pass."""
        return total_flops(self.prefill)

    @property
    def traffic(self) -> int:
        """Bytes that an unfused forward pass reads and writes."""
        return total_bytes(self.prefill)

    @property
    def decode_flops(self) -> int:
        return total_flops(self.decode)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with every total."""
        plain = asdict(self)
        plain["parameters"] = self.parameters.to_dict()
        plain["memory"] = self.memory.to_dict()
        plain["layers"] = [layers.to_dict() for layers in self.layers]
        plain["kv_cache"] = self.kv_cache.to_dict()
        plain["prefill"] = [op.to_dict() for op in self.prefill]
        plain["decode"] = [op.to_dict() for op in self.decode]
        totals = ("total", "saved_per_layer", "flops", "traffic", "decode_flops")
        return plain | {name: getattr(self, name) for name in totals}


def plan(
    config: ModelConfig,
    *,
    batch: int = 1,
    source_len: int,
    target_len: int = 0,
    dtype: object = "float32",
    training: bool = False,
    attention: Attention = "eager",
    optimizer: Optimizer = "adamw",
    recompute: Recompute = "none",
    dropout: bool = False,
    weight_dtype: object = None,
    kv_dtype: object = None,
) -> Plan:
    """Parameters, bytes, FLOPs and traffic of Transformer(config) on `batch` texts of these lengths.

    dtype        of weights and activations
    weight_dtype of weights alone, for inference: "int8" (None: dtype)
    kv_dtype     of the KV cache (None: dtype)
    attention    eager, spelled_out, efficient or flash: see core.planner.saved
    optimizer    sgd, momentum, adam or adamw; recompute: none, attention or full
    dropout      counts the masks that training with dropout keeps

    Raises ConfigError for anything that is not one of these, for lengths below 1, and for texts longer than the model's
    table of positions.
    """
    check_positions(config, source_len=source_len, target_len=target_len)
    kept = kept_activations(
        config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        by=bytes_of(dtype),
        attention=attention,
        dropout=dropout,
        recompute=recompute,
    )
    memory = memory_plan(
        config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        dtype=dtype,
        training=training,
        attention=attention,
        optimizer=optimizer,
        recompute=recompute,
        dropout=dropout,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
    )
    by, last = bytes_of(dtype), target_len or source_len
    memory_len = source_len if config.kind == "encoder-decoder" else 0
    forward = prefill(
        config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        dtype=dtype,
        weight_dtype=weight_dtype,
        attention=attention,
    )
    token = decode(
        config,
        batch=batch,
        cached=last,
        memory_len=memory_len,
        dtype=dtype,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
        attention=attention,
    )
    return Plan(
        config=config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        dtype=str(dtype).removeprefix("torch."),
        training=training,
        attention=attention,
        parameters=parameters(config),
        memory=memory,
        layers=kept.layers,
        outside=kept.outside,
        lesson_terms=lesson_terms(config, batch=batch, n=source_len, by=by),
        logits=batch * last * config.vocab_size * by if config.head != "none" else 0,
        kv_cache=kv_cache(config, batch=batch, n=last, memory_len=memory_len, dtype=kv_dtype or dtype),
        prefill=forward,
        decode=token,
        step_flops=_step_flops(forward, recompute) if training else total_flops(forward),
        ideal_bytes=ideal_bytes(config, forward, weight_dtype=weight_dtype or dtype),
    )


def memory_plan(
    config: ModelConfig,
    *,
    batch: int = 1,
    source_len: int,
    target_len: int = 0,
    dtype: object = "float32",
    training: bool = False,
    attention: Attention = "eager",
    optimizer: Optimizer = "adamw",
    recompute: Recompute = "none",
    dropout: bool = False,
    weight_dtype: object = None,
    kv_dtype: object = None,
) -> Memory:
    """The bytes of plan() alone, for any length: a table of positions that is too short is not looked at."""
    check_lengths(config.kind, batch=batch, source_len=source_len, target_len=target_len)
    check_activations(dtype)
    check_attention(attention)
    check_training(optimizer, recompute)
    by, weight_by = bytes_of(dtype), bytes_of(weight_dtype or dtype, "weight_dtype")
    n_parameters = parameters(config).total
    if training:
        if weight_by != by:
            raise ConfigError(
                f"weight_dtype ({weight_dtype!r}) is for inference: training updates its weights in dtype"
            )
        lengths = {"batch": batch, "source_len": source_len, "target_len": target_len}
        kept = kept_activations(config, **lengths, by=by, attention=attention, dropout=dropout, recompute=recompute)
        work = backward_work(config, **lengths, by=by, attention=attention, recompute=recompute)
        return Memory(
            weights=weight_bytes(config, by),
            masters=master_bytes(n_parameters, by),
            gradients=n_parameters * by,
            optimizer=optimizer_bytes(n_parameters, optimizer),
            activations=kept.total,
            kv_cache=0,
            transient=work,
        )
    moments, _ = pass_moments(
        config,
        batch=batch,
        source_len=source_len,
        target_len=target_len,
        by=by,
        padded=False,
        keep="",
        path=PATHS[attention],
        all_logits=True,
        traced=False,
    )
    memory_len = source_len if config.kind == "encoder-decoder" else 0
    cache = kv_cache(config, batch=batch, n=target_len or source_len, memory_len=memory_len, dtype=kv_dtype or dtype)
    return Memory(
        weights=weight_bytes(config, weight_by),
        masters=0,
        gradients=0,
        optimizer=0,
        activations=0,
        kv_cache=cache.total,
        transient=max(moments.values()),
    )


def check_positions(config: ModelConfig, *, source_len: int, target_len: int) -> None:
    """Raises ConfigError where a text is longer than the model's table of positions."""
    for name, value in (("source_len", source_len), ("target_len", target_len)):
        if config.has_position_table and value > config.n_ctx:
            raise ConfigError(
                f"{name} ({value:,}) is more than n_ctx ({config.n_ctx:,}): {config.position} positions are a table of "
                f"{config.n_ctx:,} rows. Shorten the text, raise n_ctx, or use rotary, ALiBi or relative positions."
            )


def _step_flops(forward: tuple[Operation, ...], recompute: Recompute) -> int:
    """Forward, twice as much backward (a product for each operand's gradient), and what is worked out again."""
    once = total_flops(forward)
    if recompute == "full":
        return 3 * once + sum(op.times * op.flops for op in forward if op.stack)
    if recompute == "attention":
        again = sum(op.times * op.flops for op in forward if op.name.endswith(("scores", "weights × v")))
        return 3 * once + again
    return 3 * once
