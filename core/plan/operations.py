"""FLOPs and memory traffic of every operation, and the roofline of accelerators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..device import MiB
from ..model.config import ModelConfig
from .parameters import StoredWeights, distances, norm, projections, stored_weights
from .workload import FLOAT, Workload, as_workload, cache_format


@dataclass(frozen=True)
class Operation:
    """One operation of one layer, which happens `times` times. `useful_flops` leaves out masked cells."""

    stack: str  # encoder, decoder, or "" for the head
    name: str
    times: int
    flops: int
    useful_flops: int
    reads: int  # bytes, weights included
    writes: int
    weights: int  # the part of `reads` that is weights
    formula: str  # of the FLOPs, or a description if there are none

    @property
    def bytes(self) -> int:
        return self.reads + self.writes

    @property
    def intensity(self) -> float:
        """FLOPs per byte. Below a device's ridge memory is the limit, above it arithmetic (Williams et al. 2009)."""
        return self.flops / self.bytes if self.bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"bytes": self.bytes, "intensity": self.intensity}


def total_flops(operations: tuple[Operation, ...]) -> int:
    return sum(op.times * op.flops for op in operations)


def total_bytes(operations: tuple[Operation, ...]) -> int:
    return sum(op.times * op.bytes for op in operations)


def prefill(config: ModelConfig, workload: Workload | None = None, **options: Any) -> tuple[Operation, ...]:
    """The forward pass over whole texts, with logits at every position, as in training and model(ids).

    `options` are the fields of a Workload by name. Raises ConfigError as its check does.
    """
    return _forward(config, work := as_workload(workload, options), work.last_len)


def prompt(config: ModelConfig, work: Workload) -> tuple[Operation, ...]:
    """The same with logits only at the positions that the workload keeps, as in generation."""
    return _forward(config, work, work.logit_positions(config))


def _forward(config: ModelConfig, work: Workload, positions: int) -> tuple[Operation, ...]:
    work.check(config)
    rows = _Rows(config, work)
    operations: list[Operation] = []
    for name, _, n, memory_len in work.stacks(config):
        operations += rows.all_of(name, n, n_key=n, memory_len=memory_len)
    return (*operations, *rows.head(work.batch * positions))


def decode(
    config: ModelConfig, *, batch: int = 1, cached: int, memory_len: int = 0, dtype: object = "float16", **options: Any
) -> tuple[Operation, ...]:
    """One new token for each text, which attends to `cached` tokens, itself included. Empty for encoders.

    `options` are the fields weight_dtype, kv_dtype and attention of a Workload. Raises ConfigError as prefill does.
    """
    if not config.n_decoder_layers:
        return ()
    work = Workload(batch=batch, source_len=cached, target_len=memory_len, dtype=dtype, **options)
    work.check(config)
    rows = _Rows(config, work)
    return (*rows.all_of("decoder", 1, n_key=cached, memory_len=memory_len, cached=True), *rows.head(batch))


def next_token(config: ModelConfig, work: Workload) -> tuple[Operation, ...]:
    """decode() at the end of a workload."""
    return decode(
        config,
        batch=work.batch,
        cached=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.dtype,
        weight_dtype=work.weight_dtype,
        kv_dtype=work.kv_dtype,
        attention=work.attention,
    )


@dataclass(frozen=True)
class _AttentionCounts:
    """Sizes of one attention over one text."""

    queries: int
    keys: int
    computed: int  # keys that are not in the cache yet
    seen: int  # unmasked (query, key) pairs of one head
    masked: bool  # whether any pair is masked
    own: bool  # self-attention


@dataclass(frozen=True)
class _Rows:
    """Operations of one part of the pass, which happens `times` times."""

    config: ModelConfig
    work: Workload
    stack: str = ""  # "" for the head
    times: int = 1

    @property
    def batch(self) -> int:
        return self.work.batch

    @property
    def by(self) -> int:
        return self.work.by

    @property
    def stored(self) -> StoredWeights:
        return stored_weights(self.config, dtype=self.work.dtype, weight_dtype=self.work.weight_dtype)

    def all_of(
        self, name: Literal["encoder", "decoder"], n: int, *, n_key: int, memory_len: int, cached: bool = False
    ) -> list[Operation]:
        """Operations of one stack. Layers with a window get rows of their own if other layers have none."""
        config, once = self.config, replace(self, stack=name)
        n_layers, tokens = dict(config.stacks)[name], self.batch * n
        rows = [once._embedding(n)]
        if config.embed_norm:
            rows.append(once._norm_of("embed norm", tokens, config.embed_width))
        if config.embed_width != config.d_model:
            rows.append(once._linear("embed project", tokens, config.embed_width, config.d_model, True))
        if config.has_relative_bias:
            table = config.n_relative_buckets * config.n_heads * self.stored.other
            bias = once._row("relative bias", table, 0, "a learned number for each distance", weights=table)
            rows.append(replace(bias, times=n_layers if config.relative_per_layer else 1))
        narrow = config.window is not None and config.window < n_key
        for windowed, mixed, times in layer_kinds(config, n_layers, narrow=narrow):
            window = config.window if windowed else None
            rows += replace(once, times=times)._layer(n, n_key, memory_len, window, cached, mixed)
        return [*rows, once._norm("final norm", n)] if config.final_norm else rows

    def head(self, positions: int) -> list[Operation]:
        config = self.config
        if config.head == "none":
            return []
        rows, width = [], config.unembed_width
        if config.head == "mlm":
            rows.append(self._linear("head dense", positions, config.d_model, width, True))
            rows.append(self._move("head activation", positions * width, 1, config.activation))
            rows.append(self._norm_of("head norm", positions, width))
        rows.append(self._linear("unembed", positions, width, config.vocab_size, config.head_bias))
        if config.logit_softcap is not None:
            rows.append(self._move("logit soft-cap", positions * config.vocab_size, 1, "c · tanh(x / c)"))
        return rows

    def _layer(
        self, n: int, n_key: int, memory_len: int, window: int | None, cached: bool, mixed: bool
    ) -> list[Operation]:
        config, tokens = self.config, self.batch * n
        reach = min(n_key, window) if cached and window else n_key  # a cache stores at most the window
        causal = self.stack == "decoder" and config.causal and not cached
        window = None if cached else window
        seen = _visible_pairs(n, reach, causal=causal, window=window)
        counts = _AttentionCounts(n, reach, n, seen, masked=causal or window is not None, own=True)
        rows = self._sublayer("attn", n, self._attention("attn", counts))
        if memory_len:
            computed = 0 if cached else memory_len
            counts = _AttentionCounts(n, memory_len, computed, n * memory_len, masked=False, own=False)
            rows += self._sublayer("cross", n, self._attention("cross attn", counts))
        dense = config.d_dense if config.n_experts else config.d_ff
        mlp = self._mixture(tokens) if mixed else self._mlp("mlp", tokens, dense)
        return rows + self._sublayer("mlp", n, mlp, norm=not config.shared_norm)

    def _sublayer(self, name: str, n: int, body: list[Operation], *, norm: bool = True) -> list[Operation]:
        """The operations of a sublayer with its norms and its residual connection."""
        order = self.config.norm_order
        rows = [self._norm(f"{name} norm", n)] if norm and order != "after" else []
        rows += body
        if order in ("sandwich", "after"):
            rows.append(self._norm(f"{name} out norm", n))
        return [*rows, self._move(f"{name} residual", self.batch * n * self.config.d_model, 2, "x + f(x)")]

    def _mlp(self, name: str, tokens: int, width: int) -> list[Operation]:
        config = self.config
        rows = [
            self._linear(f"{name} {up}", tokens, config.d_model, width, config.mlp_bias)
            for up in (("up", "gate") if config.gated else ("up",))
        ]
        rows.append(self._move(f"{name} activation", tokens * width, 1, config.activation))
        if config.gated:
            rows.append(self._move(f"{name} product", tokens * width, 2, "gate × up"))
        return [*rows, self._linear(f"{name} down", tokens, width, config.d_model, config.mlp_bias)]

    def _mixture(self, tokens: int) -> list[Operation]:
        """A router, the experts of each token, and the shared expert.

        The weights of every expert that some token uses are read once. As many experts as possible are assumed to be used.
        """
        config = self.config
        taken = tokens * config.n_experts_per_token
        rows = [self._linear("router", tokens, config.d_model, config.n_experts, config.router_bias)]
        for op in self._mlp("expert", taken, config.d_ff):
            more = (min(config.n_experts, taken) - 1) * op.weights
            rows.append(replace(op, reads=op.reads + more, weights=op.weights + more))
        if config.d_shared:
            rows += self._mlp("shared", tokens, config.d_shared)
        if config.shared_gate:
            rows.append(self._linear("shared gate of tokens", tokens, config.d_model, 1, False))
        return [*rows, self._move("expert sum", taken * config.d_model, 1, "Σ weight · expert(x)")]

    def _attention(self, name: str, counts: _AttentionCounts) -> list[Operation]:
        config = self.config
        tokens, computed = self.batch * counts.queries, self.batch * counts.computed
        rows = []
        for letter, d_out, d_in in projections(config):
            n_rows = tokens if letter.startswith("q") else computed
            if letter != "o" and n_rows:
                bias = config.qkv_bias and not config.kv_rank
                rows.append(self._linear(f"{name} {letter}", n_rows, d_in, d_out, bias))
        rows += self._inner_norms(name, tokens, computed)
        if counts.own and config.position == "disentangled":
            rows += self._distances(tokens)
        values = config.n_heads * config.value_width
        return [
            *rows,
            *self._products(name, counts),
            self._linear(f"{name} o", tokens, values, config.d_model, config.out_bias),
        ]

    def _products(self, name: str, counts: _AttentionCounts) -> list[Operation]:
        """From q, k and v to z: one fused kernel, or the steps of eager attention, which write every map to memory."""
        config, n, n_key = self.config, counts.queries, counts.keys
        cells, seen = (self.batch * config.n_heads * pairs for pairs in (n * n_key, counts.seen))
        product, useful = 2 * cells * config.d_head, 2 * seen * config.d_head
        summed, useful_sum = 2 * cells * config.value_width, 2 * seen * config.value_width
        key_bytes = cache_format(self.work.kv_dtype or self.work.dtype, config.d_head).row(config.d_head)
        q_bytes = self.batch * n * config.n_heads * config.d_head * self.by
        kv_bytes = self.batch * n_key * config.n_kv_heads * key_bytes
        if self.work.attention in ("efficient", "flash") and not (counts.own and config.runs_in_steps):
            formula = "4 · batch · heads · queries · keys · d_head"
            flops, useful = product + summed, useful + useful_sum
            fused = self._row(f"{name} fused", q_bytes + 2 * kv_bytes, q_bytes, formula, flops=flops)
            return [replace(fused, useful_flops=useful)]
        formula, map_bytes = "2 · batch · heads · queries · keys · d_head", cells * self.by
        scores = self._row(f"{name} scores", q_bytes + kv_bytes, map_bytes, formula, flops=product)
        rows = [replace(scores, useful_flops=useful), self._move(f"{name} scale", cells, 1, "÷ √d_head")]
        if counts.own and config.score_softcap is not None:
            rows.append(self._move(f"{name} soft-cap", cells, 1, "c · tanh(x / c)"))
        if counts.own and (config.position in ("alibi", "disentangled") or config.has_relative_bias):
            bias = config.n_heads * n * n_key * self.by
            rows.append(self._row(f"{name} bias", map_bytes + bias, map_bytes, "what distance adds"))
        if counts.masked:  # one byte a cell
            rows.append(self._row(f"{name} mask", map_bytes + n * n_key, map_bytes, "−∞ where hidden"))
        rows.append(self._move(f"{name} softmax", cells, 1, "about 5 operations a cell"))
        weighted = self._row(f"{name} weights × v", map_bytes + kv_bytes, q_bytes, formula, flops=summed)
        return [*rows, replace(weighted, useful_flops=useful_sum)]

    def _inner_norms(self, name: str, tokens: int, computed: int) -> list[Operation]:
        """The norms inside an attention, over `computed` keys: (name, rows, width) of each."""
        config = self.config
        if config.kv_rank:
            sizes = [("q norm", tokens, config.q_rank), ("kv norm", computed, config.kv_rank)]
        elif not config.qk_norm:
            sizes = []
        elif config.qk_norm_place == "full":
            sizes = [("q norm", tokens, config.n_heads * config.d_head)]
            sizes += [("k norm", computed, config.n_kv_heads * config.d_head)]
        else:
            sizes = [("q norm", tokens * config.n_heads, config.d_head)]
            sizes += [("k norm", computed * config.n_kv_heads, config.d_head)]
        return [self._norm_of(f"{name} {part}", rows, width) for part, rows, width in sizes if rows and width]

    def _distances(self, tokens: int) -> list[Operation]:
        """Disentangled attention: the vectors of all distances, and their products with every query or key."""
        config, width = self.config, self.config.n_heads * self.config.d_head
        n_rows, rows = 2 * config.distance_span, list[Operation]()
        for term in config.position_terms:
            matrix = distances(term, own=config.own_distance_projections)
            vectors = self._linear(f"attn {matrix}", n_rows, config.d_model, width, bias=True)
            reads = (tokens * width + n_rows * width) * self.by
            writes = tokens * config.n_heads * n_rows * self.by
            formula = "2 · tokens · distances · heads · d_head"
            rows += [
                replace(vectors, name=f"attn {term} distances"),
                self._row(f"attn {term}", reads, writes, formula, flops=2 * tokens * n_rows * width),
            ]
        return rows

    def _linear(self, name: str, tokens: int, d_in: int, d_out: int, bias: bool) -> Operation:
        weights = self.stored.matrix(self.stack, name) + (d_out * self.stored.other if bias else 0)
        reads, writes = tokens * d_in * self.by + weights, tokens * d_out * self.by
        return self._row(name, reads, writes, "2 · tokens · in · out", flops=2 * tokens * d_in * d_out, weights=weights)

    def _embedding(self, n: int) -> Operation:
        """A lookup reads only one row of each table for every token and position."""
        config, tokens = self.config, self.batch * n
        rows = tokens * self.stored.token_row
        if config.has_position_table:  # the same rows for every text; sinusoids are in the format of the activations
            rows += n * config.embed_width * (self.stored.other if config.position == "learned" else self.by)
        rows += config.embed_width * self.stored.other if config.n_token_types else 0
        writes = tokens * config.embed_width * self.by
        return self._row("embedding", rows, writes, "a row of the table each", weights=rows)

    def _norm(self, name: str, n: int) -> Operation:
        return self._norm_of(name, self.batch * n, self.config.d_model)

    def _norm_of(self, name: str, rows: int, width: int) -> Operation:
        size = rows * width * self.by
        # The weights of RMS norms are in float32 at least (core.model.norm_dtype).
        by = max(FLOAT, self.stored.other) if self.config.norm == "rms" else self.stored.other
        weights = norm(self.config, width) * by
        return self._row(name, size + weights, size, "one pass over the stream", weights=weights)

    def _move(self, name: str, numbers: int, reads: int, formula: str) -> Operation:
        """An elementwise operation with `reads` inputs and one output: memory traffic and no product."""
        return self._row(name, reads * numbers * self.by, numbers * self.by, formula)

    def _row(self, name: str, reads: int, writes: int, formula: str, *, flops: int = 0, weights: int = 0) -> Operation:
        return Operation(self.stack, name, self.times, flops, flops, reads, writes, weights, formula)


def layer_kinds(config: ModelConfig, n_layers: int, *, narrow: bool) -> Iterator[tuple[bool, bool, int]]:
    """(has a window, has experts, number of such layers) of a stack. `narrow`: the window hides something at this length."""
    if not config.n_experts:
        windowed = config.n_windowed(n_layers) if narrow else 0
        kinds = Counter({(False, False): n_layers - windowed, (True, False): windowed})
    else:
        kinds = Counter((narrow and config.is_windowed(i), config.has_experts(i)) for i in range(n_layers))
    for (windows, mixed), times in sorted(kinds.items()):
        if times:
            yield windows, mixed, times


def _visible_pairs(n: int, n_key: int, *, causal: bool, window: int | None) -> int:
    """Unmasked (query, key) pairs of one head. With a mask, queries and keys are the same n positions."""
    if not causal and window is None:
        return n * n_key
    reach = n if window is None else min(window, n)
    back = n * reach - reach * (reach - 1) // 2  # each query sees itself and up to reach − 1 earlier positions
    return back if causal else 2 * back - n


def ideal_bytes(operations: tuple[Operation, ...]) -> int:
    """The least traffic of these operations: every weight once, and the inputs and outputs of products and fused attention.

    A compiler fuses norms, residuals and activations into their neighbours, so only their weights count. An embedding lookup
    does not count either: the rows that it reads are the input of the first product. A tied unembedding reads the whole table.
    """
    moved = sum(op.times * (op.bytes - op.weights) for op in operations if op.flops)
    return moved + sum(op.times * op.weights for op in operations if op.name != "embedding")


# MiB of a CUDA context with PyTorch's kernels: about 300 to 500, depending on GPU and driver. 0 for Metal, which has none in the
# memory that it offers, and for ROCm, for which no figure is known.
CONTEXT = 300


@dataclass(frozen=True)
class Device:
    name: str
    mebibytes: int  # total, as the driver reports it
    offered_mebibytes: int  # to programs
    gigabytes_per_second: int
    teraflops: float
    source: str  # of the rates
    memory_source: str
    context_mebibytes: int = CONTEXT  # of the offered memory, taken by a program without tensors

    @property
    def memory(self) -> int:
        """Bytes that a program may use."""
        return self.offered_mebibytes * MiB

    @property
    def unified(self) -> bool:
        """True if the device shares the memory of the machine."""
        return self.memory_source.startswith("unified memory")

    @property
    def kept_mebibytes(self) -> int:
        """Memory reserved by the driver."""
        return self.mebibytes - self.offered_mebibytes

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.teraflops * 1000 / self.gigabytes_per_second

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "ridge": self.ridge,
            "gibibytes": self.mebibytes / 1024,
            "offered": self.offered_mebibytes / 1024,
        }


def _smi(capacity: str) -> str:
    return f"memory.total of nvidia-smi; offered: the total capacity in PyTorch's out-of-memory message, {capacity}"


def _metal(share: str) -> str:
    return f"unified memory; offered: Metal's recommendedMaxWorkingSetSize, as llama.cpp logs it, {share} of all"


DEVICES: tuple[Device, ...] = (
    Device("T4", 15_360, 14_909, 320, 65.1, "float16 alone; rightnowai.co/guides/gpu-comparison/t4", _smi("14.56 GiB (14.74 with older drivers)")),
    Device("L4", 23_034, 22_558, 300, 125.3, "from its boost clock; hmc-tech.com/gpu/nvidia-l4-vs-nvidia-t4", _smi("22.03 GiB")),
    Device("A10", 23_028, 22_589, 600, 125, "sysrqmts.com", _smi("22.06 GiB, of the A10G")),
    Device("RTX 3060 12 GB", 12_288, 12_032, 360, 25, "sysrqmts.com", _smi("11.75 GiB (Kunhao-Liu/StyleGaussian#12)")),
    Device("RTX 3090", 24_576, 24_248, 936, 71, "half of its rate with float16 sums; holynerdvana.blogspot.com", _smi("23.68 GiB (wutong16/HyperDreamer#4)")),
    Device("RTX 4090", 24_564, 24_207, 1008, 165.2, "waredb.com/processor/nvidia-geforce-rtx-4090", _smi("23.64 GiB (ali-vilab/VGen#104)")),
    Device("RTX 5090", 32_607, 32_122, 1792, 209.5, "codesota.com/hardware/rtx-5090", _smi("31.37 GiB (Wan-Video/Wan2.1#465)")),
    Device("A100 40 GB", 40_960, 40_448, 1555, 312, "glennklockwood.com/garden/processors/A100", _smi("39.50 GiB (TianheWu/CoSeR#10)")),
    Device("A100 80 GB", 81_920, 81_152, 2039, 312, "SXM; glennklockwood.com/garden/processors/A100", _smi("79.25 GiB (levihsu/OOTDiffusion#235), 79.15 to 79.33 by driver")),
    Device("L40S", 46_068, 45_486, 864, 362, "stas00/ml-engineering, compute/accelerator", _smi("44.42 GiB (stepfun-ai/Step-Video-T2V#8)")),
    Device("H100 SXM", 81_559, 81_090, 3350, 989, "stas00/ml-engineering, compute/accelerator", _smi("79.19 GiB")),
    Device("H100 PCIe", 81_559, 81_090, 2000, 756, "stas00/ml-engineering, compute/accelerator", _smi("79.19 GiB, as the SXM card's")),
    Device("H200", 143_771, 143_155, 4800, 989, "SXM; stas00/ml-engineering, compute/accelerator", _smi("139.80 GiB")),
    Device("B200", 183_359, 182_630, 8000, 2250, "HGX, 1000 W; stas00/ml-engineering, compute/accelerator", _smi("178.35 GiB")),
    Device("MI300X", 196_592, 196_290, 5300, 1300, "stas00/ml-engineering, compute/accelerator", "192 GiB of ROCm's 191.98; offered: the total capacity in PyTorch's out-of-memory message, 191.69 GiB", 0),
    Device("M3 Max", 131_072, 98_304, 400, 14.2, "float32; macmegasite.com", _metal("103,079 MB, three quarters"), 0),
    Device("M4 Max", 131_072, 110_100, 546, 18.4, "float32; huggingface.js, hardware.ts", _metal("115,449 MB, 84 %"), 0),
    Device("M2 Ultra", 196_608, 147_456, 800, 27.2, "float32; huggingface.js, hardware.ts", "unified memory; offered: three quarters of it, as of the M3 Max", 0),
)  # fmt: skip


def share_of_peak(operations: Iterable[Operation], device: Device) -> float:
    """Share of a device's arithmetic, from 0 to 1, that these operations can use together with the least traffic."""
    operations = tuple(operations)
    return min(1.0, total_flops(operations) / ideal_bytes(operations) / device.ridge)


def device_named(name: str) -> Device | None:
    """The device of this name, regardless of case and hyphens: "rtx 4090", "rtx-4090"."""
    plain = name.lower().replace("-", " ").strip()
    return next((device for device in DEVICES if device.name.lower() == plain), None)


@dataclass(frozen=True)
class Bound:
    """Least time of one operation on one device: the longer of the two times, which is its limit."""

    operation: Operation
    compute_seconds: float
    memory_seconds: float

    @property
    def seconds(self) -> float:
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def limit(self) -> str:
        return "compute" if self.compute_seconds > self.memory_seconds else "memory"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.operation.name,
            "stack": self.operation.stack,
            "compute_seconds": self.compute_seconds,
            "memory_seconds": self.memory_seconds,
            "limit": self.limit,
        }


def roofline(operations: Iterable[Operation], device: Device) -> tuple[Bound, ...]:
    """Least time of each operation, with all repetitions, at the device's full rates (Williams et al. 2009)."""
    flops, bandwidth = device.teraflops * 1e12, device.gigabytes_per_second * 1e9
    return tuple(Bound(op, op.times * op.flops / flops, op.times * op.bytes / bandwidth) for op in operations)
