"""FLOPs and memory traffic of every operation, for a whole text at once (prefill) or one new token (decode).

FLOPs are those of matrix products, two for each multiply-add, as torch.utils.flop_counter counts them. Traffic is what an
unfused program reads and writes, each operand once per operation; a fused kernel is one operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..model.config import ModelConfig
from .dtypes import cache_format
from .parameters import norm
from .weights import StoredWeights, distances, projections, stored_weights
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
    """The forward pass over whole texts; `options` are the fields of a Workload by name. Raises ConfigError as its check does.

    Words are scored at every position, as training and model(ids) do; a program that only writes scores the last one alone.
    """
    return _forward(config, work := as_workload(workload, options), work.last_len)


def prompt(config: ModelConfig, work: Workload) -> tuple[Operation, ...]:
    """The same where words are scored at the positions alone whose logits the workload keeps, as a program that writes does."""
    return _forward(config, work, work.logit_positions(config))


def _forward(config: ModelConfig, work: Workload, positions: int) -> tuple[Operation, ...]:
    work.check(config)
    rows = _Rows(config, work)
    operations: list[Operation] = []
    for name, _, n, memory_len in work.stacks(config):
        operations += rows.all_of(name, n, n_key=n, memory_len=memory_len)
    return (*operations, *rows.head(work.batch * positions))


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
    return (*rows.all_of("decoder", 1, n_key=cached, memory_len=memory_len, cached=True), *rows.head(batch))


@dataclass(frozen=True)
class _Looks:
    """Who looks at whom in one attention over one text."""

    queries: int
    keys: int
    computed: int  # of the keys: those that no cache holds yet
    seen: int  # pairs of a query and a key that are not masked, a head
    hides: bool  # whether anything is masked
    own: bool  # self-attention


@dataclass(frozen=True)
class _Rows:
    """Rows of one part of the pass, which happens `times` times."""

    config: ModelConfig
    work: Workload
    stack: str = ""  # of the head: none
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
        """The rows of one stack: its layers with a window are rows of their own where some have one and some have none."""
        config, once = self.config, replace(self, stack=name)
        n_layers = dict(config.stacks)[name]
        rows = [once._embedding(n)]
        if config.embed_norm:
            rows.append(once._norm_of("embed norm", self.batch * n, config.embed_width))
        if config.embed_width != config.d_model:
            rows.append(once._linear("embed project", self.batch * n, config.embed_width, config.d_model, True))
        if config.has_relative_bias:
            table = config.n_relative_buckets * config.n_heads * self.stored.other
            times = n_layers if config.relative_per_layer else 1
            rows.append(
                Operation(name, "relative bias", times, 0, 0, table, 0, table, "a learned number for each distance")
            )
        narrow = config.window is not None and config.window < n_key
        for windowed, mixed, times in layer_kinds(config, n_layers, narrow=narrow):
            window = config.window if windowed else None
            rows += replace(once, times=times)._layer(n, n_key, memory_len, window, cached, mixed)
        if config.final_norm:
            rows.append(once._norm("final norm", n))
        return rows

    def head(self, positions: int) -> list[Operation]:
        config = self.config
        if config.head == "none":
            return []
        rows = []
        if config.head == "mlm":
            width = config.unembed_width
            rows.append(self._linear("head dense", positions, config.d_model, width, True))
            rows.append(self._move("head activation", positions * width, 1, 1, config.activation))
            rows.append(self._norm_of("head norm", positions, width))
        rows.append(self._linear("unembed", positions, config.unembed_width, config.vocab_size, config.head_bias))
        if config.logit_softcap is not None:
            rows.append(self._move("logit soft-cap", positions * config.vocab_size, 1, 1, "c · tanh(x / c)"))
        return rows

    def _layer(
        self, n: int, n_key: int, memory_len: int, window: int | None, cached: bool, mixed: bool
    ) -> list[Operation]:
        config, tokens = self.config, self.batch * n
        reach = min(n_key, window) if cached and window else n_key  # a cache holds no more than the window
        causal = self.stack == "decoder" and config.causal and not cached
        window = None if cached else window
        seen, hides = _cells(n, reach, causal=causal, window=window), causal or window is not None
        before, sandwich = config.norm_order != "after", config.norm_order in ("sandwich", "after")
        rows = [self._norm("attn norm", n)] if before else []
        rows += self._attention("attn", _Looks(n, reach, n, seen, hides, own=True))
        rows += [self._norm("attn out norm", n)] if sandwich else []
        rows.append(self._residual("attn residual", n))
        if memory_len:
            rows += [self._norm("cross norm", n)] if before else []
            computed = 0 if cached else memory_len
            looks = _Looks(n, memory_len, computed, n * memory_len, hides=False, own=False)
            rows += self._attention("cross attn", looks)
            rows += [self._norm("cross out norm", n)] if sandwich else []
            rows.append(self._residual("cross residual", n))
        rows += [self._norm("mlp norm", n)] if before and not config.shared_norm else []
        rows += (
            self._mixture(tokens)
            if mixed
            else self._mlp("mlp", tokens, config.d_dense if config.n_experts else config.d_ff)
        )
        rows += [self._norm("mlp out norm", n)] if sandwich else []
        rows.append(self._residual("mlp residual", n))
        return rows

    def _mlp(self, name: str, tokens: int, width: int) -> list[Operation]:
        config = self.config
        rows = [
            self._linear(f"{name} {up}", tokens, config.d_model, width, config.mlp_bias)
            for up in (("up", "gate") if config.gated else ("up",))
        ]
        rows.append(self._move(f"{name} activation", tokens * width, 1, 1, config.activation))
        if config.gated:
            rows.append(self._move(f"{name} product", tokens * width, 2, 1, "gate × up"))
        return [*rows, self._linear(f"{name} down", tokens, width, config.d_model, config.mlp_bias)]

    def _mixture(self, tokens: int) -> list[Operation]:
        """A router, the experts that each token takes, and the one that all take. Of the experts' weights those that some token
        takes are read, where every token takes others: as many as there are, at most."""
        config = self.config
        taken, used = tokens * config.n_experts_per_token, min(config.n_experts, tokens * config.n_experts_per_token)
        rows = [self._linear("router", tokens, config.d_model, config.n_experts, config.router_bias)]
        for op in self._mlp("expert", taken, config.d_ff):
            more = (used - 1) * op.weights
            rows.append(replace(op, reads=op.reads + more, weights=op.weights + more))
        if config.d_shared:
            rows += self._mlp("shared", tokens, config.d_shared)
        if config.shared_gate:
            rows.append(self._linear("shared gate of tokens", tokens, config.d_model, 1, False))
        rows.append(self._move("expert sum", taken * config.d_model, 1, 1, "Σ weight · expert(x)"))
        return rows

    def _attention(self, name: str, looks: _Looks) -> list[Operation]:
        config, n, n_key = self.config, looks.queries, looks.keys
        tokens = self.batch * n
        q, values = config.n_heads * config.d_head, config.n_heads * config.value_width
        rows = []
        for letter, d_out, d_in in projections(config):
            keys = self.batch * looks.computed
            read = tokens if letter.startswith("q") else keys
            if letter != "o" and read:
                rows.append(self._linear(f"{name} {letter}", read, d_in, d_out, config.qkv_bias and not config.kv_rank))
        rows += self._inner_norms(name, tokens, self.batch * looks.computed)
        if looks.own and config.position == "disentangled":
            rows += self._distances(tokens)
        cells = self.batch * config.n_heads * n * n_key
        seen = self.batch * config.n_heads * looks.seen
        product, useful = 2 * cells * config.d_head, 2 * seen * config.d_head
        summed, useful_sum = 2 * cells * config.value_width, 2 * seen * config.value_width
        a_key = cache_format(self.work.kv_dtype or self.work.dtype, config.d_head).row(config.d_head)
        q_bytes, kv_bytes = tokens * q * self.by, self.batch * n_key * config.n_kv_heads * a_key
        if self.work.attention in ("efficient", "flash") and not (looks.own and config.runs_in_steps):
            rows.append(
                Operation(
                    self.stack,
                    f"{name} fused",
                    self.times,
                    product + summed,
                    useful + useful_sum,
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
                Operation(
                    self.stack, f"{name} scores", self.times, product, useful, q_bytes + kv_bytes, weights, 0, formula
                )
            )
            rows.append(self._move(f"{name} scale", cells, 1, 1, "÷ √d_head"))
            if looks.own and config.score_softcap is not None:
                rows.append(self._move(f"{name} soft-cap", cells, 1, 1, "c · tanh(x / c)"))
            if looks.own and (config.position in ("alibi", "disentangled") or config.has_relative_bias):
                bias = config.n_heads * n * n_key * self.by
                rows.append(
                    Operation(
                        self.stack, f"{name} bias", self.times, 0, 0, weights + bias, weights, 0, "what distance adds"
                    )
                )
            if looks.hides:
                mask = n * n_key  # one byte a cell
                rows.append(
                    Operation(
                        self.stack, f"{name} mask", self.times, 0, 0, weights + mask, weights, 0, "−∞ where hidden"
                    )
                )
            rows.append(self._move(f"{name} softmax", cells, 1, 1, "about 5 operations a cell"))
            rows.append(
                Operation(
                    self.stack,
                    f"{name} weights × v",
                    self.times,
                    summed,
                    useful_sum,
                    weights + kv_bytes,
                    q_bytes,
                    0,
                    formula,
                )
            )
        rows.append(self._linear(f"{name} o", tokens, values, config.d_model, config.out_bias))
        return rows

    def _inner_norms(self, name: str, tokens: int, computed: int) -> list[Operation]:
        """The norms inside an attention, over `computed` keys."""
        config = self.config
        if config.kv_rank:
            sizes = [("q norm", tokens, config.q_rank)] if config.q_rank else []
            sizes += [("kv norm", computed, config.kv_rank)] if computed else []
        elif not config.qk_norm:
            sizes = []
        elif config.qk_norm_place == "full":
            sizes = [("q norm", tokens, config.n_heads * config.d_head)]
            sizes += [("k norm", computed, config.n_kv_heads * config.d_head)] if computed else []
        else:
            sizes = [("q norm", tokens * config.n_heads, config.d_head)]
            sizes += [("k norm", computed * config.n_kv_heads, config.d_head)] if computed else []
        return [self._norm_of(f"{name} {what}", rows, width) for what, rows, width in sizes]

    def _distances(self, tokens: int) -> list[Operation]:
        """Disentangled attention: the vectors of all distances, and their products with every query or key."""
        config, width = self.config, self.config.n_heads * self.config.d_head
        n_rows, rows = 2 * config.distance_span, list[Operation]()
        for term in config.position_terms:
            matrix = distances(term, own=config.own_distance_projections)
            made = self._linear(f"attn {matrix}", n_rows, config.d_model, width, bias=True)
            product = 2 * tokens * n_rows * width
            numbers = (tokens * width + n_rows * width) * self.by
            written = tokens * config.n_heads * n_rows * self.by
            formula = "2 · tokens · distances · heads · d_head"
            rows += [
                replace(made, name=f"attn {term} distances"),
                Operation(self.stack, f"attn {term}", self.times, product, product, numbers, written, 0, formula),
            ]
        return rows

    def _linear(self, name: str, tokens: int, d_in: int, d_out: int, bias: bool) -> Operation:
        flops = 2 * tokens * d_in * d_out
        weights = self.stored.matrix(self.stack, name) + (d_out * self.stored.other if bias else 0)
        reads = tokens * d_in * self.by + weights
        writes = tokens * d_out * self.by
        return Operation(self.stack, name, self.times, flops, flops, reads, writes, weights, "2 · tokens · in · out")

    def _embedding(self, n: int) -> Operation:
        """Tables are looked up, not multiplied: a row of each for every token, and for every place, is all that is read."""
        config, numbers = self.config, self.batch * n * self.config.embed_width * self.by
        rows = self.batch * n * self.stored.token_row
        if (
            config.has_position_table
        ):  # the same rows for every text; those of sinusoids are in the format of the activations
            rows += n * config.embed_width * (self.stored.other if config.position == "learned" else self.by)
        rows += config.embed_width * self.stored.other if config.n_token_types else 0
        return Operation(self.stack, "embedding", 1, 0, 0, rows, numbers, rows, "a row of the table each")

    def _norm(self, name: str, n: int) -> Operation:
        return self._norm_of(name, self.batch * n, self.config.d_model)

    def _norm_of(self, name: str, rows: int, width: int) -> Operation:
        numbers = rows * width * self.by
        # The weights of RMS norms are in float32 at least (core.model.norm_dtype).
        by = max(4, self.stored.other) if self.config.norm == "rms" else self.stored.other
        weights = norm(self.config, width) * by
        return Operation(
            self.stack, name, self.times, 0, 0, numbers + weights, numbers, weights, "one pass over the stream"
        )

    def _residual(self, name: str, n: int) -> Operation:
        return self._move(name, self.batch * n * self.config.d_model, 2, 1, "x + f(x)")

    def _move(self, name: str, numbers: int, reads: int, writes: int, formula: str) -> Operation:
        """Something done to every number: no product, all traffic."""
        size = numbers * self.by
        return Operation(self.stack, name, self.times, 0, 0, reads * size, writes * size, 0, formula)


def layer_kinds(config: ModelConfig, n_layers: int, *, narrow: bool) -> Iterator[tuple[bool, bool, int]]:
    """(whether with a window, whether with experts, how many) of the layers of a stack, where a window hides something: `narrow`."""
    if not config.n_experts:
        windowed = config.n_windowed(n_layers) if narrow else 0
        kinds = Counter({(False, False): n_layers - windowed, (True, False): windowed})
    else:
        kinds = Counter((narrow and config.is_windowed(i), config.has_experts(i)) for i in range(n_layers))
    for (windows, mixed), times in sorted(kinds.items()):
        if times:
            yield windows, mixed, times


def _cells(n: int, n_key: int, *, causal: bool, window: int | None) -> int:
    """(query, key) pairs that one head may look at; queries and keys are the same n positions where anything is hidden."""
    if not causal and window is None:
        return n * n_key
    reach = n if window is None else min(window, n)
    back = n * reach - reach * (reach - 1) // 2  # each query sees itself and up to reach − 1 before it
    return back if causal else 2 * back - n


def ideal_bytes(operations: tuple[Operation, ...]) -> int:
    """The least that these operations can move: every weight once, and the traffic of products and fused attention.

    Rows that a compiler fuses into their neighbours (norms, residuals, activations) move nothing of their own but their weights.
    Nor does a table that is only looked up: of it a row for each token is read, which is what the first product reads and is
    counted there. Where it is the unembedding as well, that product reads the whole of it.
    """
    moved = sum(op.times * (op.bytes - op.weights) for op in operations if op.flops)
    return moved + sum(op.times * op.weights for op in operations if op.name != "embedding")
