"""Memory that autograd keeps of one layer for the backward pass, tensor by tensor, and the five terms a textbook counts instead.

Every entry is a storage of its own: a tensor that two operations need is counted once. The MLP, the norms and the residual
stream are core.model's. Attention can be done in four ways:

eager        the textbook: softmax(mask(q kᵀ / √d)) v, keys and values repeated only where heads share them
spelled_out  core.model with a hook on its scores: one more copy of the weights, and always a mask
efficient    the memory-efficient kernel: no map, one log-sum-exp per row, padded to 32 rows (Rabe & Staats 2021)
flash        FlashAttention (Dao et al. 2022): the same with no padding, grouped keys and values as they are
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..model.config import ModelConfig
from .workload import Attention, Workload

FLOAT = 4  # statistics are float32 whatever the weights are
INT = 8


@dataclass(frozen=True)
class SavedItem:
    """One kept tensor, or several of one kind."""

    name: str
    bytes: int
    why: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def lesson_terms(config: ModelConfig, workload: Workload) -> dict[str, int]:
    """A textbook's five terms of one layer, in bytes: 9 streams and one map where autograd keeps 16 and one."""
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
    """The kept tensors of one block with n queries, and memory_len keys from the encoder where it has cross-attention.

    `window` is this layer's. `workload.dropout` counts the dropout of the textbook (after the weights, after each sublayer and
    inside the MLP) with masks of one byte, as a GPU keeps them.
    """
    batch = workload.batch
    layer = _Layer(config, batch, n, workload.by, workload.attention, workload.dropout)
    window = None if window is None or window >= n else window
    items: list[SavedItem] = []
    if config.parallel:
        items += layer.norm("attn_norm", config.d_model, batch * n)
        items += layer.self_attention(causal, window)
        items += layer.norm("mlp_norm", config.d_model, batch * n, shared_input=True)
        return (*items, *layer.mlp())
    items += layer.sublayer("attn", layer.self_attention(causal, window))
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
    """Memory kept of one stack beside its layers: ids, angles, the embedding's and the final norm."""
    batch, by = workload.batch, workload.by
    layer = _Layer(config, batch, n, by, "eager", False)
    items = [SavedItem("ids", batch * n * INT, "the token table's gradient goes to these rows")]
    if config.n_token_types:
        items.append(SavedItem("token type ids", batch * n * INT, "the same for the table of token types"))
    if config.position == "learned":
        items.append(SavedItem("position ids", n * INT, "the same for the table of positions"))
    if config.position == "rotary":
        n_layers = dict(config.stacks)[name]
        # layers with a window may have angles of their own; angles that no layer uses are not kept
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
        """A sublayer with its norms: its input is kept by its first product, in post-norm without a norm before it."""
        rows, width = self.batch * self.n, self.config.d_model
        after = [self._dropped(f"{name} out", self.batch * self.n * width)] if self.dropout else []
        if self.config.norm_order == "post":
            return [*body, *after, *self.norm(f"{name}_norm", width, rows)]
        items = [*self.norm(f"{name}_norm", width, rows), *body]
        if self.config.norm_order == "sandwich":
            items += self.norm(f"{name}_out_norm", width, rows)
        return items + after

    def norm(self, name: str, width: int, rows: int, *, shared_input: bool = False) -> list[SavedItem]:
        """`shared_input`: an earlier layer keeps the same input tensor."""
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

    def self_attention(self, causal: bool, window: int | None) -> list[SavedItem]:
        return self.attend("attn", self.n, causal=causal, window=window, own=True)

    def attend(
        self, name: str, n_key: int, *, causal: bool = False, window: int | None = None, own: bool = False
    ) -> list[SavedItem]:
        """`own`: self-attention, which is where positions enter. Cross-attention's memory is kept once, not per layer."""
        config, by = self.config, self.by
        kv = self.batch * n_key * config.n_kv_heads * config.d_head * by
        repeated = self.batch * n_key * config.n_heads * config.d_head * by
        weights = self.batch * config.n_heads * self.n * n_key
        grouped = config.n_heads != config.n_kv_heads
        biased = own and config.position in ("alibi", "relative")
        items = [SavedItem(f"{name} input", self.stream, "for the gradients of the q, k and v weights")]
        if config.qk_norm:
            items += self.norm(f"{name} q_norm", config.d_head, self.batch * self.n * config.n_heads)
            items += self.norm(f"{name} k_norm", config.d_head, self.batch * n_key * config.n_kv_heads)
        if own and config.position == "relative":
            items.append(SavedItem(f"{name} buckets", self.n * n_key * INT, "rows of the bias table"))
        expanded = self.attention == "spelled_out" or (grouped and self.attention != "flash")
        items.append(SavedItem(f"{name} q", self.q, "for the gradient of k"))
        items.append(
            SavedItem(f"{name} k and v", 2 * (repeated if expanded else kv), "for the gradients of q and weights")
        )
        if self.attention in ("eager", "spelled_out"):
            if self.attention == "spelled_out" or causal or window is not None:
                items.append(SavedItem(f"{name} mask", self.n * n_key, "one byte a cell"))
            items.append(SavedItem(f"{name} weights", weights * by, "softmax needs its own output"))
            if self.attention == "spelled_out":
                rows = weights // n_key  # and which of them see nothing, one byte each
                why = "zeros for rows that see nothing, for the gradient of v"
                items.append(SavedItem(f"{name} weights, copy", weights * by + rows, why))
            if self.dropout:
                items.append(self._dropped(f"{name} weights", weights))
                items.append(SavedItem(f"{name} weights, dropped", weights * by, "for the gradient of v"))
            items.append(SavedItem(f"{name} z", self.q, "for the gradient of the output projection"))
            return items
        if biased or window is not None:
            heads = config.n_heads if biased else 1
            items.append(SavedItem(f"{name} bias", heads * self.n * n_key * by, "mask and bias as numbers"))
        rows = self.n if self.attention == "flash" else -(-self.n // 32) * 32
        items.append(SavedItem(f"{name} z", self.q, "for the output projection, and to work the weights out again"))
        items.append(SavedItem(f"{name} log-sum-exp", self.batch * config.n_heads * rows * FLOAT, "one a row"))
        return items

    def mlp(self) -> list[SavedItem]:
        """Which of gate, up and activation is kept depends on what each gradient needs."""
        config = self.config
        numbers = self.batch * self.n * config.d_ff
        hidden = numbers * self.by
        items = [SavedItem("mlp input", self.stream, "for the gradients of the up weights")]
        relu = config.activation == "relu"  # its gradient can be told from its output
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
    """What the head keeps of so many positions, the loss not counted."""
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
