"""Peak memory of a forward pass, of chunked prefill and of traced runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..errors import ConfigError
from ..model.config import ModelConfig
from ..model.rules import BLOCK_BYTES, WINDOW_ROWS
from .parameters import float32_parameters, parameters
from .workload import FLOAT, INT, Workload, of_texts

INT32 = 4  # bytes of a distance in a window
SAMPLED = 16  # numbers of a weight in the fingerprint of a run's model (core.run.forward_pass)
SCALARS = 256  # bytes of single numbers: a fill value, a slope, a frequency

ATTENDING = ("softmax and sum", "scores and weights")  # ends of the names of the peaks at which a mask is made

Path = Literal["fused", "spelled_out", "eager"]
Keep = Literal["", "qk", "qkv"]


def pass_moments(
    config: ModelConfig,
    workload: Workload,
    *,
    keep: Keep,
    path: Path,
    all_logits: bool,
    traced: bool,
) -> tuple[dict[str, int], int]:
    """Live bytes besides the weights at each possible peak, and the bytes captured from all attentions at the end.

    keep      captured tensors of every attention: "qkv" or "qk" in a trace, "" in a plain pass. A trace that edits scores or
              weights captures those as well
    path      fused: the kernel. spelled_out: the steps of core.model. eager: the steps of the textbook
    traced    a trace also stores the norms of the residual stream and of the outputs added to it, positions and angles
    """
    moments: dict[str, int] = {}
    batch, by = workload.batch, workload.by
    # ids, and in a padded batch the mask of real tokens
    inputs = batch * (workload.source_len + workload.target_len) * (INT + (1 if workload.padded else 0))
    if traced:
        inputs += batch * workload.source_len * INT  # the segment of each token
        inputs += (4 * len(config.stacks) + 1) * SAMPLED * by  # fingerprint of the weights
    held = captured = 0
    for name, n_layers, n, memory_len in workload.stacks(config):
        stack = StackPass(config, workload, name, n_layers, n, memory_len, keep, path, traced)
        moments |= {moment: inputs + held + value for moment, value in stack.moments().items()}
        captured += stack.kept
        held += stack.kept + stack.noted
    last = batch * workload.last_len * config.d_model * by
    positions = workload.last_len if all_logits else 1
    moments["head"] = inputs + held + last + head_bytes(config, batch * positions, by, probabilities=not all_logits)
    return moments, captured


@dataclass(frozen=True)
class StackPass:
    """Sizes of the pass of one stack, with n queries, and memory_len keys from the encoder for cross-attention."""

    config: ModelConfig
    workload: Workload
    name: Literal["encoder", "decoder"]
    n_layers: int
    n: int
    memory_len: int
    keep: Keep
    path: Path
    traced: bool

    @property
    def batch(self) -> int:
        return self.workload.batch

    @property
    def by(self) -> int:
        return self.workload.by

    @property
    def padded(self) -> bool:
        return self.workload.padded

    @property
    def tokens(self) -> int:
        return self.batch * self.n

    @property
    def stream(self) -> int:
        """One [batch, pos, d_model]."""
        return self.tokens * self.config.d_model * self.by

    @property
    def q(self) -> int:
        """One [batch, head, query, d_head]."""
        return self.tokens * self.config.n_heads * self.config.d_head * self.by

    def kv(self, n_key: int) -> int:
        """One [batch, kv_head, key, d_head], at the larger of the widths of keys and values."""
        width = max(self.config.d_head, self.config.value_width)
        return self.batch * n_key * self.config.n_kv_heads * width * self.by

    def captured(self, n_key: int) -> int:
        """Bytes captured from one attention over n_key keys."""
        distances = self._distance_vectors if self.keep else 0
        qkv = sum(self.q if letter == "q" else self.kv(n_key) for letter in self.keep)
        return qkv + distances + self._kept_maps(n_key)

    def _kept_maps(self, n_key: int) -> int:
        """Scores and weights stored by a trace that edits them, because they cannot be recomputed."""
        return 2 * self._map(n_key) if self.traced and self.path == "spelled_out" else 0

    def _map(self, n_key: int) -> int:
        """One [batch, head, query, key]."""
        return self.tokens * self.config.n_heads * n_key * self.by

    @property
    def _distance_vectors(self) -> int:
        """Disentangled attention: for each term, a key or query of every distance and head."""
        config = self.config
        if config.position != "disentangled":
            return 0
        return len(config.position_terms) * 2 * config.distance_span * config.n_heads * config.d_head * self.by

    @property
    def captured_layer(self) -> int:
        return self.captured(self.n) + (self.captured(self.memory_len) if self.memory_len else 0)

    @property
    def kept(self) -> int:
        """Bytes captured from this stack at its end."""
        return self.n_layers * self.captured_layer

    def moments(self) -> dict[str, int]:
        """Live bytes besides the weights and the tensors of earlier stacks, at the possible peaks."""
        around = self._around()
        before = around + (self.n_layers - 1) * self.captured_layer  # at the beginning of the last layer
        moments = {f"{self.name} embedding": around + self._embedding()}
        for moment, value in self._attention(self.n, cross=False).items():
            moments[f"{self.name} {moment}"] = before + self._residual(0) + value
        before += self.captured(self.n)
        if self.memory_len:
            for moment, value in self._attention(self.memory_len, cross=True).items():
                moments[f"{self.name} cross-attention: {moment}"] = before + self._residual(1) + value
            before += self.captured(self.memory_len)
        before += self._residual(1)
        moments[f"{self.name} MLP"] = before + self._mlp()
        # the input of the sublayer, and with a norm after it its output
        outputs = (2 if self.config.norm_order in ("sandwich", "after") else 1) * self.stream
        moments[f"{self.name} norm"] = before + outputs + self._norm(self.stream // self.by, self.tokens)
        return moments

    @property
    def noted(self) -> int:
        """Bytes that a trace stores besides q, k and v: norms of the residual stream, in float32, positions and angles."""
        if not self.traced:
            return 0
        # The residual stream after a layer is the input of the next, so its norm is stored once.
        per_layer = 3 if self.config.parallel else 6 if self.memory_len else 4
        if self.config.norm_order in (
            "sandwich",
            "after",
        ):  # the norm of an attention output before its norm layer as well
            per_layer += 2 if self.memory_len else 1
        sizes = (per_layer * self.n_layers + 2) * self.tokens * FLOAT
        return sizes + self._rows_of_positions * INT + self._angles

    @property
    def _rows_of_positions(self) -> int:
        return self.tokens if self.padded else self.n

    @property
    def _angles(self) -> int:
        """Rotary angles in float32, before they become cosines and sines."""
        if self.config.position != "rotary":
            return 0
        kinds = 1 if self.config.rotary_base_windowed is None else 2
        return kinds * self._rows_of_positions * self.config.d_rotary // 2 * FLOAT

    def _around(self) -> int:
        """Bytes alive from the first layer to the last: positions, angles, norms, and in a decoder the encoder's output."""
        around = self.noted + self.batch * self.memory_len * self.config.d_model * self.by
        around += self._rows_of_positions * INT * (2 if self.padded else 1) + SCALARS
        if self.config.position == "disentangled" and self.config.distance_norm:
            around += self._norm(2 * self.config.distance_span * self.config.d_model, 2 * self.config.distance_span)
        if self.config.position == "rotary":
            kinds = 1 if self.config.rotary_base_windowed is None else 2
            around += kinds * self._rows_of_positions * self.config.d_rotary * self.by + 2 * self._angles
        return around

    def _residual(self, earlier: int) -> int:
        """The residual stream at the input of the block, and after `earlier` of its sublayers."""
        return (1 + earlier) * self.stream

    def _normed(self) -> int:
        """The input of a sublayer: a separate tensor, except in post-norm blocks, where it is the residual stream."""
        return 0 if self.config.norm_order in ("post", "after") else self.stream

    def _norm(self, n_numbers: int, rows: int, strided: bool = False) -> int:
        """A norm of n_numbers, output included."""
        if self.config.norm == "layer":
            return (2 if strided else 1) * n_numbers * self.by + 2 * rows * FLOAT
        if self.by == FLOAT:
            return 2 * n_numbers * FLOAT + rows * FLOAT
        return n_numbers * 3 * FLOAT + rows * FLOAT  # in float32: the input, normalised, and weighted

    def _embedding(self) -> int:
        """Token vectors, the next summand, and the sum."""
        config, adds = self.config, 0
        if config.has_position_table:
            adds = self.stream if self.padded else self.stream // self.batch
        if config.n_token_types:
            adds = max(adds, self.stream + self.tokens * INT)
        table = 2 * self.stream + adds
        return max(table, self.stream + self._norm(self.stream // self.by, self.tokens) if config.embed_norm else 0)

    def _attention(self, n_key: int, *, cross: bool) -> dict[str, int]:
        """Possible peaks in one attention over n_key keys, its q, k and v included."""
        config = self.config
        q, kv = self.q, self.kv(n_key)
        projected = q + 2 * kv
        moments = {"projections": projected}
        if config.qk_norm:
            q_rows, k_rows = self.tokens * config.n_heads, self.batch * n_key * config.n_kv_heads
            moments["qk norm"] = max(
                q + self._norm(q // self.by, q_rows, strided=True),
                q + kv + self._norm(kv // self.by, k_rows, strided=True),
            )
        if config.position == "rotary" and not cross:
            # The two rotated halves are concatenated while both are alive: d_rotary + d_head features, or 2·d_rotary.
            joined = (config.d_rotary + max(config.d_rotary, config.d_head)) / config.d_head
            moments["rotary turn"] = projected + max(int(q * joined), q + int(kv * joined))
        if self.path == "fused":
            moments["softmax and sum"] = projected + self._attend(n_key, cross=cross)
        else:
            moments["scores and weights"] = projected + self._spelled_out(n_key, cross=cross)
        # z has the memory layout of q, and is copied unless that is token by token.
        turned = config.qk_norm or (config.position == "rotary" and not cross)
        blocks = any(self._rows(n_key, window, cross=cross) < self.n for window in self._windows(cross=cross))
        copied = turned or self.path != "fused" or blocks
        moments["output projection"] = projected + q + (q if copied else 0) + self.stream + self._kept_maps(n_key)
        return {moment: self._normed() + value for moment, value in moments.items()}

    def _windows(self, *, cross: bool) -> set[int | None]:
        """The windows of the layers; None for layers in which nothing is hidden by a window at this length."""
        window = self.config.window
        if cross or window is None or window >= self.n:
            return {None}
        return {window if self.config.is_windowed(layer) else None for layer in range(self.n_layers)}

    @property
    def _has_window(self) -> bool:
        """True if a window of some layer hides keys, so that its mask computes distances."""
        return self._windows(cross=False) != {None}

    @property
    def _biased(self) -> bool:
        return self.config.position in ("alibi", "disentangled") or self.config.has_relative_bias

    def _rows(self, n_key: int, window: int | None, *, cross: bool) -> int:
        """Query rows in one call of the kernel: all of them, unless a mask or bias must be materialised."""
        biased = self._biased and not cross
        if not self.padded and not biased and window is None:
            return self.n
        row = self.batch * (self.config.n_heads if biased else 1) * n_key * self.by
        return min(self.n, max(1, BLOCK_BYTES // row), self.n if window is None else max(window, WINDOW_ROWS))

    def _attend(self, n_key: int, *, cross: bool) -> int:
        """z with its log-sum-exp, and one block of rows of the mask or bias if it must be materialised."""
        if self.config.runs_in_steps and not cross:
            return self._in_steps(n_key)
        biased = self._biased and not cross
        z = self.q + self.tokens * self.config.n_heads * FLOAT
        widest = z
        for window in self._windows(cross=cross):
            if not self.padded and not biased and window is None:
                continue
            rows = self._rows(n_key, window, cross=cross)
            sides = 1 if self.name == "decoder" and self.config.causal else 2
            keys = n_key if window is None else min(n_key, rows + sides * (window - 1))
            block = INT * (rows + keys) + self._block(rows * keys, biased=biased, windowed=window is not None)
            block += self._terms(rows, keys)
            widest = max(
                widest, z + block, 2 * self.q if rows < self.n else 0
            )  # rows of the blocks, and their concatenation
        return widest

    def _terms(self, rows: int, keys: int) -> int:
        """Disentangled attention of a block: the vectors of distances, their products with queries or keys before and after scaling,
        copies of these, and the cells of both terms with their row indices."""
        config, heads, cells = self.config, self.batch * self.config.n_heads, rows * keys
        if config.position != "disentangled":
            return 0
        products = 2 * heads * max(rows, keys) * 2 * config.distance_span * self.by
        copies = heads * (rows + keys) * config.d_head * self.by
        return self._distance_vectors + products + copies + 4 * heads * cells * self.by + 8 * INT * self.batch * cells

    def _in_steps(self, n_key: int) -> int:
        """Attention without a fused kernel: z, q and k of every head in float32, and the steps of one block of rows."""
        heads = self.batch * self.config.n_heads
        row = heads * n_key * FLOAT
        rows = min(self.n, max(1, BLOCK_BYTES // row))
        wide = heads * n_key * max(self.config.d_head, self.config.value_width) * FLOAT
        cells = rows * n_key
        # scores, after the soft-cap, masked with the column of a sink, weights
        steps = 5 * rows * row + (2 * INT32 + 4) * self.batch * cells
        return 2 * self.q + 2 * self.q * FLOAT // self.by + 3 * wide + steps

    def _block(self, cells: int, *, biased: bool, windowed: bool) -> int:
        """The peak of a block of `cells` (query, key) pairs of one text."""
        config, texts = self.config, self.batch if self.padded else 1
        making = max(texts + 1, 3, 2 * INT32 + 2 if windowed else 0) * cells  # mask, one byte per cell, and its inputs
        mask = texts * cells
        if not biased:
            return max(making, mask + mask * self.by)
        per_head = texts * config.n_heads
        bias = per_head * cells * self.by
        if config.has_relative_bias:
            distances = max(53 * texts * cells, 2 * INT * texts * cells + bias)  # T5's buckets are computed in int64
            copied = 2 * bias
        else:
            distances = 2 * INT * texts * cells + per_head * cells * FLOAT  # ALiBi's slopes are float32
            copied = per_head * cells * (FLOAT + (FLOAT if self.by == FLOAT else self.by))
        return max(making, mask + distances, mask + copied, 2 * mask + 2 * bias)

    def _spelled_out(self, n_key: int, *, cross: bool) -> int:
        """Scores and weights as tensors: two maps at the same time in the textbook, three in core.model with a hook."""
        config, texts = self.config, self.batch if self.padded else 1
        maps = self._map(n_key)
        keys = self.batch * n_key * config.n_heads * config.d_head * self.by  # k or v, one for every query head
        maps += 0 if cross else self._terms(self.n, n_key)
        cells = texts * self.n * n_key
        biased, windowed = self._biased and not cross, self._has_window and not cross
        if self.path == "eager":
            grouped = config.n_heads != config.n_kv_heads
            copied = 0 if grouped else keys  # a product copies operands that are not token by token
            widest = max(2 * maps + cells + (config.n_heads * cells * self.by if biased else 0), self.q + copied + maps)
            return (2 * keys if grouped else 0) + widest
        if biased:
            bias = config.n_heads * cells * self.by
            if config.has_relative_bias:
                distances = max(53 * cells, 2 * INT * cells + bias)
            else:
                distances = 2 * INT * cells + config.n_heads * cells * FLOAT
            adding = max(maps + distances, maps + bias + config.n_heads * cells * FLOAT, 2 * maps + bias)
        else:
            adding = 2 * maps
        mask = (2 * INT32 + 2 if windowed else 3) * self.n * n_key + cells
        widest = max(
            self.q + keys + maps,
            adding,
            maps + mask,
            2 * maps + 2 * cells,
            3 * maps + self.tokens * config.n_heads * (self.by + 1),  # the largest of each row, and whether it is −inf
            2 * maps + keys + self.q,
        )
        return widest + INT * (self.n + n_key + 1)  # indices of queries and keys

    def _mlp(self) -> int:
        """Its input, and the largest of: gate, up and product; input and output of the activation; hidden layer and output."""
        config = self.config
        if not config.n_experts:
            hidden = self.tokens * config.d_ff * self.by
            return self._normed() + max((3 if config.gated else 2) * hidden, hidden + self.stream)
        # At most every token uses one expert: its rows, their hidden layer and output, and the sum so far.
        widest = max(config.d_ff, config.d_shared, config.d_dense)
        router = self.tokens * (2 * config.n_experts * FLOAT + config.n_experts_per_token * (2 * INT + 2 * self.by))
        chosen = self.tokens * (config.n_experts_per_token + 2 * INT)
        return self._normed() + 5 * self.stream + 4 * self.tokens * widest * self.by + router + chosen


def head_bytes(config: ModelConfig, positions: int, by: int, *, probabilities: bool) -> int:
    """Logits at this number of positions, and optionally their probabilities in float32."""
    if config.head == "none":
        return 0
    as_float = FLOAT if by == FLOAT else 2 * FLOAT  # other formats are copied first
    words = config.vocab_size * (by + (as_float if probabilities else 0))
    capped = 2 * config.vocab_size * by if config.logit_softcap is not None else 0
    widest = max(config.d_model, config.unembed_width)
    return positions * (words + capped + (4 if config.head == "mlm" else 1) * widest * by)


SHARED_CELL = 8  # temporary bytes per cell of a mask that all heads share: its distance, codes and result
HEAD_CELL = 4  # temporary bytes per cell of the mask of one head
STEPS = 3  # maps of a block in memory at the same time if the softmax is computed in steps


def rule_bytes(config: ModelConfig, work: Workload, n: int, n_key: int, *, spelled_out: bool) -> int:
    """Upper bound over all kinds of edits, for n queries and n_key keys: one block of rows of core.model.rules.attend.

    If the scores are tensors (`spelled_out`), the mask is made for all rows at once.
    """
    texts, heads, by = work.batch, config.n_heads, work.by
    if spelled_out:
        return texts * n * n_key * (SHARED_CELL + heads * HEAD_CELL)

    def rows(row_bytes: int) -> int:
        return min(n, max(1, BLOCK_BYTES // row_bytes))

    shared = texts * rows(texts * n_key * by) * n_key * (SHARED_CELL + by)
    apart = texts * heads * rows(texts * heads * n_key * by) * n_key * (HEAD_CELL + by)
    in_steps = texts * heads * rows(texts * heads * n_key * 4) * n_key * (STEPS * 4 + HEAD_CELL)
    return max(shared, apart, in_steps)


def piece_moments(config: ModelConfig, work: Workload, path: Path) -> dict[str, int]:
    """Live bytes besides weights and cache at the possible peaks of the last chunk, which attends to all keys.

    A chunk is a number of tokens over all texts of the batch, so more texts need more cache and no more of these bytes.
    """
    n, n_layers = work.source_len, config.n_decoder_layers
    rows = min(work.piece, work.batch * n)
    texts = min(work.batch, rows)  # with tokens in the chunk
    piece = StackPass(config, replace(work, batch=1, source_len=rows), "decoder", n_layers, rows, 0, "", path, False)
    inputs = work.batch * n * INT  # ids
    moments = {name: inputs + value for name, value in piece.moments().items()}
    before = inputs + piece._around() + piece._residual(0) + piece._normed() + piece.q + 2 * piece.kv(rows)
    if path == "fused":
        moments["decoder softmax and sum"] = before + piece._attend(n, cross=False)
    else:
        others = (
            (texts - 1) * 2 * n * config.n_heads * config.d_head * work.by
        )  # repeated keys and values of other texts
        moments["decoder scores and weights"] = before + others + piece._spelled_out(n, cross=False)
    positions = work.batch * work.logit_positions(config)
    last = max(rows, work.batch) * config.d_model * work.by
    moments["head"] = inputs + last + head_bytes(config, positions, work.by, probabilities=work.logits == "last")
    return moments


@dataclass(frozen=True)
class RunBytes:
    """Bytes. `captured` are q, k and v in the trace, and scores and weights if they are edited; `transient` is the rest of the peak."""

    weights: int
    captured: int
    transient: int
    total: int
    values: int  # of v in the trace; a long run can leave it out, see run_bytes
    moment: str  # name of the peak
    host: int = 0  # in addition, in host memory, if a run in chunks stores q, k and v there

    def to_dict(self) -> dict[str, int | str]:
        return asdict(self)


def run_bytes(
    config: ModelConfig,
    workload: Workload | None = None,
    *,
    keep_values: bool = True,
    spelled_out: bool = False,
    edited_rules: bool = False,
    **options: Any,
) -> RunBytes:
    """A close upper bound of the memory of core.trace, for a workload or one whose fields `options` name.

    Without a workload, several texts count as padded unless `padded` is given. `keep_values` is False for runs that do not store v.
    `spelled_out` is True for runs that edit scores or weights, which are then stored as tensors, `edited_rules` for runs that edit
    masks, scales or the softmax. Logits are computed at one position of each text. Scratch space inside kernels is not counted.
    Raises ConfigError for lengths below 1 and unknown formats.
    """
    work = of_texts(workload, options)
    work.check(config)
    moments, captured = pass_moments(
        config,
        work,
        keep="qkv" if keep_values else "qk",
        path="spelled_out" if spelled_out else "fused",
        all_logits=False,
        traced=True,
    )
    if edited_rules:
        longest = max(work.source_len, work.target_len)
        more = rule_bytes(config, work, longest, longest, spelled_out=spelled_out)
        moments |= {name: value + more for name, value in moments.items() if name.endswith(ATTENDING)}
    moment = max(moments, key=lambda name: moments[name])
    peak = max(moments[moment], captured)
    weights = weight_bytes(config, work.by)
    keys = sum(n_layers * (n + memory_len) for _, n_layers, n, memory_len in work.stacks(config))
    values = work.batch * keys * config.n_kv_heads * config.d_head * work.by
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment)


def weight_bytes(config: ModelConfig, by: int) -> int:
    """Bytes of the parameters, with RMS norms in float32 at least, and of sinusoid tables, which are not parameters."""
    tables = len(config.stacks) * config.n_ctx * config.d_model if config.position == "sinusoidal" else 0
    return (parameters(config).total + tables) * by + float32_parameters(config) * max(0, FLOAT - by)


def chunked_run_bytes(
    config: ModelConfig,
    workload: Workload | None = None,
    *,
    rows: int,
    keep_values: bool = True,
    on_host: bool = False,
    edited_rules: bool = False,
    **options: Any,
) -> RunBytes:
    """run_bytes() of a decoder that reads `rows` tokens at a time with a KV cache.

    With `on_host` the captured q, k and v are in host memory: `host` has their bytes and `captured` is 0, while the device still
    stores the keys and values of every layer to the end. An upper bound. Raises ConfigError as run_bytes does, for rows below 1, and
    for models other than decoders.
    """
    if config.kind != "decoder":
        raise ConfigError(f"a run in chunks is for decoders; this model is {config.kind}")
    if rows < 1:
        raise ConfigError(f"rows ({rows}) must be at least 1")
    work = of_texts(workload, options)
    work.check(config)
    batch, source_len = work.batch, work.source_len
    n_layers, by, rows = config.n_decoder_layers, work.by, min(rows, source_len)
    whole = StackPass(config, work, "decoder", n_layers, source_len, 0, "", "fused", True)
    chunk = StackPass(config, replace(work, source_len=rows), "decoder", n_layers, rows, 0, "", "fused", False)

    queries, values = n_layers * whole.q, n_layers * whole.kv(source_len)
    kept = queries + values + (values if keep_values else 0)
    inputs = whole.tokens * (2 * INT + 1) + (4 * len(config.stacks) + 1) * SAMPLED * by
    norms = (n_layers + 3) * whole.tokens * FLOAT  # of attention outputs, as chunks and joined
    beside = inputs + whole.noted * 2 + norms  # positions and angles exist twice: as chunks and joined
    beside += whole.stream if keep_values else 2 * batch * batch * config.d_model * by  # final residual stream
    held = beside + 2 * values + (0 if on_host else queries)
    moments = {name: held + value for name, value in chunk.moments().items()} | {
        f"decoder {name}": held + value for name, value in _chunk_attention(whole, chunk).items()
    }
    moments["decoder softmax and sum"] += chunk.q if on_host else 0  # made contiguous before the copy to the host
    if edited_rules:
        moments["decoder softmax and sum"] += rule_bytes(config, work, rows, source_len, spelled_out=False)
    moments["head"] = beside + (0 if on_host else kept) + head_bytes(config, batch, by, probabilities=True)
    moment = max(moments, key=lambda name: moments[name])
    captured = 0 if on_host else kept
    peak = max(moments[moment], captured)
    weights = weight_bytes(config, by)
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment, kept if on_host else 0)


def _chunk_attention(whole: StackPass, chunk: StackPass) -> dict[str, int]:
    """Possible peaks in the attention of the last chunk. The kernel does not support an offset of the queries, so that a numeric mask
    is made, a block of rows at a time."""
    config, by = whole.config, whole.by
    projected = chunk.q + 2 * chunk.kv(chunk.n)
    biased = config.position in ("relative", "alibi")
    z = chunk.q + chunk.tokens * config.n_heads * FLOAT
    row = whole.batch * (config.n_heads if biased else 1) * whole.n * by
    widest = 2 * chunk.q  # rows of the blocks, and their concatenation
    for window in {None if window is None else window for window in whole._windows(cross=False)}:
        block = min(chunk.n, max(1, BLOCK_BYTES // row))
        if window is not None:
            block = min(block, max(window, WINDOW_ROWS))
        keys = whole.n if window is None else min(whole.n, block + window - 1)
        mask = INT * (2 * block + keys) + whole._block(block * keys, biased=biased, windowed=window is not None)
        widest = max(widest, z + mask)
    before = chunk._around() + chunk._residual(0) + chunk._normed() + projected
    return {
        "softmax and sum": before + widest,
        "output projection": before + 2 * chunk.q + chunk.stream,
    }
