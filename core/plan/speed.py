"""Speed: the least time that a prompt, a new token or a step of training takes on a device, by its roofline (Williams et al. 2009).

Every product takes the longer of two times, that of its arithmetic and that of the bytes it has to move; what is between products
is fused into them and moves its weights alone (operations.ideal_bytes). Eager attention writes its maps down at every step. A real program takes longer: this is its limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..errors import ConfigError
from ..model.config import ModelConfig
from .adapters import adapter_numbers
from .cache import kv_cache
from .devices import Device
from .operations import Operation, decode, prompt
from .plan import memory_plan
from .workload import Workload

STEPS_OF_MAP = (" scale", " soft-cap", " bias", " mask", " softmax")
Limit = Literal["compute", "memory"]


@dataclass(frozen=True)
class Speed:
    """Seconds at the device's full rates. A share is the part of its arithmetic that is in use meanwhile, from 0 to 1.

    prompt_*   to read the texts, up to the first new token; of a training, prompt_seconds is 0, and limit and share are its step's
    token_*    to write one more token of every text, after those of the workload; 0 for encoders and trainings. So there are
               batch / token_seconds tokens a second
    *_limit    which of the two takes more of the time
    weights_read, cache_read   bytes that one card reads for that token
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
    """A product, all its repetitions together: what has to be computed and moved."""

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
    """The least time of a workload on a device, or on several alike that share every product (core.plan.cards: across).

    The time that cards wait for each other is not counted. A device's rate is that of 16-bit arithmetic, on Apple's of float32;
    elsewhere float32 takes longer than is said here. Raises ConfigError as memory_plan does, and for less than one card.
    """
    if cards < 1:
        raise ConfigError(f"cards ({cards}) must be at least 1")
    if work.training:
        return _training(config, work, device, cards)
    read = _timed(reading(config, work), device, cards)
    token = tuple(writing(config, work))
    wrote = _timed(token, device, cards)
    weights = sum(part.operation.times * part.operation.weights for part in token if part.bytes)
    cache = kv_cache(
        config,
        batch=work.batch,
        n=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.kv_dtype or work.dtype,
    ).total
    return Speed(
        prompt_seconds=read.seconds,
        token_seconds=wrote.seconds,
        prompt_limit=read.limit,
        token_limit=wrote.limit,
        prompt_share=read.share,
        token_share=wrote.share,
        weights_read=-(-weights // cards),
        cache_read=-(-cache // min(cards, config.n_kv_heads)),
    )


def reading(config: ModelConfig, work: Workload) -> Iterator[Part]:
    """The products of a prompt. In pieces every piece reads the weights again, and the keys and values of those before it."""
    passes = -(-work.batch * work.source_len // work.piece) if work.piece else 1
    queries = work.batch * work.source_len * config.n_heads * config.d_head * work.by
    for op in prompt(config, work):
        again = 0.0
        if passes > 1 and op.stack and op.name != "embedding":  # the head is asked once, at the end
            again = (passes - 1) * (op.weights + _cached(op, queries) / 2)
        yield Part(op, op.times * _computed(op), op.times * (_moved(op) + again))


def writing(config: ModelConfig, work: Workload) -> Iterator[Part]:
    """The products of one new token of each text; none in an encoder."""
    found = decode(
        config,
        batch=work.batch,
        cached=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.dtype,
        weight_dtype=work.weight_dtype,
        kv_dtype=work.kv_dtype,
        attention=work.attention,
    )
    for op in found:
        yield Part(op, op.times * _computed(op), op.times * _moved(op))


@dataclass(frozen=True)
class _Timed:
    seconds: float
    limit: Limit
    share: float


def _timed(parts: Iterable[Part], device: Device, cards: int) -> _Timed:
    flops = compute = memory = 0.0
    for part in parts:
        took = part.seconds(device) / cards
        flops += part.flops
        if part.compute_seconds(device) > part.memory_seconds(device):
            compute += took
        else:
            memory += took
    seconds = compute + memory
    share = flops / cards / (device.teraflops * 1e12) / seconds if seconds else 0.0
    return _Timed(seconds, "compute" if compute > memory else "memory", min(1.0, share))


def _training(config: ModelConfig, work: Workload, device: Device, cards: int) -> Speed:
    """Each product once forward and once for the gradient of each operand that has one, then the update of what is trained."""
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
    """Whether it goes over the whole map of an attention that is not fused, and multiplies nothing."""
    return bool(op.stack) and op.name.endswith(STEPS_OF_MAP)


def _computed(op: Operation) -> int:
    """FLOPs of one of them: a fused kernel skips what the mask hides; a product of whole maps does not."""
    return op.useful_flops if op.name.endswith(" fused") else op.flops


def _moved(op: Operation) -> int:
    """Bytes that one of them has to move in a fused program (operations.ideal_bytes), but for maps that are written down."""
    if op.flops or is_step_of_map(op):
        return op.bytes
    return 0 if op.name == "embedding" else op.weights


def _cached(op: Operation, queries: int) -> int:
    """Bytes of keys and values that an attention reads beside so many bytes of queries."""
    if op.name.endswith(" fused"):
        return op.reads - queries
    return (
        2 * (op.reads - queries) if op.name.endswith(" scores") else 0
    )  # values are as many, and read by the other product
