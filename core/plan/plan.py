"""plan(): parameters, memory, FLOPs and least time of a model in closed form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .. import dataframes
from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from .operations import Device, Operation, ideal_bytes, next_token, prefill, prompt, total_bytes, total_flops
from .parameters import Parameters, parameters, stored_weights
from .peak import Path, pass_moments, piece_moments
from .training import (
    KeptLayers,
    SavedItem,
    adapted,
    adapter_numbers,
    backward_work,
    kept_activations,
    lesson_terms,
    master_bytes,
    optimizer_bytes,
    unpacked,
)
from .workload import KVCache, Workload, as_workload, cache_of, weight_format

PATHS: dict[str, Path] = {"eager": "eager", "spelled_out": "spelled_out", "efficient": "fused", "flash": "fused"}


@dataclass(frozen=True)
class Memory:
    """Bytes by purpose, 0 for those that do not apply."""

    weights: int
    masters: int  # float32 copies of 16-bit weights
    gradients: int
    optimizer: int
    activations: int  # saved for the backward pass
    kv_cache: int
    transient: int  # temporary buffers at the peak of the forward pass, or in training of the backward pass

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
    layers: tuple[KeptLayers, ...]  # saved activations layer by layer, also without training
    outside: tuple[SavedItem, ...]  # saved activations outside the layers
    lesson_terms: dict[str, int]
    logits: int  # bytes of the logits at the positions of the workload
    kv_cache: KVCache
    prefill: tuple[Operation, ...]  # with logits at every position
    decode: tuple[Operation, ...]  # one more token for each text; empty for encoders
    step_flops: int  # forward pass, and in training the backward pass and recomputation
    ideal_bytes: int  # the least memory traffic of the forward pass

    @property
    def total(self) -> int:
        """Bytes of all memory."""
        return self.memory.total

    @property
    def saved_per_layer(self) -> int:
        """Bytes of the saved activations of the first layer."""
        return self.layers[0].per_layer if self.layers else 0

    @property
    def saved_items(self) -> tuple[SavedItem, ...]:
        """Saved activations of the first layer, tensor by tensor."""
        return self.layers[0].items

    @property
    def flops(self) -> int:
        """FLOPs of the forward pass."""
        return total_flops(self.prefill)

    @property
    def traffic(self) -> int:
        """Bytes read and written by an unfused forward pass."""
        return total_bytes(self.prefill)

    @property
    def decode_flops(self) -> int:
        return total_flops(self.decode)

    def to_frame(self) -> dataframes.DataFrame:
        """The operations of the forward pass as rows, with their FLOPs and bytes. Requires pandas."""
        rows = [op.to_dict() for op in self.prefill]
        return dataframes.of_columns({name: [row[name] for row in rows] for name in rows[0]})

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
    """Parameters, bytes, FLOPs and traffic of Transformer(config) on a workload, or on one whose fields `options` name.

    Example: plan(config, batch=32, source_len=50, dtype="bfloat16", training=True). Raises ConfigError as Workload.check does, and for
    texts longer than the model's table of positions.
    """
    work = as_workload(workload, options)
    check_positions(config, source_len=work.source_len, target_len=work.target_len)
    work.check(config)
    kept = kept_activations(config, work)
    forward = prefill(config, work)
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
        kv_cache=cache_of(config, work),
        prefill=forward,
        decode=next_token(config, work),
        step_flops=_step_flops(config, work, forward) if work.training else total_flops(forward),
        ideal_bytes=ideal_bytes(forward),
    )


def memory_plan(config: ModelConfig, workload: Workload | None = None, **options: Any) -> Memory:
    """Only the bytes of plan(), also for texts longer than the model's table of positions."""
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
    return Memory(
        weights=stored,
        masters=0,
        gradients=0,
        optimizer=0,
        activations=0,
        kv_cache=cache_of(config, work).total,
        transient=max(run_moments(config, work).values()),
    )


def run_moments(config: ModelConfig, work: Workload) -> dict[str, int]:
    """Bytes besides weights and cache at the possible peaks of a run, by name: "decoder MLP", "head" ..."""
    path = PATHS[work.attention]
    if work.piece:
        moments = piece_moments(config, work, path)
    else:
        all_logits = work.logit_positions(config) > 1
        moments, _ = pass_moments(config, work, keep="", path=path, all_logits=all_logits, traced=False)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) == "nf4":
        # bitsandbytes dequantizes a matrix before its product with a prompt.
        more = unpacked(config, work.by)
        moments = {name: value + (0 if name == "head" else more) for name, value in moments.items()}
    return moments


def check_positions(config: ModelConfig, *, source_len: int, target_len: int) -> None:
    """Raises ConfigError for a text longer than the model's table of positions."""
    for name, value in (("source_len", source_len), ("target_len", target_len)):
        if config.has_position_table and value > config.n_ctx:
            raise ConfigError(
                f"{name} ({value:,}) is more than n_ctx ({config.n_ctx:,}): {config.position} positions are a table of "
                f"{config.n_ctx:,} rows. Shorten the text, raise n_ctx, or use rotary, ALiBi or relative positions."
            )


def _step_flops(config: ModelConfig, work: Workload, forward: tuple[Operation, ...]) -> int:
    """Forward pass, twice as much for the backward pass (a product for the gradient of each operand), and recomputation.

    Frozen weights have no gradient, so their products count once in the backward pass. Adapters add products.
    """
    adapters = _adapter_flops(config, work)
    frozen = sum(op.times * op.flops for op in forward if op.weights) if work.rank else 0
    again = 0
    if work.recompute == "full":
        again = adapters + sum(op.times * op.flops for op in forward if op.stack)
    elif work.recompute == "attention":
        again = sum(op.times * op.flops for op in forward if op.name.endswith(("scores", "weights × v")))
    return 3 * (total_flops(forward) + adapters) - frozen + again


def _adapter_flops(config: ModelConfig, work: Workload) -> int:
    """FLOPs of all adapters in a forward pass; 0 without adapters."""
    lengths: dict[str, tuple[int, int]] = {name: (n, memory_len) for name, _, n, memory_len in work.stacks(config)}
    flops = 0
    for matrix in adapted(config) if work.rank else ():
        n, memory_len = lengths[matrix.stack]
        rows = memory_len if matrix.name in ("cross attn k", "cross attn v") else n
        times = matrix.times * (matrix.n_layers if config.shared_layers else 1)
        flops += times * 2 * work.batch * rows * work.rank * (matrix.rows + matrix.width)
    return flops


STEPS_OF_MAP = (" scale", " soft-cap", " bias", " mask", " softmax")
Limit = Literal["compute", "memory"]


@dataclass(frozen=True)
class Speed:
    """Seconds at the device's full rates. A share is the used part of its arithmetic during that time, from 0 to 1.

    prompt_*   prefill up to the first new token. In training, prompt_seconds is 0, and limit and share are those of the step
    token_*    one more token of every text after those of the workload; 0 for encoders and training. The throughput is
               batch / token_seconds tokens per second
    *_limit    arithmetic or memory, whichever takes more of the time
    weights_read, cache_read   bytes that one GPU reads for that token
    """

    prompt_seconds: float
    token_seconds: float
    prompt_limit: Limit
    token_limit: Limit
    prompt_share: float
    token_share: float
    weights_read: int
    cache_read: int
    step_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Part:
    """FLOPs and memory traffic of a product with all its repetitions."""

    operation: Operation
    flops: float
    bytes: float

    def seconds(self, device: Device) -> float:
        return max(self.compute_seconds(device), self.memory_seconds(device))

    def compute_seconds(self, device: Device) -> float:
        return self.flops / (device.teraflops * 1e12)

    def memory_seconds(self, device: Device) -> float:
        return self.bytes / (device.gigabytes_per_second * 1e9)


def speed(config: ModelConfig, work: Workload, device: Device, cards: int = 1) -> Speed:
    """The least time of a workload on one device or several that share every product (core.plan.verdict: across).

    Communication is not counted. Rates are those of 16-bit arithmetic, and of float32 on Apple's chips; on other devices float32
    takes longer than this. Raises ConfigError as memory_plan does, and for fewer than one GPU.
    """
    if cards < 1:
        raise ConfigError(f"cards ({cards}) must be at least 1")
    if work.training:
        return _training(config, work, device, cards)
    prefill_time = _timed(reading(config, work), device, cards)
    token_parts = tuple(writing(config, work))
    token_time = _timed(token_parts, device, cards)
    weights = sum(part.operation.times * part.operation.weights for part in token_parts if part.bytes)
    return Speed(
        prompt_seconds=prefill_time.seconds,
        token_seconds=token_time.seconds,
        prompt_limit=prefill_time.limit,
        token_limit=token_time.limit,
        prompt_share=prefill_time.share,
        token_share=token_time.share,
        weights_read=-(-weights // cards),
        cache_read=-(-cache_of(config, work).total // min(cards, config.n_kv_heads)),
    )


def reading(config: ModelConfig, work: Workload) -> Iterator[Part]:
    """The products of a prompt. In chunked prefill every chunk reads the weights again, and the earlier keys and values."""
    passes = -(-work.batch * work.source_len // work.piece) if work.piece else 1
    queries = work.batch * work.source_len * config.n_heads * config.d_head * work.by
    for op in prompt(config, work):
        again = 0.0
        if passes > 1 and op.stack and op.name != "embedding":  # the head runs once, at the end
            again = (passes - 1) * (op.weights + _cached(op, queries) / 2)
        yield Part(op, op.times * _computed(op), op.times * (_moved(op) + again))


def writing(config: ModelConfig, work: Workload) -> Iterator[Part]:
    """The products of one new token of each text; none for an encoder."""
    for op in next_token(config, work):
        yield Part(op, op.times * _computed(op), op.times * _moved(op))


@dataclass(frozen=True)
class _Timed:
    seconds: float
    limit: Limit
    share: float


def _timed(parts: Iterable[Part], device: Device, cards: int) -> _Timed:
    flops = compute = memory = 0.0
    for part in parts:
        seconds = part.seconds(device) / cards
        flops += part.flops
        if part.compute_seconds(device) > part.memory_seconds(device):
            compute += seconds
        else:
            memory += seconds
    seconds = compute + memory
    share = flops / cards / (device.teraflops * 1e12) / seconds if seconds else 0.0
    return _Timed(seconds, "compute" if compute > memory else "memory", min(1.0, share))


def _training(config: ModelConfig, work: Workload, device: Device, cards: int) -> Speed:
    """Each product once forward and once for the gradient of each trained operand, then the update of the parameters."""
    parts: list[Part] = []
    for op in prompt(config, work):
        times = 2 if work.rank and op.weights else 3
        if (work.recompute == "full" and op.stack) or (
            work.recompute == "attention" and op.name.endswith(("scores", "weights × v", "fused"))
        ):
            times += 1
        parts.append(Part(op, times * op.times * _computed(op), times * op.times * _moved(op)))
    memory = memory_plan(config, work)
    trained = adapter_numbers(config, work.rank) * work.by if work.rank else memory.weights
    # Gradients are read; states, masters and weights are read and written.
    update = memory.gradients + 2 * (memory.optimizer + memory.masters + trained)
    parts.append(Part(Operation("", "update", 1, 0, 0, update, 0, 0, "the optimizer's step"), 0.0, update))
    step = _timed(parts, device, cards)
    return Speed(0.0, 0.0, step.limit, "memory", step.share, 0.0, 0, 0, step.seconds)


def is_step_of_map(op: Operation) -> bool:
    """True for elementwise steps over the whole map of eager attention."""
    return bool(op.stack) and op.name.endswith(STEPS_OF_MAP)


def _computed(op: Operation) -> int:
    """FLOPs of one repetition. A fused kernel skips masked cells; a product of whole maps does not."""
    return op.useful_flops if op.name.endswith(" fused") else op.flops


def _moved(op: Operation) -> int:
    """Bytes of one repetition in a fused program (operations.ideal_bytes), and of maps that eager attention writes."""
    if op.flops or is_step_of_map(op):
        return op.bytes
    return 0 if op.name == "embedding" else op.weights


def _cached(op: Operation, queries: int) -> int:
    """Bytes of keys and values that an attention reads in addition to this many bytes of queries."""
    if op.name.endswith(" fused"):
        return op.reads - queries
    # The scores read only the keys. The values are as large, and read by the other product.
    return 2 * (op.reads - queries) if op.name.endswith(" scores") else 0
