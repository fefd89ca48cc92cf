"""Recorder: records the shapes of all tensors of a run, and the values of a few."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor

from .. import device
from ..checkpoints import Loaded
from ..device import dtype_name
from ..model.hooks import Hook, HookPoint, hook_points
from ..model.rules import DistanceBias, ScoreRule
from ..model.text import Tokens
from ..model.transformer import Embedding
from .attention import AttentionRecord
from .forward_pass import Pass
from .predictions import head_of

# Values and the last residual stream are stored up to this many bytes per run; longer runs recompute them by another pass.
# A trace of 4,096 tokens thus stores only queries and keys.
HELD_BYTES = 32 << 20


@dataclass(frozen=True)
class TensorStep:
    """One named tensor of the pass, in order. `bytes` is its size, also if it is not materialised."""

    name: str  # module path of the hook point
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    materialised: bool = True
    note: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class PositionRecord:
    """Positional encoding of one stack. kind is the config's `position`.

    places [pos] are the positions that the model used. table() is [pos, d_model] for learned and sinusoidal positions;
    angles() is [pos, d_rotary/2] in radians for RoPE, which may differ in sliding-window layers; bias is the rule of ALiBi
    and relative positions. Each is None for the other kinds.
    """

    stack: str
    kind: str
    batch_places: Tensor
    batch_table: Callable[[], Tensor] | None = None
    batch_angles: Tensor | None = None
    batch_angles_windowed: Tensor | None = None
    bias: DistanceBias | None = None
    text: int = 0

    def __repr__(self) -> str:
        return f"<PositionRecord {self.stack}: {self.kind}, {self.batch_places.shape[-1]} places>"

    @property
    def places(self) -> Tensor:
        """[pos]"""
        return self._row(self.batch_places)

    def table(self) -> Tensor | None:
        """[pos, d_model]"""
        return None if self.batch_table is None else self._row(self.batch_table())

    def angles(self, windowed: bool = False) -> Tensor | None:
        """[pos, d_rotary/2]"""
        angles = self.batch_angles_windowed if windowed else self.batch_angles
        return None if angles is None else self._row(angles)

    def _row(self, x: Tensor) -> Tensor:
        return x[self.text if x.shape[0] > 1 else 0]


@dataclass(frozen=True)
class NonFinite:
    """The first non-finite residual-stream tensor of one text.

    `kind` is nan, or inf for a vector whose norm is beyond float32. layer is None before the first and after the last.
    """

    stack: str
    layer: int | None
    point: str  # the hook point
    what: str  # the point in words
    kind: Literal["nan", "inf"]
    position: int  # the first affected token


@dataclass
class Recorder:
    """Records one run: shapes at every hook point, values of a few."""

    forward: Pass
    hold_values: bool
    on_attention: Callable[[tuple[AttentionRecord, ...]], object]  # called after each attention of the pass
    edited: frozenset[str] = frozenset()  # hook points with an edit
    steps: list[TensorStep] = field(default_factory=list)
    records: list[AttentionRecord] = field(default_factory=list)
    norms: dict[str, Tensor] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)  # values of the current attention or stack, by hook point
    is_eager: frozenset[str] = frozenset()  # attentions that run eagerly, because of an edit
    measured: tuple[weakref.ref[Tensor], Tensor] | None = (
        None  # last tensor and its norm; weak, so that it can be freed
    )

    def __post_init__(self) -> None:
        self.edited = self.forward.edited
        self.is_eager = self.forward.is_eager

    def hooks(self) -> dict[str, Hook]:
        """A read hook for every point; for scores and pattern only if the attention is eager anyway."""
        hooks: dict[str, Hook] = {}
        for name, point in hook_points(self.forward.loaded.model).items():
            attention, kind = name.rsplit(".", 1)
            if kind in ("hook_scores", "hook_pattern") and attention not in self.is_eager:
                continue
            if kind == "hook_z":
                hooks[name] = partial(self.record_z, name, point)
            elif kind == "hook_o":
                hooks[name] = partial(self.record_attention, attention)
            elif kind == "hook_rule":
                hooks[name] = partial(self.record_rule, name)
            elif kind == "hook_position":
                hooks[name] = partial(self.record_positions, name, point, name in self.edited)
            elif point.is_public:
                hooks[name] = partial(self.record, name, point)
        return hooks

    def record(self, name: str, point: HookPoint, x: Tensor) -> None:
        self.step(name, point, x)
        kind = name.rsplit(".", 1)[-1]
        if kind in BY_HEAD:
            self.seen[name] = x.transpose(1, 2)
        elif kind in KEPT:
            self.seen[name] = x
        elif kind in MEASURED:
            self.norms[name] = self.length(x)

    def length(self, x: Tensor) -> Tensor:
        """‖x‖, [batch, pos]; computed once for a tensor that passes two points in a row, as between two layers."""
        if self.measured is None or self.measured[0]() is not x:
            self.measured = weakref.ref(x), torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32)
        return self.measured[1]

    def record_z(self, name: str, point: HookPoint, z: Tensor) -> None:
        self.step(name, point, z)
        if name in self.edited:
            self.seen[name] = self.keep(name, z.transpose(1, 2))

    def keep(self, name: str, x: Tensor) -> Callable[[], Tensor]:
        """v or z [batch, head, pos, d_head] at this point: stored, or for long runs recomputed by another pass."""
        return HeldTensor(x) if self.hold_values else partial(self.forward.again, name, lambda x: x.transpose(1, 2))

    def record_positions(self, name: str, point: HookPoint, keep: bool, x: Tensor) -> None:
        """Position embeddings are looked up in the model's table on demand, unless an edit changed them."""
        self.step(name, point, x)
        self.seen[name] = (lambda: x) if keep else None

    def record_rule(self, name: str, rule: ScoreRule) -> None:
        attention = name.removesuffix(".hook_rule")
        self.seen[name] = rule
        q = self.seen[f"{attention}.hook_q"]
        batch, n_heads, n_query, n_key = shape = (*q.shape[:2], rule.mask.n_query, rule.mask.n_key)
        cells = batch * n_query * n_key
        self._step("mask", attention, (batch, 1, n_query, n_key), "bool", cells, mask_words(rule))
        if attention not in self.is_eager:
            note = "inside the fused kernel: never a tensor, computed again for what is looked at"
            for what in ("scores", "pattern"):
                self._step(what, attention, shape, dtype_name(q.dtype), cells * n_heads * q.element_size(), note)

    def _step(self, what: str, attention: str, shape: tuple[int, ...], dtype: str, size: int, note: str) -> None:
        """A step of a tensor that is not materialised."""
        self.steps.append(TensorStep(f"{attention}.hook_{what}", SCORE_AXES, shape, dtype, size, False, note))

    def record_attention(self, name: str, out: Tensor) -> None:
        """Make the record of an attention from its values, after its output projection."""
        stack, _, layer, site = name.split(".")
        lengths = self.length(out)  # of its output, before the output norm if there is one
        result = f"{name}.hook_result"
        self.records.append(
            AttentionRecord(
                name,
                stack,
                int(layer),
                "cross_attn" if site == "cross_attn" else "attn",
                self.seen.pop(f"{name}.hook_q"),
                self.seen.pop(f"{name}.hook_k"),
                self.keep(f"{name}.hook_v", self.seen.pop(f"{name}.hook_v")),
                self.seen.pop(f"{name}.hook_rule"),
                partial(self.forward.linear, f"{name}.o"),
                replaced_scores=self.seen.pop(f"{name}.hook_scores", None),
                replaced_pattern=self.seen.pop(f"{name}.hook_pattern", None),
                edited_z=self.seen.pop(f"{name}.hook_z", None),
                edited_result=partial(self.forward.again, result) if result in self.edited else None,
                lengths=None if f"{name}.hook_o" in self.edited else lengths,
                run_device=lengths.device,
            )
        )
        self.on_attention(tuple(self.records))

    def step(self, name: str, point: HookPoint, x: Tensor) -> None:
        self.steps.append(TensorStep(name, point.axes, tuple(x.shape), dtype_name(x.dtype), x.nbytes))

    def position_records(self) -> tuple[PositionRecord, ...]:
        records, config = [], self.forward.loaded.config
        for stack, _ in config.stacks:
            places = self.seen[f"{stack}.hook_positions"]
            table = None
            if config.has_position_table:
                table = self.seen[f"{stack}.embed.hook_position"] or partial(table_rows, self.forward, stack, places)
            bias = next((r.batch_rule.bias for r in self.records if r.stack == stack and r.site == "attn"), None)
            records.append(
                PositionRecord(
                    stack,
                    config.position,
                    places,
                    table,
                    self.seen.get(f"{stack}.hook_angles"),
                    self.seen.get(f"{stack}.hook_angles_windowed"),
                    bias if isinstance(bias, DistanceBias) else None,
                )
            )
        return tuple(records)


def table_rows(forward: Pass, stack: str, places: Tensor) -> Tensor:
    """[batch or 1, pos, d_model]: the position embeddings that the model added. Raises Outdated."""
    forward.weights.check()
    with torch.inference_mode():
        embed = forward.loaded.model.get_submodule(f"{stack}.embed")
        assert isinstance(embed, Embedding)
        return embed.position_embeddings(places)


# By the last part of the name: values to store, and points whose norm is recorded.
KEPT = frozenset(
    f"hook_{what}" for what in ("q", "k", "v", "scores", "pattern", "positions", "angles", "angles_windowed")
)
BY_HEAD = frozenset(("hook_q", "hook_k", "hook_v"))  # stored as [batch, head, pos, d_head]
STREAM_WORDS = {
    "embed": "the embedding",
    "resid_pre": "the residual stream before the layer",
    "attn_out": "attention",
    "resid_mid": "the residual stream after attention",
    "cross_out": "cross-attention",
    "resid_cross": "the residual stream after cross-attention",
    "mlp_out": "the MLP",
    "resid_post": "the residual stream after the layer",
    "final": "the last norm",
}
STREAM = tuple(STREAM_WORDS)
MEASURED = frozenset(f"hook_{what}" for what in STREAM)
SCORE_AXES = ("batch", "head", "query", "key")


class Attentions(tuple[AttentionRecord, ...]):
    """The attentions of a run in the order of the pass, by index or by layer and site."""

    def at(self, layer: int, site: str = "attn", stack: str | None = None) -> AttentionRecord:
        """The attention of one layer; stack None is the model's last stack. Raises KeyError that lists the attentions."""
        stack = self[-1].stack if stack is None and self else stack
        for record in self:
            if (record.stack, record.layer, record.site) == (stack, layer, site):
                return record
        raise KeyError(f"no {site} in {stack} layer {layer}; there are: {', '.join(record.name for record in self)}")

    def __repr__(self) -> str:
        ends = f"{self[0].name} to {self[-1].name}" if self else "none yet"
        return f"<{len(self)} attentions: {ends}>"


@dataclass(frozen=True, eq=False)
class HeldTensor:
    """A stored tensor, with the interface of a recomputed one."""

    tensor: Tensor

    def __call__(self) -> Tensor:
        return self.tensor


@dataclass(frozen=True, eq=False)
class LastResidual:
    """The last residual stream [batch, pos, d_model]: stored rows, or all rows from another pass."""

    held: dict[int, Tensor] | Tensor
    run_again: Callable[[], Tensor]

    def __call__(self, positions: Tensor) -> Tensor:
        if isinstance(self.held, Tensor):
            return self.held[:, positions]
        wanted = positions.tolist()
        if all(p in self.held for p in wanted):
            return torch.stack([self.held[p] for p in wanted], dim=1)
        return self.run_again()[:, positions]


def first_non_finite(norms: dict[str, Tensor], padding: dict[str, tuple[bool, ...]]) -> NonFinite | None:
    """The first non-finite of `norms` [pos] by hook point, in the order of the pass; `padding` is ignored."""
    for stack, pads in padding.items():
        names = [name for name in norms if name.startswith(f"{stack}.")]
        if not names:
            continue
        every = torch.stack([norms[name] for name in names])  # [point, pos]
        real = ~torch.tensor(pads, device=every.device)
        bad = ~every.isfinite() & real
        if not bad.any():
            continue
        row = int(bad.any(-1).int().argmax())
        position = int(bad[row].int().argmax())
        parts = names[row].split(".")
        return NonFinite(
            stack,
            int(parts[2]) if parts[1] == "blocks" else None,
            names[row],
            STREAM_WORDS[parts[-1].removeprefix("hook_")],
            "nan" if every[row, position].isnan() else "inf",
            position,
        )
    return None


def held_bytes(values: Callable[..., Tensor] | None) -> int:
    """Bytes stored for a record's values or a trace's last residual; 0 if they are recomputed."""
    kept: list[Tensor] = []
    if isinstance(values, HeldTensor):
        kept = [values.tensor]
    elif isinstance(values, LastResidual):
        kept = [values.held] if isinstance(values.held, Tensor) else list(values.held.values())
    return sum(t.nbytes for t in kept)


def residual_of(final: Tensor, run_again: Callable[[], Tensor], tokens: tuple[Tokens, ...], hold: bool) -> LastResidual:
    """All rows with `hold`, otherwise those of the last real token of each text."""
    if hold:
        return LastResidual(final, run_again)
    return LastResidual({end: final[:, end].clone() for end in last_rows(tokens)}, run_again)


def last_rows(tokens: tuple[Tokens, ...]) -> set[int]:
    """Position of the last real token of each text."""
    return {max(i for i, padding in enumerate(t.padding) if not padding) for t in tokens}


def logits_step(loaded: Loaded, batch: int) -> tuple[TensorStep, ...]:
    if loaded.model.head is None:
        return ()
    shape = (batch, 1, loaded.config.vocab_size)
    size = shape[0] * shape[2] * loaded.dtype.itemsize
    note = "computed when asked for, one position at a time"
    return (
        TensorStep("head.hook_logits", ("batch", "pos", "vocab"), shape, dtype_name(loaded.dtype), size, False, note),
    )


def mask_words(rule: ScoreRule) -> str:
    """What the mask hides, in words: the note of its row in the table of shapes."""
    mask = rule.mask
    parts = [
        *(["the future"] if mask.causal else []),
        *([f"what is {mask.window} or more positions away"] if mask.window is not None else []),
        *(["padding"] if mask.keep is not None else []),
        *(["cells edited by hand"] if mask.edits else []),
    ]
    return f"a rule, not a tensor: hides {', '.join(parts)}" if parts else "nothing is hidden"


PLACES = ("pos", "query", "key")  # the axes that count tokens
ADVICE = "Ask for fewer positions, or run a shorter text."


def activation(
    forward: Pass,
    records: Sequence[AttentionRecord],
    last_residual: Callable[[Tensor], Tensor],
    point: str,
    text: int,
    positions: Sequence[int] | None,
) -> Tensor:
    """The activation at `point` of one text, without the batch axis: see TraceRecord.activation()."""
    sizes = _axis_sizes(forward, point)
    place = next((i for i, axis in enumerate(sizes) if axis in PLACES), None)
    if place is None:
        raise KeyError(f"{point} has no positions")
    n = sizes[list(sizes)[place]]
    chosen = check_positions(positions, n)
    numbers = prod(sizes.values()) // sizes["batch"] // n * len(chosen)
    name, kind = point.rsplit(".", 1)
    record = next((record for record in records if record.name == name), None)
    if record is not None and kind in ("hook_scores", "hook_pattern"):
        _admit(forward, numbers * 4, point)
        record = record.of(text)
        return record.scores(queries=chosen) if kind == "hook_scores" else record.pattern(queries=chosen)
    rows = torch.tensor(chosen, device=forward.loaded.device)
    itemsize = forward.loaded.dtype.itemsize
    if kind == "hook_logits":
        head = head_of(forward.loaded)
        _admit(forward, 2 * numbers * itemsize, point)
        forward.weights.check()
        with torch.inference_mode():
            logits = head(last_residual(rows)[text][None])[0]
        forward.weights.check()
        return logits
    if record is not None and kind in BY_HEAD:
        stored = {"q": lambda: record.batch_q, "k": lambda: record.batch_k, "v": record.values}[kind[-1]]()[text]
        return stored.transpose(0, 1).index_select(0, rows.to(stored.device)).to(rows.device)
    # The pass holds the whole tensor of all texts for a moment; only the requested part is kept.
    _admit(forward, (numbers + prod(sizes.values())) * itemsize + forward.transient(), point)
    return forward.again(point, lambda x: x[text if x.shape[0] > 1 else 0].index_select(place - 1, rows))


def check_positions(positions: Sequence[int] | None, n: int) -> list[int]:
    """The requested positions, or all n if None. Raises IndexError for one out of range."""
    chosen = list(range(n)) if positions is None else list(positions)
    if bad := [p for p in chosen if not 0 <= p < n]:
        raise IndexError(f"position {bad[0]} of {n}")
    return chosen


def _axis_sizes(forward: Pass, point: str) -> dict[str, int]:
    """Length of every axis of this hook point, in order. Raises KeyError for an unknown point or one without a tensor."""
    points = hook_points(forward.loaded.model)
    if point not in points:
        raise KeyError(f"no such hook point: {point}")
    if not points[point].axes:
        raise KeyError(f"{point} is a rule and no numbers: records have it as `rule`")
    config, prompt = forward.loaded.config, forward.prompt
    own = prompt.source_len if point.startswith("encoder.") or prompt.targets is None else prompt.target_len
    sizes = {
        "batch": prompt.batch,
        "pos": own,
        "query": own,
        "key": prompt.source_len if ".cross_attn." in point else own,
        "head": config.n_heads,
        "kv_head": config.n_kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_embed": config.embed_width,
        "d_ff": config.d_ff,
        "expert": config.n_experts,
        "d_rotary/2": config.d_rotary // 2,
        "vocab": config.vocab_size,
    }
    return {axis: sizes[axis] for axis in points[point].axes}


def _admit(forward: Pass, needed: int, point: str) -> None:
    device.check_fits_or_retry(needed, forward.loaded.device, f"The numbers at {point}", ADVICE)
