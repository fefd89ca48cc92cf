"""Chunked prefill: a decoder's traced run in chunks of rows behind a KV cache, for texts that do not fit in a single pass.

The peak memory of a pass grows with the rows read at once: the MLP's hidden layer, q, k and v before and after RoPE. Because
no token attends to later ones, a decoder can read a text chunk by chunk with a KV cache (core.model.cache). The trace is
the same as from a single pass: q is collected chunk by chunk, and the cache ends up as k and v of the whole text. If they
do not fit on the GPU either, q moves to the host with each chunk, k and v after the last one. Records then copy the rows
they need back to the GPU.

Edits are supported if a token does not depend on later ones: each chunk is edited like its rows of the whole text. Second
passes, for activations that the trace did not store, are single passes that store only one activation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import device as memory
from ..edits import Edit, Intervention
from ..model.cache import Cache
from ..model.config import ModelConfig
from ..model.hooks import Hook, HookPoint, hook_points, hooked
from ..model.positions import position_ids
from ..model.rules import DistanceBias, ScoreRule, row_blocks
from ..model.transformer import Stack
from ..plan.peak import chunked_run_bytes
from .forward_pass import Pass
from .recorder import MEASURED, PLACES, LastResidual, Recorder, last_rows
from .request import model_inputs

SIZES = (8192, 4096, 2048, 1024, 512)  # rows of a chunk; the largest that fits, since every chunk reads all weights
MARGIN = 10  # a tenth of a GPU's free memory is left for the kernels' workspaces
HOST = torch.device("cpu")


@dataclass(frozen=True)
class Chunks:
    """Rows per chunk, storage of q, k and v, and bytes needed on the device."""

    rows: int
    on_host: bool
    needed: int


def budget(device: torch.device, free: int) -> int:
    """Bytes that a single pass may take: all free memory, except for a margin on a GPU."""
    return free if device.type == "cpu" else free - free // MARGIN


def can_chunk(forward: Pass) -> bool:
    """True if chunks give the same result as a single pass.

    False for encoders and encoder-decoders, whose tokens attend to later ones, and for edits that do. False for custom
    interventions and outside hooks, which expect the whole text. False for dynamic RoPE scaling, whose angles depend on
    the length of the text.
    """
    config = forward.loaded.config
    dynamic = config.rotary_scaling is not None and config.rotary_scaling.kind == "dynamic"
    whole = forward.edited_outside or any(map(needs_single_pass, forward.interventions))
    return config.kind == "decoder" and not whole and not dynamic


def needs_single_pass(edit: Intervention) -> bool:
    """True if this edit requires a single pass."""
    return not isinstance(edit, Edit) or edit.sees_ahead


def advice(forward: Pass) -> str:
    """Advice for a run that does not fit; names the edit that prevents chunks, if there is one."""
    config = forward.loaded.config
    edit = next(filter(needs_single_pass, forward.interventions), None)
    if config.kind != "decoder" or edit is None:
        return memory.SHORTER
    why = "lets a token know of later ones" if isinstance(edit, Edit) else "is written for a whole text"
    return f"{type(edit).__name__} {why}, so the text cannot be read in chunks: leave it out, or try a shorter text."


def plan_chunks(forward: Pass, hold_values: bool, one_go: int, more: int, free: int) -> Chunks | None:
    """The largest chunks that fit into `free` bytes if `one_go` bytes do not: q, k and v on the device if possible, else on the
    host.

    `more` bytes are stored in addition, for edits. None if a single pass fits or is required, and if no chunks fit; the
    refusal is then that of a single pass.
    """
    device, prompt = forward.loaded.device, forward.prompt
    free = budget(device, free)
    if one_go <= free or not can_chunk(forward):
        return None
    for on_host in (False, True) if device.type == "cuda" else (False,):
        for rows in SIZES:
            needed = chunked_run_bytes(
                forward.loaded.config,
                forward.workload,
                rows=rows,
                keep_values=hold_values,
                on_host=on_host,
                edited_rules=forward.edited_rules,
            )
            total = needed.total - needed.weights + more
            if rows < prompt.source_len and total <= free and needed.host <= memory.free_bytes(HOST):
                return Chunks(rows, on_host, total)
    return None


@dataclass
class ChunkRecorder(Recorder):
    """A Recorder of a text in chunks. It records each point once, with the last chunk: stored tensors are complete by then,
    and of the others only the shape of the whole text is recorded."""

    cut: Chunks | None = None
    cache: Cache | None = None
    keep_mask: Tensor | None = None  # [batch, pos], True on real tokens
    rows: slice = field(default_factory=lambda: slice(0, 0))  # the current chunk
    at: str = ""  # the point being recorded
    pieces: dict[str, list[Tensor]] = field(default_factory=dict)  # lengths and angles, chunk by chunk
    joined: tuple[list[Tensor], Tensor] | None = None  # the last norms that were concatenated
    filled: dict[str, Tensor] = field(default_factory=dict)  # q, and z if edited, of the whole text

    @property
    def n(self) -> int:
        return self.forward.prompt.source_len

    @property
    def is_last(self) -> bool:
        return self.rows.stop == self.n

    def hooks(self) -> dict[str, Hook]:
        points = hook_points(self.forward.loaded.model)
        return {name: partial(self.record_chunk, name, points[name], look) for name, look in super().hooks().items()}

    def record_chunk(self, name: str, point: HookPoint, look: Callable[[Any], object], x: Any) -> None:
        whole = self.gather(name, point, x)
        if self.is_last:
            self.at = name
            look(whole)
        elif name.endswith(".hook_o"):
            self.on_attention(())  # no record yet, but the callback may cancel the run

    def gather(self, name: str, point: HookPoint, x: Any) -> Any:
        """The value at the point for the whole text, as far as it is kept; complete with the last chunk."""
        kind = name.rsplit(".", 1)[1]
        if kind == "hook_rule":
            return self.whole_rule(x)
        if kind == "hook_positions":  # of all tokens so far
            return x
        if kind == "hook_q":
            return self.fill(name, x, self.storage(x))
        if kind == "hook_z" and name in self.edited and self.hold_values:
            return self.fill(name, x, x.device)
        if kind == "hook_k" or (kind == "hook_v" and self.hold_values):
            return self.cached(name) if self.is_last else None
        return self.join(name, kind, point, x)

    def join(self, name: str, kind: str, point: HookPoint, x: Tensor) -> Tensor | None:
        """With the last chunk, the angles or edited positions of the whole text, or a tensor of its shape. Collects norms."""
        if kind in ("hook_angles", "hook_angles_windowed") or (kind == "hook_position" and name in self.edited):
            self.pieces.setdefault(name, []).append(x)
            return torch.cat(self.pieces.pop(name), dim=1) if self.is_last else None
        if kind in MEASURED or kind == "hook_o":
            self.pieces.setdefault(name, []).append(super().length(x))
        return self.whole_shape(point, x) if self.is_last else None

    def storage(self, x: Tensor) -> torch.device:
        """Where q, k and v are stored."""
        assert self.cut is not None
        return HOST if self.cut.on_host else x.device

    def cached(self, name: str) -> Tensor:
        """k or v of the whole text, which the cache has collected."""
        assert self.cache is not None
        cache = self.cache.layers[int(name.split(".")[2])].attn
        kept = cache.k if name.endswith(".hook_k") else cache.v
        return kept.to(self.storage(kept)).transpose(1, 2)

    def whole_shape(self, point: HookPoint, x: Tensor) -> Tensor:
        """A tensor with the shape of the whole text and no storage."""
        shape = [self.n if axis in PLACES else size for axis, size in zip(point.axes, x.shape, strict=True)]
        return x.new_empty(()).expand(shape)

    def fill(self, name: str, x: Tensor, device: torch.device) -> Tensor | None:
        """Copy x [batch, query, head, d_head] of a chunk to its rows; with the last one, return the whole tensor.

        In memory the heads come first, because records read them one by one.
        """
        if name not in self.filled:
            batch, _, n_heads, d_head = x.shape
            self.filled[name] = torch.empty(batch, n_heads, self.n, d_head, dtype=x.dtype, device=device)
        self.filled[name][:, :, self.rows] = x.transpose(1, 2).to(device)
        return self.filled.pop(name).transpose(1, 2) if self.is_last else None

    def length(self, x: Tensor) -> Tensor:
        """‖x‖ of the whole text; computed once for a tensor that passes two points in a row."""
        pieces = self.pieces.pop(self.at)
        if self.joined is None or any(a is not b for a, b in zip(self.joined[0], pieces, strict=True)):
            self.joined = pieces, torch.cat(pieces, dim=1)
        return self.joined[1]

    def whole_rule(self, rule: ScoreRule) -> ScoreRule:
        """The rule of all rows, from the last chunk's."""
        if not self.is_last:
            return rule
        keep = None if rule.mask.keep is None else self.keep_mask
        mask = replace(rule.mask, n_query=self.n, n_key=self.n, first_query=0, keep=keep)
        bias = rule.bias
        if isinstance(bias, DistanceBias):
            places = self.seen["decoder.hook_positions"]
            bias = replace(bias, query_positions=places, key_positions=places)
        return replace(rule, mask=mask, bias=bias)


@dataclass
class ChunkEdits:
    """The edits of a run, adapted to chunks. Edits of rules and positions receive the whole text, and the chunk takes its part
    of the result. Edits of z and of added positions act on each token separately."""

    forward: Pass
    places: Tensor  # [batch or 1, pos]: positions of the whole text, before any edit
    keep_mask: Tensor | None  # [batch, pos], True on real tokens

    def hooks(self) -> dict[str, Hook]:
        by_kind = {"hook_rule": self.edit_rule, "hook_positions": self.edit_positions}
        return {
            name: partial(by_kind[kind], hook) if (kind := name.rsplit(".", 1)[1]) in by_kind else hook
            for name, hook in self.forward.edits.items()
        }

    def edit_rule(self, hook: Hook, rule: ScoreRule) -> ScoreRule | None:
        n, mask = self.forward.prompt.source_len, rule.mask
        whole = replace(mask, n_query=n, n_key=n, first_query=0, keep=self.keep_mask)
        edited = hook(replace(rule, mask=whole))
        if edited is None:
            return None
        keep = None if edited.mask.keep is None else mask.keep
        own = replace(edited.mask, n_query=mask.n_query, n_key=mask.n_key, first_query=mask.first_query, keep=keep)
        return replace(edited, mask=own)

    def edit_positions(self, hook: Hook, positions: Tensor) -> Tensor | None:
        """positions [batch or 1, pos] are those of all tokens so far."""
        edited = hook(self.places)
        return None if edited is None else edited[:, : positions.shape[1]]


def run_in_chunks(forward: Pass, recorder: ChunkRecorder, chunks: Chunks) -> LastResidual:
    """Run the pass with the recorder. Returns all rows of the last residual if values are stored, else those of the last tokens."""
    loaded, prompt = forward.loaded, forward.prompt
    decoder = loaded.model.decoder
    assert isinstance(decoder, Stack)
    n, d_model = prompt.source_len, loaded.config.d_model
    ends = last_rows(prompt.last_read)
    held: dict[int, Tensor] = {}
    ids, _, keep, _, _ = model_inputs(prompt, loaded.device)
    edits = ChunkEdits(forward, position_ids(loaded.config, n, ids, keep), keep)
    with (
        torch.inference_mode(),
        hooked(loaded.model, edits.hooks(), outside=forward.outside),
        hooked(loaded.model, recorder.hooks()),
    ):
        recorder.cut, recorder.keep_mask = chunks, keep
        recorder.cache = Cache(kept_config(forward), capacity=n)
        whole = (
            torch.empty(prompt.batch, n, d_model, dtype=loaded.dtype, device=loaded.device)
            if recorder.hold_values
            else None
        )
        for rows in row_blocks(n, 1, rows=chunks.rows):
            recorder.rows = rows
            x = decoder(ids[:, rows], None, None if keep is None else keep[:, : rows.stop], cache=recorder.cache)
            if whole is not None:
                whole[:, rows] = x
            held |= {end: x[:, end - rows.start].clone() for end in ends if rows.start <= end < rows.stop}
            del x  # before the next chunk is read
        recorder.cache = None
    return LastResidual(held if whole is None else whole, partial(forward.again, "decoder.hook_final"))


def kept_config(forward: Pass) -> ModelConfig:
    """The config of the cache: without a window if rules are edited, since an edit may unmask keys outside it."""
    if forward.edited_rules:
        return replace(forward.loaded.config, window=None, windowed_layers=None)
    return forward.loaded.config
