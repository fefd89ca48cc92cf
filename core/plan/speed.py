"""Speed: lower bound of the time of a prompt, a new token or a training step on a device, by its roofline (Williams et al. 2009).

Every product takes the longer of the time of its arithmetic and that of its memory traffic. Operations between products are fused and
only read their weights (operations.ideal_bytes). Eager attention writes its maps to memory at every step. Real programs take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..errors import ConfigError
from ..model.config import ModelConfig
from .adapters import adapter_numbers
from .cache import cache_of
from .devices import Device
from .operations import Operation, next_token, prompt
from .plan import memory_plan
from .workload import Workload

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
    """The least time of a workload on one device or several that share every product (core.plan.cards: across).

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
