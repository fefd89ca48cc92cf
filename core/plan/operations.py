"""FLOPs and memory traffic of every operation, for a whole text at once (prefill) or one new token (decode).

FLOPs are those of matrix products, two for each multiply-add, as torch.utils.flop_counter counts them. Traffic is what an
unfused program reads and writes, each operand once per operation; a fused kernel is one operation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..model.config import ModelConfig
from .dtypes import bytes_of
from .parameters import linear, norm, parameters
from .workload import Attention, Workload, as_workload


@dataclass(frozen=True)
class Operation:
    """One operation of one layer, which happens `times` times. `useful_flops` leaves out the cells that the mask hides."""

    stack: str  # encoder, decoder, or "" for the head
    name: str
    times: int
    flops: int
    useful_flops: int
    reads: int  # bytes, weights included
    writes: int
    weights: int  # the part of `reads` that is weights
    formula: str  # FLOPs, or what happens where there are none

    @property
    def bytes(self) -> int:
        return self.reads + self.writes

    @property
    def intensity(self) -> float:
        """FLOPs per byte: below a device's ridge the memory is the limit, above it the arithmetic (Williams et al. 2009)."""
        return self.flops / self.bytes if self.bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"bytes": self.bytes, "intensity": self.intensity}


def total_flops(operations: tuple[Operation, ...]) -> int:
    return sum(op.times * op.flops for op in operations)


def total_bytes(operations: tuple[Operation, ...]) -> int:
    return sum(op.times * op.bytes for op in operations)


def prefill(config: ModelConfig, workload: Workload | None = None, **options: Any) -> tuple[Operation, ...]:
    """The forward pass over whole texts; `options` are the fields of a Workload by name. Raises ConfigError as its check does."""
    work = as_workload(workload, options)
    work.check(config)
    rows = _Rows(config, work)
    operations: list[Operation] = []
    for name, _, n, memory_len in work.stacks(config):
        operations += rows.stack(name, n, n_key=n, memory_len=memory_len)
    return (*operations, *rows.head(work.batch * work.last_len))


def decode(
    config: ModelConfig,
    *,
    batch: int = 1,
    cached: int,
    memory_len: int = 0,
    dtype: object = "float16",
    weight_dtype: object = None,
    kv_dtype: object = None,
    attention: Attention = "flash",
) -> tuple[Operation, ...]:
    """One new token for each text, looking at `cached` tokens, itself included. Encoders do not decode: no operations.

    Raises ConfigError as prefill does.
    """
    if not config.n_decoder_layers:
        return ()
    work = Workload(
        batch=batch,
        source_len=cached,
        target_len=memory_len,
        dtype=dtype,
        attention=attention,
        weight_dtype=weight_dtype,
        kv_dtype=kv_dtype,
    )
    work.check(config)
    rows = _Rows(config, work)
    return (*rows.stack("decoder", 1, n_key=cached, memory_len=memory_len, cached=True), *rows.head(batch))


@dataclass(frozen=True)
class _Rows:
    config: ModelConfig
    work: Workload

    @property
    def batch(self) -> int:
        return self.work.batch

    @property
    def by(self) -> int:
        return self.work.by

    def stack(
        self, name: Literal["encoder", "decoder"], n: int, *, n_key: int, memory_len: int, cached: bool = False
    ) -> list[Operation]:
        """The rows of one stack: its layers with a window are rows of their own where some have one and some have none."""
        config = self.config
        n_layers = dict(config.stacks)[name]
        causal = name == "decoder"
        rows = [self._move(name, "embedding", 1, self.batch * n * config.d_model, 1, 1, "a row of the table each")]
        narrow = config.window is not None and config.window < n_key
        windowed = config.n_windowed(n_layers) if narrow else 0
        for times, window in ((n_layers - windowed, None), (windowed, config.window)):
            if times:
                rows += self._layer(name, times, n, n_key, memory_len, causal, window, cached)
        if config.final_norm:
            rows.append(self._norm(name, "final norm", 1, n))
        return rows

    def head(self, positions: int) -> list[Operation]:
        config = self.config
        if config.head == "none":
            return []
        rows = []
        if config.head == "mlm":
            rows.append(self._linear("", "head dense", 1, positions, config.d_model, config.d_model, True))
        words = self._linear("", "unembed", 1, positions, config.d_model, config.vocab_size, config.head_bias)
        return [*rows, words]

    def _layer(
        self,
        stack: str,
        times: int,
        n: int,
        n_key: int,
        memory_len: int,
        causal: bool,
        window: int | None,
        cached: bool,
    ) -> list[Operation]:
        config, tokens = self.config, self.batch * n
        reach = min(n_key, window) if cached and window else n_key  # a cache holds no more than the window
        seen = _cells(n, reach, causal=causal and not cached, window=None if cached else window)
        hides = (causal and not cached) or (window is not None and not cached)
        rows = [self._norm(stack, "attn norm", times, n)]
        rows += self._attention(stack, "attn", times, n, n, reach, seen, hides=hides, own=True)
        rows.append(self._residual(stack, "attn residual", times, n))
        if memory_len:
            rows.append(self._norm(stack, "cross norm", times, n))
            computed = 0 if cached else memory_len
            cells = n * memory_len
            rows += self._attention(stack, "cross attn", times, n, computed, memory_len, cells, hides=False, own=False)
            rows.append(self._residual(stack, "cross residual", times, n))
        rows.append(self._norm(stack, "mlp norm", times, n))
        ups = 2 if config.gated else 1
        for name in ("mlp up", "mlp gate")[:ups]:
            rows.append(self._linear(stack, name, times, tokens, config.d_model, config.d_ff, config.mlp_bias))
        rows.append(self._move(stack, "mlp activation", times, tokens * config.d_ff, 1, 1, config.activation))
        if config.gated:
            rows.append(self._move(stack, "mlp product", times, tokens * config.d_ff, 2, 1, "gate × up"))
        rows.append(self._linear(stack, "mlp down", times, tokens, config.d_ff, config.d_model, config.mlp_bias))
        rows.append(self._residual(stack, "mlp residual", times, n))
        return rows

    def _attention(
        self,
        stack: str,
        name: str,
        times: int,
        n: int,
        computed_keys: int,
        n_key: int,
        seen: int,
        *,
        hides: bool,
        own: bool,
    ) -> list[Operation]:
        """n queries at n_key keys, `computed_keys` of them computed now; `seen` cells a head are not masked."""
        config, tokens = self.config, self.batch * n
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        rows = [self._linear(stack, f"{name} q", times, tokens, config.d_model, q, config.qkv_bias)]
        for letter in ("k", "v") if computed_keys else ():
            keys = self.batch * computed_keys
            rows.append(self._linear(stack, f"{name} {letter}", times, keys, config.d_model, kv, config.qkv_bias))
        cells = self.batch * config.n_heads * n * n_key
        product, useful = 2 * cells * config.d_head, 2 * self.batch * config.n_heads * seen * config.d_head
        q_bytes, kv_bytes = tokens * q * self.by, self.batch * n_key * kv * self.work.kv_by
        if self.work.attention in ("efficient", "flash"):
            rows.append(
                Operation(
                    stack,
                    f"{name} fused",
                    times,
                    2 * product,
                    2 * useful,
                    q_bytes + 2 * kv_bytes,
                    q_bytes,
                    0,
                    "4 · batch · heads · queries · keys · d_head",
                )
            )
        else:
            formula = "2 · batch · heads · queries · keys · d_head"
            weights = cells * self.by
            rows.append(
                Operation(stack, f"{name} scores", times, product, useful, q_bytes + kv_bytes, weights, 0, formula)
            )
            rows.append(self._move(stack, f"{name} scale", times, cells, 1, 1, "÷ √d_head"))
            if own and config.position in ("alibi", "relative"):
                bias = config.n_heads * n * n_key * self.by
                rows.append(
                    Operation(stack, f"{name} bias", times, 0, 0, weights + bias, weights, 0, "what distance adds")
                )
            if hides:
                mask = n * n_key  # one byte a cell
                rows.append(
                    Operation(stack, f"{name} mask", times, 0, 0, weights + mask, weights, 0, "−∞ where hidden")
                )
            rows.append(self._move(stack, f"{name} softmax", times, cells, 1, 1, "about 5 operations a cell"))
            rows.append(
                Operation(
                    stack,
                    f"{name} weights × v",
                    times,
                    product,
                    useful,
                    weights + kv_bytes,
                    q_bytes,
                    0,
                    formula,
                )
            )
        rows.append(self._linear(stack, f"{name} o", times, tokens, q, config.d_model, config.out_bias))
        return rows

    def _linear(self, stack: str, name: str, times: int, tokens: int, d_in: int, d_out: int, bias: bool) -> Operation:
        flops = 2 * tokens * d_in * d_out
        weights = linear(d_in, d_out, bias=bias) * self.work.weight_by
        reads = tokens * d_in * self.by + weights
        writes = tokens * d_out * self.by
        return Operation(stack, name, times, flops, flops, reads, writes, weights, "2 · tokens · in · out")

    def _norm(self, stack: str, name: str, times: int, n: int) -> Operation:
        numbers = self.batch * n * self.config.d_model * self.by
        weights = norm(self.config, self.config.d_model) * self.work.weight_by
        return Operation(stack, name, times, 0, 0, numbers + weights, numbers, weights, "one pass over the stream")

    def _residual(self, stack: str, name: str, times: int, n: int) -> Operation:
        return self._move(stack, name, times, self.batch * n * self.config.d_model, 2, 1, "x + f(x)")

    def _move(
        self, stack: str, name: str, times: int, numbers: int, reads: int, writes: int, formula: str
    ) -> Operation:
        """Something done to every number: no product, all traffic."""
        size = numbers * self.by
        return Operation(stack, name, times, 0, 0, reads * size, writes * size, 0, formula)


def _cells(n: int, n_key: int, *, causal: bool, window: int | None) -> int:
    """(query, key) pairs that one head may look at; queries and keys are the same n positions where anything is hidden."""
    if not causal and window is None:
        return n * n_key
    reach = n if window is None else min(window, n)
    back = n * reach - reach * (reach - 1) // 2  # each query sees itself and up to reach − 1 before it
    return back if causal else 2 * back - n


def ideal_bytes(config: ModelConfig, operations: tuple[Operation, ...], *, weight_dtype: object) -> int:
    """The least a forward pass can move: every weight once, and the traffic of products and fused attention.

    Rows that a compiler fuses into their neighbours (norms, residuals, activations) move nothing of their own.
    """
    by = bytes_of(weight_dtype)
    count = parameters(config)
    weights = (count.total - (0 if config.tied else count.source.token)) * by
    return weights + sum(op.times * (op.bytes - op.weights) for op in operations if op.flops)
