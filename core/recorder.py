"""Recorder: what one run leaves behind, shapes of everything and values of little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .attention import AttentionRecord
from .checkpoints import Loaded
from .hooks import Hook, HookPoint, hook_points
from .model import Embedding
from .rules import DistanceBias, ScoreRule
from .text import Tokens

# Values and the last residual stream are held up to this many bytes a run; longer runs get them back by running the pass
# once more. It is what keeps a trace of 4,096 tokens at its queries and keys.
HELD_BYTES = 32 << 20


@dataclass(frozen=True)
class Step:
    """One named moment of the pass, in order. `bytes` is what the tensor takes, or would take where it never existed."""

    name: str  # module path of the hook point
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    materialised: bool = True
    note: str = ""


@dataclass(frozen=True, eq=False)
class PositionRecord:
    """How one stack learns the order of its tokens. kind is the config's `position`.

    places [pos] are the positions the model used. table() is [pos, d_model] for learned and sinusoidal positions,
    angles() [pos, d_rotary/2] in radians for rotary ones (the layers with a window may have their own); bias is the rule
    of ALiBi and relative positions. What a kind does not have is None.
    """

    stack: str
    kind: str
    batch_places: Tensor
    batch_table: Callable[[], Tensor] | None = None
    batch_angles: Tensor | None = None
    batch_angles_windowed: Tensor | None = None
    bias: DistanceBias | None = None
    text: int = 0

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


@dataclass
class Recorder:
    """What one run leaves behind: it looks at every hook point and keeps shapes of everything, values of little."""

    loaded: Loaded
    hold_values: bool
    run_again: Callable[[str], Tensor]
    left: Callable[[], object]  # called when the pass has left an attention
    steps: list[Step] = field(default_factory=list)
    records: list[AttentionRecord] = field(default_factory=list)
    norms: dict[str, Tensor] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)  # what an attention or a stack showed so far, by hook point
    spelled_out: set[str] = field(
        default_factory=set
    )  # attentions that run in steps, because something edits them there

    def hooks(self, edited: set[str]) -> dict[str, Hook]:
        """A looking hook for every point. scores and pattern are looked at only where the run spells them out anyway."""
        hooks: dict[str, Hook] = {}
        points = hook_points(self.loaded.model)
        self.spelled_out = {
            name.rsplit(".", 1)[0]
            for name, point in points.items()
            if name.endswith(("hook_scores", "hook_pattern")) and point.watched
        }
        for name, point in points.items():
            attention, kind = name.rsplit(".", 1)
            if kind in ("hook_scores", "hook_pattern") and attention not in self.spelled_out:
                continue
            if kind == "hook_z":
                hooks[name] = partial(self.see_attention, name.removesuffix(".hook_z"), point)
            elif kind == "hook_rule":
                hooks[name] = partial(self.see_rule, name)
            elif kind == "hook_position":
                keep = name in edited or point.watched
                hooks[name] = partial(self.see_position, name, point, keep)
            else:
                hooks[name] = partial(self.see, name, point)
        return hooks

    def see(self, name: str, point: HookPoint, x: Tensor) -> None:
        self.step(name, point, x)
        kind = name.rsplit(".", 1)[-1]
        if kind in KEPT:
            self.seen[name] = x
        elif kind in MEASURED:
            self.norms[name] = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32)  # [batch, pos]

    def see_position(self, name: str, point: HookPoint, keep: bool, x: Tensor) -> None:
        """The added vectors are rows of the model's own table, looked up again when asked for, unless an edit made them."""
        self.step(name, point, x)
        self.seen[name] = (lambda: x) if keep else None

    def see_rule(self, name: str, rule: ScoreRule) -> None:
        attention = name.removesuffix(".hook_rule")
        self.seen[name] = rule
        q = self.seen[f"{attention}.hook_q"]
        shape = (q.shape[0], q.shape[1], rule.mask.n_query, rule.mask.n_key)
        size = shape[0] * shape[1] * shape[2] * shape[3]
        mask_shape = (shape[0], 1, *shape[2:])
        mask = Step(f"{attention}.hook_mask", SCORE_AXES, mask_shape, "bool", size // shape[1], False, mask_words(rule))
        self.steps.append(mask)
        if attention not in self.spelled_out:
            for what in ("scores", "pattern"):
                note = "inside the fused kernel: never a tensor, worked out again for what is looked at"
                dtype = dtype_name(q.dtype)
                self.steps.append(
                    Step(f"{attention}.hook_{what}", SCORE_AXES, shape, dtype, size * q.element_size(), False, note)
                )

    def see_attention(self, name: str, point: HookPoint, z: Tensor) -> None:
        self.step(f"{name}.hook_z", point, z)
        stack, _, layer, site = name.split(".")
        v = self.seen.pop(f"{name}.hook_v")
        self.records.append(
            AttentionRecord(
                name,
                stack,
                int(layer),
                "cross_attn" if site == "cross_attn" else "attn",
                self.seen.pop(f"{name}.hook_q"),
                self.seen.pop(f"{name}.hook_k"),
                Held(v) if self.hold_values else partial(self.run_again, f"{name}.hook_v"),
                self.seen.pop(f"{name}.hook_rule"),
                self.loaded.model.get_parameter(f"{name}.o.weight"),
                self.seen.pop(f"{name}.hook_scores", None),
                self.seen.pop(f"{name}.hook_pattern", None),
            )
        )
        self.left()

    def step(self, name: str, point: HookPoint, x: Tensor) -> None:
        size = x.numel() * x.element_size()
        self.steps.append(Step(name, point.axes, tuple(x.shape), dtype_name(x.dtype), size))

    def position_records(self) -> tuple[PositionRecord, ...]:
        records = []
        for stack, _ in self.loaded.config.stacks:
            places = self.seen[f"{stack}.hook_positions"]
            table = None
            if self.loaded.config.has_position_table:
                table = self.seen[f"{stack}.embed.hook_position"] or partial(self.table, stack, places)
            bias = next((r.batch_rule.bias for r in self.records if r.stack == stack and r.site == "attn"), None)
            records.append(
                PositionRecord(
                    stack,
                    self.loaded.config.position,
                    places,
                    table,
                    self.seen.get(f"{stack}.hook_angles"),
                    self.seen.get(f"{stack}.hook_angles_windowed"),
                    bias if isinstance(bias, DistanceBias) else None,
                )
            )
        return tuple(records)

    def table(self, stack: str, places: Tensor) -> Tensor:
        """[batch or 1, pos, d_model]: the rows the model added."""
        with torch.inference_mode():
            embed = self.loaded.model.get_submodule(f"{stack}.embed")
            assert isinstance(embed, Embedding)
            return embed.position_rows(places)


# By the last part of the name: what is kept as it passes, and where the length of the stream is measured.
KEPT = frozenset(
    f"hook_{what}" for what in ("q", "k", "v", "scores", "pattern", "positions", "angles", "angles_windowed")
)
STREAM = ("embed", "resid_pre", "attn_out", "resid_mid", "cross_out", "resid_cross", "mlp_out", "resid_post", "final")
MEASURED = frozenset(f"hook_{what}" for what in STREAM)
SCORE_AXES = ("batch", "head", "query", "key")


@dataclass(frozen=True, eq=False)
class Held:
    """A tensor that was kept, behind the same call as one that is worked out again."""

    tensor: Tensor

    def __call__(self) -> Tensor:
        return self.tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """The last residual stream [batch, pos, d_model]: the rows that are held, or all of them from another run."""

    held: dict[int, Tensor] | Tensor
    run_again: Callable[[], Tensor]

    def __call__(self, positions: Tensor) -> Tensor:
        if isinstance(self.held, Tensor):
            return self.held[:, positions]
        wanted = positions.tolist()
        if all(p in self.held for p in wanted):
            return torch.stack([self.held[p] for p in wanted], dim=1)
        return self.run_again()[:, positions]


def held_bytes(values: Callable[..., Tensor]) -> int:
    """Bytes kept behind a record's values or a trace's last residual; 0 where they come from another run."""
    kept: list[Tensor] = []
    if isinstance(values, Held):
        kept = [values.tensor]
    elif isinstance(values, Rows):
        kept = [values.held] if isinstance(values.held, Tensor) else list(values.held.values())
    return sum(t.numel() * t.element_size() for t in kept)


def residual_of(final: Tensor, run_again: Callable[[], Tensor], tokens: tuple[Tokens, ...], hold: bool) -> Rows:
    """All rows with `hold`; otherwise those of the last real token of each text."""
    if hold:
        return Rows(final, run_again)
    ends = {max(i for i, padding in enumerate(t.padding) if not padding) for t in tokens}
    return Rows({end: final[:, end].clone() for end in ends}, run_again)


def logits_step(loaded: Loaded, batch: int) -> tuple[Step, ...]:
    if loaded.model.head is None:
        return ()
    shape = (batch, 1, loaded.config.vocab_size)
    size = shape[0] * shape[2] * loaded.dtype.itemsize
    note = "worked out when asked for, one position at a time"
    return (Step("head.hook_logits", ("batch", "pos", "vocab"), shape, dtype_name(loaded.dtype), size, False, note),)


def mask_words(rule: ScoreRule) -> str:
    """What hides, in words: the note beside the mask's row in the table of shapes."""
    mask = rule.mask
    parts = [
        *(["the future"] if mask.causal else []),
        *([f"what is {mask.window} or more positions away"] if mask.window is not None else []),
        *(["padding"] if mask.keep is not None else []),
        *([f"{len(mask.edits)} edited cells"] if mask.edits else []),
    ]
    return f"a rule, not a tensor: hides {', '.join(parts)}" if parts else "nothing is hidden"


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
