"""Memory of training: saved activations, gradients, optimizer state and low-rank adapters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from ..device import dtype_name
from ..model.config import ModelConfig
from .parameters import Matrix, matrices, projections, with_layers
from .workload import FLOAT, INT, Attention, Optimizer, Workload, rare_parts, weight_format


@dataclass(frozen=True)
class SavedItem:
    """One saved tensor, or several of one kind."""

    name: str
    bytes: int
    why: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def lesson_terms(config: ModelConfig, workload: Workload) -> dict[str, int]:
    """A textbook's five terms of one layer, in bytes: 9 streams and one map, where autograd saves 16 and one."""
    batch, n, by = workload.batch, workload.source_len, workload.by
    tokens, heads = batch * n, config.n_heads * config.d_head
    terms = {
        "input": tokens * config.d_model * by,
        "qkv": tokens * (heads + 2 * config.n_kv_heads * config.d_head) * by,
        "scores": batch * config.n_heads * n * n * by,
        "attn_out": tokens * heads * by,
        "ffn_hidden": tokens * config.d_ff * by,
    }
    return terms | {"total": sum(terms.values())}


def saved_layer(
    config: ModelConfig,
    workload: Workload,
    *,
    causal: bool,
    n: int,
    memory_len: int = 0,
    window: int | None = None,
) -> tuple[SavedItem, ...]:
    """Saved tensors of one block with n queries, and memory_len keys from the encoder for cross-attention.

    `window` is the one of this layer. `workload.dropout` adds the dropout of the textbook, after the weights, after each sublayer
    and inside the MLP, with masks of one byte per number, as on a GPU.
    """
    batch = workload.batch
    layer = _Layer(config, batch, n, workload.by, workload.attention, workload.dropout)
    window = None if window is None or window >= n else window
    items: list[SavedItem] = []
    if config.parallel:
        items += layer.norm("attn_norm", config.d_model, batch * n)
        items += layer.attend("attn", n, causal=causal, window=window, own=True)
        items += layer.norm("mlp_norm", config.d_model, batch * n, shared_input=True)
        return (*items, *layer.mlp())
    items += layer.sublayer("attn", layer.attend("attn", n, causal=causal, window=window, own=True))
    if memory_len:
        items += layer.sublayer("cross", layer.attend("cross_attn", memory_len))
    items += layer.sublayer("mlp", layer.mlp())
    return tuple(items)


def saved_outside(
    config: ModelConfig,
    workload: Workload,
    *,
    name: Literal["encoder", "decoder"],
    n: int,
    feeds_decoder: bool = False,
) -> tuple[SavedItem, ...]:
    """Saved tensors of one stack outside its layers: ids, angles, and the norms after the embedding and the last layer."""
    batch, by = workload.batch, workload.by
    layer = _Layer(config, batch, n, by, "eager", False)
    items = [SavedItem("ids", batch * n * INT, "the token table's gradient goes to these rows")]
    if config.n_token_types:
        items.append(SavedItem("token type ids", batch * n * INT, "the same for the table of token types"))
    if config.position == "learned":
        items.append(SavedItem("position ids", n * INT, "the same for the table of positions"))
    if config.position == "rotary":
        n_layers = dict(config.stacks)[name]
        # Layers with a window may have their own angles. Angles that no layer uses are not saved.
        some_have_none = 0 < config.n_windowed(n_layers) < n_layers
        kinds = 2 if config.rotary_base_windowed is not None and some_have_none else 1
        items.append(SavedItem("angles", kinds * n * config.d_rotary * by, "cosines and sines, for every layer"))
    if config.embed_norm:
        items += layer.norm("embed_norm", config.d_model, batch * n)
    if config.final_norm:
        items += layer.norm("final_norm", config.d_model, batch * n)
    if feeds_decoder:
        items.append(SavedItem("memory", layer.stream, "every cross-attention's keys and values come from it"))
    return tuple(SavedItem(f"{name} {item.name}", item.bytes, item.why) for item in items)


@dataclass(frozen=True)
class _Layer:
    config: ModelConfig
    batch: int
    n: int
    by: int
    attention: Attention
    dropout: bool

    @property
    def stream(self) -> int:
        return self.batch * self.n * self.config.d_model * self.by

    @property
    def q(self) -> int:
        return self.batch * self.n * self.config.n_heads * self.config.d_head * self.by

    def sublayer(self, name: str, body: list[SavedItem]) -> list[SavedItem]:
        """A sublayer with its norms. Its first product saves its input; a post-norm block has no norm before it."""
        rows, width = self.batch * self.n, self.config.d_model
        after = [self._dropped(f"{name} out", self.batch * self.n * width)] if self.dropout else []
        if self.config.norm_order == "post":
            return [*body, *after, *self.norm(f"{name}_norm", width, rows)]
        items = [*self.norm(f"{name}_norm", width, rows), *body]
        if self.config.norm_order == "sandwich":
            items += self.norm(f"{name}_out_norm", width, rows)
        return items + after

    def norm(self, name: str, width: int, rows: int, *, shared_input: bool = False) -> list[SavedItem]:
        """`shared_input`: an earlier layer saves the same input tensor."""
        size = rows * width
        kept = SavedItem(f"{name} input", size * self.by, "to normalise it again")
        if self.config.norm == "layer":
            statistics = SavedItem(f"{name} statistics", 2 * rows * FLOAT, "mean and 1/σ of each token")
            return [statistics] if shared_input else [kept, statistics]
        items = [
            SavedItem(f"{name} statistics", rows * FLOAT, "1/√mean(x²) of each token"),
            SavedItem(f"{name} normalised", size * FLOAT, "for the gradient of the weight"),
        ]
        if self.by != FLOAT:
            return [SavedItem(f"{name} input", size * FLOAT, "a float32 copy"), *items]
        return items if shared_input else [kept, *items]

    def attend(
        self, name: str, n_key: int, *, causal: bool = False, window: int | None = None, own: bool = False
    ) -> list[SavedItem]:
        """`own`: self-attention, which uses positions. The memory of cross-attention is saved once, not per layer."""
        config = self.config
        key_heads = self.batch * n_key * config.n_kv_heads
        items = [SavedItem(f"{name} input", self.stream, "for the gradients of the q, k and v weights")]
        if config.qk_norm:
            items += self.norm(f"{name} q_norm", config.d_head, self.batch * self.n * config.n_heads)
            items += self.norm(f"{name} k_norm", config.d_head, key_heads)
        if own and config.position == "relative":
            items.append(SavedItem(f"{name} buckets", self.n * n_key * INT, "rows of the bias table"))
        items.append(SavedItem(f"{name} q", self.q, "for the gradient of k"))
        grouped = config.n_heads != config.n_kv_heads
        if self.attention == "spelled_out" or (grouped and self.attention != "flash"):
            key_heads = self.batch * n_key * config.n_heads  # repeated
        kv = 2 * key_heads * config.d_head * self.by
        items.append(SavedItem(f"{name} k and v", kv, "for the gradients of q and weights"))
        if self.attention in ("eager", "spelled_out"):
            return items + self._maps(name, n_key, masked=causal or window is not None)
        return items + self._fused(name, n_key, biased=own and config.position in ("alibi", "relative"), window=window)

    def _maps(self, name: str, n_key: int, *, masked: bool) -> list[SavedItem]:
        """Tensors with a number for each cell of the attention maps, and z."""
        rows = self.batch * self.config.n_heads * self.n
        weights, in_steps = rows * n_key, self.attention == "spelled_out"
        items = []
        if in_steps or masked:
            items.append(SavedItem(f"{name} mask", self.n * n_key, "one byte a cell"))
        items.append(SavedItem(f"{name} weights", weights * self.by, "softmax needs its own output"))
        if in_steps:  # one byte a row tells which rows see nothing
            why = "zeros for rows that see nothing, for the gradient of v"
            items.append(SavedItem(f"{name} weights, copy", weights * self.by + rows, why))
        if self.dropout:
            items.append(self._dropped(f"{name} weights", weights))
            items.append(SavedItem(f"{name} weights, dropped", weights * self.by, "for the gradient of v"))
        return [*items, SavedItem(f"{name} z", self.q, "for the gradient of the output projection")]

    def _fused(self, name: str, n_key: int, *, biased: bool, window: int | None) -> list[SavedItem]:
        """z and the statistics of the fused kernel, which recomputes the attention weights."""
        heads, items = self.config.n_heads, []
        if biased or window is not None:
            cells = (heads if biased else 1) * self.n * n_key
            items.append(SavedItem(f"{name} bias", cells * self.by, "mask and bias as numbers"))
        rows = self.n if self.attention == "flash" else -(-self.n // 32) * 32
        items.append(SavedItem(f"{name} z", self.q, "for the output projection, and to work the weights out again"))
        return [*items, SavedItem(f"{name} log-sum-exp", self.batch * heads * rows * FLOAT, "one a row")]

    def mlp(self) -> list[SavedItem]:
        """Gate, up and activation are saved if a gradient needs them."""
        config = self.config
        numbers = self.batch * self.n * config.d_ff
        hidden = numbers * self.by
        items = [SavedItem("mlp input", self.stream, "for the gradients of the up weights")]
        relu = config.activation == "relu"  # its gradient follows from its output
        if config.gated:
            if not relu:
                items.append(SavedItem("mlp gate", hidden, "for the gradient of the activation"))
            items.append(SavedItem("mlp activation", hidden, "for the gradient of up"))
            items.append(SavedItem("mlp up", hidden, "for the gradient of the activation"))
        elif not relu:
            items.append(SavedItem("mlp up", hidden, "for the gradient of the activation"))
        elif self.dropout:
            items.append(SavedItem("mlp activation", hidden, "for the gradient of relu"))
        items.append(SavedItem("mlp hidden", hidden, "for the gradient of the down weights"))
        return [*items, self._dropped("mlp hidden", numbers)] if self.dropout else items

    def _dropped(self, name: str, numbers: int) -> SavedItem:
        return SavedItem(f"{name} dropout", numbers, "which were dropped, one byte each")


def saved_head(config: ModelConfig, *, positions: int, by: int) -> tuple[SavedItem, ...]:
    """Saved tensors of the head at this number of positions, without the loss."""
    if config.head == "none":
        return ()
    stream = positions * config.d_model * by
    items = [SavedItem("head input", stream, "for the gradient of the unembedding")]
    if config.head == "mlm":
        layer = _Layer(config, 1, positions, by, "eager", False)
        items.append(SavedItem("head dense input", stream, "for the gradient of the dense weights"))
        if config.activation == "relu":
            items.append(SavedItem("head activation", stream, "for the gradient of relu and of the norm"))
        else:
            items.append(SavedItem("head dense", stream, "for the gradient of the activation"))
        items += layer.norm("head norm", config.d_model, positions, shared_input=config.activation == "relu")
    return tuple(items)


# Saved tensors that only the gradients of frozen norms, tables and heads need. The input of a matrix is still needed for A.
_OF_FROZEN = ("normalised", "head input", "head dense input", "buckets")


@lru_cache(maxsize=256)
def adapted(config: ModelConfig) -> tuple[Matrix, ...]:
    """The matrices with an adapter: all matrices of the layers, not tables and the unembedding."""
    return tuple(matrix for matrix in matrices(config) if matrix.stack and matrix.name != "embed project")


def adapter_numbers(config: ModelConfig, rank: int) -> int:
    """Parameters of all adapters: rank · (inputs + outputs) for each matrix of the layers."""
    return sum(matrix.times * rank * (matrix.rows + matrix.width) for matrix in adapted(config))


def kept_with_adapters(
    items: Iterable[SavedItem], config: ModelConfig, work: Workload, *, n: int, memory_len: int
) -> tuple[SavedItem, ...]:
    """Saved tensors of one layer if only its adapters are trained: each adapter saves the `rank` outputs of A for every token."""
    rows = n * (len(list(projections(config))) + (3 if config.gated else 2))
    if memory_len:  # keys and values of cross-attention have the positions of the other text
        rows += 2 * n + 2 * memory_len
    kept = SavedItem("adapters", work.batch * rows * work.rank * work.by, "what A gives, for the gradient of B")
    return (*kept_frozen(items), kept)


def kept_frozen(items: Iterable[SavedItem]) -> tuple[SavedItem, ...]:
    """Saved tensors without those that only the gradients of frozen weights need."""
    return tuple(item for item in items if not item.name.endswith(_OF_FROZEN) and " embed_norm " not in item.name)


def adapter_work(config: ModelConfig, work: Workload) -> int:
    """Temporary bytes of the largest adapter in addition to those of its layer.

    They are the gradients of its input and output, one new gradient of its weights, and its frozen matrix if that is dequantized.
    """
    rows = work.batch * max(work.source_len, work.target_len) + work.rank
    widest = max(matrix.rows + matrix.width for matrix in adapted(config))
    quantized = work.weight_dtype is not None and weight_format(work.weight_dtype) != dtype_name(work.dtype)
    return widest * rows * work.by + (unpacked(config, work.by) if quantized else 0)


def unpacked(config: ModelConfig, by: int) -> int:
    """Bytes of the largest matrix of the layers at `by` bytes a number, the size of a dequantized copy."""
    return max(matrix.rows * matrix.width for matrix in adapted(config)) * by


STATES = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}  # float32 numbers per parameter


@dataclass(frozen=True)
class Kept:
    """Saved activations of the whole model. `layers` groups the layers of each stack that save the same tensors."""

    layers: tuple[KeptLayers, ...]
    outside: tuple[SavedItem, ...]

    @property
    def total(self) -> int:
        return sum(layers.total for layers in self.layers) + sum(item.bytes for item in self.outside)


@dataclass(frozen=True)
class KeptLayers:
    """`times` layers of one stack that save the same tensors; `items` are those of one layer."""

    stack: str
    times: int
    items: tuple[SavedItem, ...]

    @property
    def per_layer(self) -> int:
        return sum(item.bytes for item in self.items)

    @property
    def total(self) -> int:
        return self.times * self.per_layer

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"per_layer": self.per_layer, "total": self.total}


def optimizer_bytes(n_parameters: int, optimizer: Optimizer) -> int:
    """float32 averages: of the gradient for momentum, of it and of its square for Adam (Kingma & Ba 2015)."""
    return STATES[optimizer] * FLOAT * n_parameters


def master_bytes(n_parameters: int, by: int) -> int:
    """The float32 master copy of 16-bit weights (Micikevicius et al. 2018); 0 for float32 weights."""
    return FLOAT * n_parameters if by < FLOAT else 0


def kept_activations(config: ModelConfig, workload: Workload) -> Kept:
    """Activations that autograd saves in a forward pass, without the loss.

    With recompute "attention", scores and weights are freed and recomputed; with "full", only the input of each layer is saved
    (Korthikanti et al. 2022, arXiv:2205.05198, §5). Empty for models that core.plan.workload rejects for training.
    """
    layers: list[KeptLayers] = []
    outside: list[SavedItem] = []
    if rare_parts(config):
        return Kept((), ())
    for name, n_layers, n, memory_len in workload.stacks(config):
        windowed = config.n_windowed(n_layers)
        for times, window in ((n_layers - windowed, None), (windowed, config.window)):
            causal = name == "decoder" and config.causal
            items = saved_layer(config, workload, causal=causal, n=n, memory_len=memory_len, window=window)
            if workload.rank:
                items = kept_with_adapters(items, config, workload, n=n, memory_len=memory_len)
            if times:
                layers.append(KeptLayers(name, times, _recomputed(config, workload, items, n)))
        feeds = config.kind == "encoder-decoder" and name == "encoder"
        outside += saved_outside(config, workload, name=name, n=n, feeds_decoder=feeds)
    outside += saved_head(config, positions=workload.batch * workload.last_len, by=workload.by)
    return Kept(tuple(layers), kept_frozen(outside) if workload.rank else tuple(outside))


def _recomputed(config: ModelConfig, workload: Workload, items: tuple[SavedItem, ...], n: int) -> tuple[SavedItem, ...]:
    if workload.recompute == "full":
        stream = workload.batch * n * config.d_model * workload.by
        return (SavedItem("layer input", stream, "the layer is run again from it"),)
    if workload.recompute == "attention":
        return tuple(item for item in items if not any(what in item.name for what in (" weights", " mask", " buckets")))
    return items


def backward_work(config: ModelConfig, workload: Workload) -> int:
    """Upper bound of the temporary buffers of the backward pass, besides gradients and saved activations."""
    return max(backward_moments(config, workload).values())


def backward_moments(config: ModelConfig, workload: Workload) -> dict[str, int]:
    """Upper bounds of the bytes, besides gradients and saved activations, at the possible peaks of a backward pass.

    loss: logits, their log-probabilities and the gradients of both. layer: the largest one, including its recomputed activations.
    table: the gradient of a token table while it is accumulated, unless only adapters are trained.
    """
    batch, by, n = workload.batch, workload.by, workload.last_len
    words = config.vocab_size if config.head != "none" else config.d_model
    logits = batch * n * words * by
    longest = max(workload.source_len, workload.target_len)
    tokens = batch * longest
    heads = tokens * config.n_heads * config.d_head * by
    stream = max(tokens * config.d_model * FLOAT, 2 * heads)  # norms compute in float32
    hidden = tokens * config.d_ff * by
    cells = max(n, workload.source_len) * longest
    maps = batch * config.n_heads * cells * by if workload.attention in ("eager", "spelled_out") else 0
    layer = 6 * stream + max((3 if config.gated else 2) * hidden, 2 * maps + 2 * maps // by + 4 * heads)
    if config.position in ("relative", "alibi") or config.window is not None:  # distances, buckets and the bias
        distances = 53 if config.position == "relative" else 2 * INT + 2
        layer = max(layer, 6 * stream + maps + heads + cells * (distances + FLOAT * config.n_heads))
    uses = len(config.stacks) + (1 if config.tied and config.head != "none" else 0)
    table = config.vocab_size * config.d_model * by
    added_up = table if uses > 1 else 0  # the gradient of the first use of a shared table
    weight = config.d_model * max(config.d_ff, config.n_heads * config.d_head) * by  # a gradient before accumulation
    if workload.recompute != "none":
        whole = kept_activations(with_layers(config, 1), replace(workload, recompute="none", dropout=False))
        layer += max(layers.per_layer for layers in whole.layers)
    if workload.rank:  # tables have no gradient
        return {"loss": max(3 * logits, 2 * logits + stream), "layer": layer + adapter_work(config, workload)}
    return {
        "loss": max(3 * logits, 2 * logits + table + stream),
        "layer": layer + added_up + weight,
        "table": 2 * added_up + table + stream,
    }
