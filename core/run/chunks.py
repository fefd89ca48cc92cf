"""Chunked prefill: a decoder's traced run in chunks of rows behind a KV cache, for texts too long to be read in one go.

Most of what a pass peaks at grows with the rows that are read at once: the hidden layer of the MLP, q, k and v before and
after they are turned. A decoder's tokens never see what comes later, so it can read a text some rows at a time and keep
keys and values, as it does when it writes (core.model.cache). What the trace keeps is the same as in one go: q is laid down
chunk by chunk, and the cache itself is k and v of the whole text in the end. Where a card has no room for that either, q
goes to the host with each chunk, k and v after the last one; records then bring the rows that are looked at back to
the card.

Edits that give a token nothing of later ones go along: each chunk is edited as its rows of the whole text are. Second
passes, for what a trace did not keep, go in one go: they hold nothing but the moment they are run for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import memory
from ..edits import Edit, Intervention
from ..model.cache import Cache
from ..model.config import ModelConfig
from ..model.hooks import Hook, HookPoint, hook_points, hooked
from ..model.positions import count_positions
from ..model.rules import DistanceBias, ScoreRule, row_blocks
from ..model.transformer import Stack
from ..plan.chunks import chunked_run_bytes
from .activations import PLACES
from .forward_pass import Pass
from .prompt import model_inputs
from .recorder import MEASURED, LastResidual, Recorder, last_rows

SIZES = (8192, 4096, 2048, 1024, 512)  # rows of a chunk, the largest that fits: fewer rows read the weights more often
MARGIN = 10  # a tenth of a card's free memory stays free, for the kernels' own scratch space
HOST = torch.device("cpu")


@dataclass(frozen=True)
class Chunks:
    """How a run is cut: rows read at once, where q, k and v are kept, and the bytes of the device that it takes."""

    rows: int
    on_host: bool
    needed: int


def budget(device: torch.device, free: int) -> int:
    """Bytes that a run in one go may take; above that it goes in chunks. All that is free, but for a margin on a card."""
    return free if device.type == "cpu" else free - free // MARGIN


def can_chunk(forward: Pass) -> bool:
    """Whether chunks give what one go gives.

    Not for encoders and encoder-decoders, which see what comes later, nor with an edit that does. Not with interventions of
    one's own and hooks from outside: they are written for the whole text and would see a part of it. Not for dynamic rotary
    scaling, which turns every token by an angle that depends on how long the text has become.
    """
    config = forward.loaded.config
    dynamic = config.rotary_scaling is not None and config.rotary_scaling.kind == "dynamic"
    whole = forward.edited_outside or any(map(needs_one_go, forward.interventions))
    return config.kind == "decoder" and not whole and not dynamic


def needs_one_go(edit: Intervention) -> bool:
    """Whether a text can only be read whole with this edit."""
    return not isinstance(edit, Edit) or edit.sees_ahead


def advice(forward: Pass) -> str:
    """Advice about a run that does not fit; where an edit keeps it from going in chunks, which one that is."""
    config = forward.loaded.config
    edit = next(filter(needs_one_go, forward.interventions), None)
    if config.kind != "decoder" or edit is None:
        return memory.SHORTER
    why = "lets a token know of later ones" if isinstance(edit, Edit) else "is written for a whole text"
    return f"{type(edit).__name__} {why}, so the text cannot be read in chunks: leave it out, or try a shorter text."


def choose(forward: Pass, hold_values: bool, one_go: int, more: int, free: int) -> Chunks | None:
    """The largest chunks that fit into `free` bytes where `one_go` bytes do not: with q, k and v on the device if possible,
    then on the host.

    `more` bytes are what a trace keeps beside that, because it was edited. None where one go fits, where it must be one go,
    and where nothing fits: the refusal is then of one go.
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
    """A Recorder that sees a text in pieces. It is shown each point once, with the last chunk: what is kept is whole by
    then, and of all else there is the shape of the whole alone."""

    cut: Chunks | None = None
    cache: Cache | None = None
    keep_mask: Tensor | None = None  # [batch, pos], True on real tokens
    rows: slice = field(default_factory=lambda: slice(0, 0))  # the chunk that runs
    at: str = ""  # the point that is shown
    pieces: dict[str, list[Tensor]] = field(default_factory=dict)  # lengths and angles, chunk by chunk
    joined: tuple[list[Tensor], Tensor] | None = None  # the last lengths that were put together
    filled: dict[str, Tensor] = field(default_factory=dict)  # q, and z where it is edited, of the whole text

    @property
    def n(self) -> int:
        return self.forward.prompt.source_len

    @property
    def is_last(self) -> bool:
        return self.rows.stop == self.n

    def hooks(self) -> dict[str, Hook]:
        points = hook_points(self.forward.loaded.model)
        return {name: partial(self.see_piece, name, points[name], look) for name, look in super().hooks().items()}

    def see_piece(self, name: str, point: HookPoint, look: Callable[[Any], object], x: Any) -> None:
        whole = self.gather(name, point, x)
        if self.is_last:
            self.at = name
            look(whole)
        elif name.endswith(".hook_o"):
            self.on_attention(())  # nothing to show yet, but anyone who watches may end the run

    def gather(self, name: str, point: HookPoint, x: Any) -> Any:
        """What the point is of the whole text, as far as it is kept; complete with the last chunk."""
        assert self.cut is not None
        attention, kind = name.rsplit(".", 1)
        place = HOST if self.cut.on_host else None
        if kind == "hook_rule":
            return self.whole_rule(x)
        if kind == "hook_positions":  # of all tokens so far
            return x
        if kind == "hook_q":
            return self.fill(name, x, place or x.device)
        if kind == "hook_z" and name in self.edited and self.hold_values:
            return self.fill(name, x, x.device)
        if kind == "hook_k" or (kind == "hook_v" and self.hold_values):
            if not self.is_last:
                return None
            assert self.cache is not None
            held = self.cache.layers[int(attention.split(".")[2])].attn
            kept = held.k if kind == "hook_k" else held.v
            return kept.to(place or kept.device)
        if kind in MEASURED or kind == "hook_o":
            self.pieces.setdefault(name, []).append(super().length(x))
        if kind in ("hook_angles", "hook_angles_windowed") or (kind == "hook_position" and name in self.edited):
            self.pieces.setdefault(name, []).append(x)
            return torch.cat(self.pieces.pop(name), dim=1) if self.is_last else None
        shape = [self.n if axis in PLACES else size for axis, size in zip(point.axes, x.shape, strict=True)]
        return x.new_empty(()).expand(shape) if self.is_last else None  # a shape and no numbers

    def fill(self, name: str, x: Tensor, device: torch.device) -> Tensor | None:
        """x [batch, head, query, d_head] of a chunk put in its place; the whole of it with the last one."""
        if name not in self.filled:
            self.filled[name] = torch.empty((*x.shape[:2], self.n, x.shape[3]), dtype=x.dtype, device=device)
        self.filled[name][:, :, self.rows] = x.to(device)
        return self.filled.pop(name) if self.is_last else None

    def length(self, x: Tensor) -> Tensor:
        """Of the whole text; once for what passes two points in a row, as that of each piece is."""
        pieces = self.pieces.pop(self.at)
        if self.joined is None or any(one is not other for one, other in zip(self.joined[0], pieces, strict=True)):
            self.joined = pieces, torch.cat(pieces, dim=1)
        return self.joined[1]

    def whole_rule(self, rule: ScoreRule) -> ScoreRule:
        """The last chunk's rule as it is for all rows."""
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
    """The edits of a run as its chunks meet them: those of rules and positions are shown the whole text, which they are
    written for, and the chunk gets its part; those of z and of added positions act on every token by itself."""

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
    """The pass, seen by the recorder; its last residual: all rows where values are held, else those of the last real tokens."""
    loaded, prompt = forward.loaded, forward.prompt
    decoder = loaded.model.decoder
    assert isinstance(decoder, Stack)
    n, d_model = prompt.source_len, loaded.config.d_model
    ends = last_rows(prompt.last_read)
    held: dict[int, Tensor] = {}
    ids, _, keep, _, _ = model_inputs(prompt, loaded.device)
    edits = ChunkEdits(forward, count_positions(loaded.config, n, ids, keep), keep)
    with (
        torch.inference_mode(),
        hooked(loaded.model, edits.hooks(), outside=forward.outside),
        hooked(loaded.model, recorder.hooks()),
    ):
        recorder.cut, recorder.keep_mask = chunks, keep
        recorder.cache = Cache(kept_config(forward), room=n)
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
    """What the cache is made for. An edited mask may allow what a window hides, so nothing is forgotten then."""
    if forward.edited_rules:
        return replace(forward.loaded.config, window=None, windowed_layers=None)
    return forward.loaded.config
