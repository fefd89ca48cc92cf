"""Chunked prefill: a decoder's traced run in chunks of rows behind a KV cache, for texts too long to be read in one go.

Most of what a pass peaks at grows with the rows that are read at once: the hidden layer of the MLP, q, k and v before and
after they are turned. A decoder's tokens never see what comes later, so it can read a text some rows at a time and keep
keys and values, as it does when it writes (core.cache). What the trace keeps is the same as in one go: q is laid down
chunk by chunk, and the cache itself is k and v of the whole text in the end. Where a card has no room for that either, q
goes to the host with each chunk, k and v after the last one; records then bring the rows that somebody looks at back to
the card.

Second passes, for what a trace did not keep, go in one go: they hold nothing but the moment they are run for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from . import memory
from .cache import Cache
from .hooks import Hook, HookPoint, hook_points, hooked
from .model import Stack
from .moments import PLACES
from .passes import Pass
from .planner.chunks import chunked_run_bytes
from .planner.dtypes import dtype_name
from .planner.runs import RunBytes
from .prompt import model_inputs
from .recorder import MEASURED, Recorder, Rows, last_rows
from .rules import DistanceBias, ScoreRule, row_blocks

SIZES = (8192, 4096, 2048, 1024, 512)  # rows of a chunk, the largest that fits: fewer rows read the weights more often
MARGIN = 10  # a tenth of a card's free memory stays free, for the kernels' own scratch space
HOST = torch.device("cpu")


@dataclass(frozen=True)
class Chunks:
    """How a run is cut: rows read at once, where q, k and v are kept, and what that takes."""

    rows: int
    on_host: bool
    needed: RunBytes


def budget(device: torch.device) -> int:
    """Bytes that a run in one go may take; above that it goes in chunks. All that is free, but for a margin on a card."""
    free = memory.free_bytes(device)
    return free if device.type == "cpu" else free - free // MARGIN


def can_chunk(forward: Pass) -> bool:
    """Whether chunks give what one go gives.

    Not for encoders and encoder-decoders, which see what comes later. Not where anything is edited, by an intervention or
    a hook from outside: an edit is written for the whole text and would see a part of it. Not for dynamic rotary scaling,
    which turns every token by an angle that depends on how long the text has become.
    """
    config = forward.loaded.config
    dynamic = config.rotary_scaling is not None and config.rotary_scaling.kind == "dynamic"
    return config.kind == "decoder" and not forward.edited and not dynamic


def choose(forward: Pass, hold_values: bool, one_go: int) -> Chunks | None:
    """The largest chunks that fit where `one_go` bytes do not: with q, k and v on the device if possible, then on the host.

    None where one go fits, where it must be one go, and where nothing fits: the refusal is then of one go.
    """
    device, prompt = forward.loaded.device, forward.prompt
    free = budget(device)
    if one_go <= free or not can_chunk(forward):
        return None
    for on_host in (False, True) if device.type == "cuda" else (False,):
        for rows in SIZES:
            needed = chunked_run_bytes(
                forward.loaded.config,
                rows=rows,
                batch=prompt.batch,
                source_len=prompt.source_len,
                dtype=dtype_name(forward.loaded.dtype),
                padded=prompt.is_padded,
                keep_values=hold_values,
                on_host=on_host,
            )
            fits = needed.total - needed.weights <= free and needed.host <= memory.free_bytes(HOST)
            if rows < prompt.source_len and fits:
                return Chunks(rows, on_host, needed)
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
    queries: dict[str, Tensor] = field(default_factory=dict)  # of the whole text, filled chunk by chunk

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
            self.on_attention(())  # nothing to show yet, but whoever watches may end the run

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
            if name not in self.queries:
                shape = (*x.shape[:2], self.n, x.shape[3])
                self.queries[name] = torch.empty(shape, dtype=x.dtype, device=place or x.device)
            self.queries[name][:, :, self.rows] = x.to(place or x.device)
            return self.queries.pop(name) if self.is_last else None
        if kind == "hook_k" or (kind == "hook_v" and self.hold_values):
            if not self.is_last:
                return None
            assert self.cache is not None
            held = self.cache.layers[int(attention.split(".")[2])].attn
            kept = held.k if kind == "hook_k" else held.v
            return kept.to(place or kept.device)
        if kind in MEASURED or kind == "hook_o":
            self.pieces.setdefault(name, []).append(super().length(x))
        if kind in ("hook_angles", "hook_angles_windowed"):
            self.pieces.setdefault(name, []).append(x)
            return torch.cat(self.pieces.pop(name), dim=1) if self.is_last else None
        shape = [self.n if axis in PLACES else size for axis, size in zip(point.axes, x.shape, strict=True)]
        return x.new_empty(()).expand(shape) if self.is_last else None  # a shape and no numbers

    def length(self, x: Tensor) -> Tensor:
        return torch.cat(self.pieces.pop(self.at), dim=1)

    def whole_rule(self, rule: ScoreRule) -> ScoreRule:
        """The last chunk's rule as it is for all rows."""
        if not self.is_last:
            return rule
        mask = replace(rule.mask, n_query=self.n, n_key=self.n, first_query=0, keep=self.keep_mask)
        bias = rule.bias
        if isinstance(bias, DistanceBias):
            places = self.seen["decoder.hook_positions"]
            bias = replace(bias, query_positions=places, key_positions=places)
        return replace(rule, mask=mask, bias=bias)


def run_in_chunks(forward: Pass, recorder: ChunkRecorder, chunks: Chunks) -> Rows:
    """The pass, seen by the recorder; its last residual: all rows where values are held, else those of the last real tokens."""
    loaded, prompt = forward.loaded, forward.prompt
    decoder = loaded.model.decoder
    assert isinstance(decoder, Stack)
    n, d_model = prompt.source_len, loaded.config.d_model
    ends = last_rows(prompt.last_read)
    held: dict[int, Tensor] = {}
    with torch.inference_mode(), hooked(loaded.model, recorder.hooks(), outside=forward.outside):
        ids, _, keep, _, _ = model_inputs(prompt.sources, None, loaded.device)
        recorder.cut, recorder.keep_mask = chunks, keep
        recorder.cache = Cache(loaded.config, room=n)
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
    return Rows(held if whole is None else whole, partial(forward.again, "decoder.hook_final"))
