"""plan(): everything that is known about a transformer before it runs, in closed form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .. import frames
from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from .adapters import adapted, adapter_numbers, unpacked
from .cache import KVCache, kv_cache
from .dtypes import weight_format
from .operations import Operation, decode, ideal_bytes, prefill, total_bytes, total_flops
from .parameters import Parameters, parameters
from .peak import Path, pass_moments
from .pieces import piece_moments
from .saved import SavedItem, lesson_terms
from .training import KeptLayers, backward_work, kept_activations, master_bytes, optimizer_bytes
from .weights import stored_weights
from .workload import Workload, as_workload

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
    transient: int  # temporary buffers: the widest moment of the pass, or of the backward pass

    @property
    def total(self) -> int:
        return sum(asdict(self).values())

    def to_dict(self) -> dict[str, int]:
        return asdict(self) | {"total": self.total}


@dataclass(frozen=True)
class Plan:
    """The cost of one forward pass, or of one step of training. All counts are ints; memory is in bytes."""

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
    logits: int  # scores of every word at the positions that are kept: of a run for writing the last of each text
    kv_cache: KVCache
    prefill: tuple[Operation, ...]  # with words scored at every position
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
        return self.layers[0].per_layer if self.layers else 0

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

    def to_frame(self) -> frames.DataFrame:
        """The operations of the forward pass, a row each, with their FLOPs and bytes. Needs pandas."""
        rows = [op.to_dict() for op in self.prefill]
        return frames.of_columns({name: [row[name] for row in rows] for name in rows[0]})

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


def plan(config: ModelConfig, workload: Workload | None = None, **options: Any) -> Plan:
    """Parameters, bytes, FLOPs and traffic of Transformer(config) on a workload, or on one whose fields `options` name:

    plan(config, batch=32, source_len=50, dtype="bfloat16", training=True). Raises ConfigError for what Workload does not
    know, for lengths below 1, and for texts longer than the model's table of positions.
    """
    work = as_workload(workload, options)
    check_positions(config, source_len=work.source_len, target_len=work.target_len)
    work.check(config)
    kept = kept_activations(config, work)
    forward = prefill(config, work)
    last, memory_len = work.last_len, work.memory_len(config)
    token = decode(
        config,
        batch=work.batch,
        cached=last,
        memory_len=memory_len,
        dtype=work.dtype,
        weight_dtype=work.weight_dtype,
        kv_dtype=work.kv_dtype,
        attention=work.attention,
    )
    return Plan(
        config=config,
        batch=work.batch,
        source_len=work.source_len,
        target_len=work.target_len,
        dtype=dtype_name(work.dtype),
        training=work.training,
        attention=work.attention,
        parameters=parameters(config),
        memory=memory_plan(config, work),
        layers=kept.layers,
        outside=kept.outside,
        lesson_terms=lesson_terms(config, work),
        logits=work.batch * work.logit_positions(config) * config.vocab_size * work.by if config.head != "none" else 0,
        kv_cache=kv_cache(config, batch=work.batch, n=last, memory_len=memory_len, dtype=work.kv_dtype or work.dtype),
        prefill=forward,
        decode=token,
        step_flops=_step_flops(config, work, forward) if work.training else total_flops(forward),
        ideal_bytes=ideal_bytes(forward),
    )


def memory_plan(config: ModelConfig, workload: Workload | None = None, **options: Any) -> Memory:
    """The bytes of plan() alone, for any length: a table of positions that is too short is not looked at."""
    work = as_workload(workload, options)
    work.check(config)
    stored = stored_weights(config, dtype=work.dtype, weight_dtype=work.weight_dtype).total
    if work.training:
        trained = adapter_numbers(config, work.rank) if work.rank else parameters(config).total
        return Memory(
            weights=stored + (trained * work.by if work.rank else 0),
            masters=master_bytes(trained, work.by),
            gradients=trained * work.by,
            optimizer=optimizer_bytes(trained, work.optimizer),
            activations=kept_activations(config, work).total,
            kv_cache=0,
            transient=backward_work(config, work),
        )
    cache = kv_cache(
        config,
        batch=work.batch,
        n=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.kv_dtype or work.dtype,
    )
    return Memory(
        weights=stored,
        masters=0,
        gradients=0,
        optimizer=0,
        activations=0,
        kv_cache=cache.total,
        transient=max(run_moments(config, work).values()),
    )


def run_moments(config: ModelConfig, work: Workload) -> dict[str, int]:
    """Bytes beside weights and cache at the moments of a run that may be the widest, by name: "decoder MLP", "head" ..."""
    path = PATHS[work.attention]
    if work.piece:
        moments = piece_moments(config, work, path)
    else:
        all_logits = work.logit_positions(config) > 1
        moments, _ = pass_moments(config, work, keep="", path=path, all_logits=all_logits, traced=False)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) == "nf4":
        # bitsandbytes multiplies the tokens of a prompt by a matrix that it has unpacked.
        more = unpacked(config, work.by)
        moments = {name: value + (0 if name == "head" else more) for name, value in moments.items()}
    return moments


def check_positions(config: ModelConfig, *, source_len: int, target_len: int) -> None:
    """Raises ConfigError where a text is longer than the model's table of positions."""
    for name, value in (("source_len", source_len), ("target_len", target_len)):
        if config.has_position_table and value > config.n_ctx:
            raise ConfigError(
                f"{name} ({value:,}) is more than n_ctx ({config.n_ctx:,}): {config.position} positions are a table of "
                f"{config.n_ctx:,} rows. Shorten the text, raise n_ctx, or use rotary, ALiBi or relative positions."
            )


def _step_flops(config: ModelConfig, work: Workload, forward: tuple[Operation, ...]) -> int:
    """Forward, twice as much backward (a product for each operand's gradient), and whatever is computed again.

    Frozen weights have no gradient, so that their products go back once; adapters are products of their own.
    """
    if work.rank:
        return _adapter_step_flops(config, work, forward)
    once, recompute = total_flops(forward), work.recompute
    if recompute == "full":
        return 3 * once + sum(op.times * op.flops for op in forward if op.stack)
    if recompute == "attention":
        again = sum(op.times * op.flops for op in forward if op.name.endswith(("scores", "weights × v")))
        return 3 * once + again
    return 3 * once


def _adapter_step_flops(config: ModelConfig, work: Workload, forward: tuple[Operation, ...]) -> int:
    """The same where adapters are trained: whatever has weights goes back once, attention twice, an adapter three times forward."""
    once = total_flops(forward)
    frozen = sum(op.times * op.flops for op in forward if op.weights)
    lengths: dict[str, tuple[int, int]] = {name: (n, memory_len) for name, _, n, memory_len in work.stacks(config)}
    adapters = 0
    for matrix in adapted(config):
        n, memory_len = lengths[matrix.stack]
        rows = memory_len if matrix.name in ("cross attn k", "cross attn v") else n
        times = matrix.times * (matrix.n_layers if config.shared_layers else 1)
        adapters += times * 2 * work.batch * rows * work.rank * (matrix.rows + matrix.width)
    again = 0
    if work.recompute == "full":
        again = adapters + sum(op.times * op.flops for op in forward if op.stack)
    elif work.recompute == "attention":
        again = sum(op.times * op.flops for op in forward if op.name.endswith(("scores", "weights × v")))
    return 3 * once - frozen + 3 * adapters + again
