"""Run several short texts in one padded batch; each trace equals the one from a separate run."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import memory
from ..checkpoints import Loaded
from ..errors import InterventionError
from ..model.hooks import Hook, HookPoint, hook_points
from ..model.rules import DisentangledBias, DistanceBias, ScoreRule
from ..model.text import Tokens
from ..plan.runs import run_bytes
from .forward_pass import Pass, prepare
from .prompt import Prompt, padded
from .recorder import HELD_BYTES, KEPT, Recorder, logits_step, residual_of
from .trace_record import TraceRecord

ALONG = ("pos", "query", "key")  # axes along which a batch is padded


def trace_together(loaded: Loaded, texts: Sequence[Tokens]) -> tuple[TraceRecord, ...]:
    """trace() of each of these texts without edits, from one pass over all of them. The model has one stack.

    Padding is masked and does not move positions, so a trace equals that of a separate run, up to the rounding of matrix
    products. It stores nothing of the other texts, and second passes run its text only. `seconds` is the time of the whole
    pass. Raises TextError like trace(), TooLarge with the bytes needed and free, and InterventionError for an editing hook.
    """
    together = prepare(loaded, Prompt(padded(loaded, texts, "right")), ())
    if together.edited:
        raise InterventionError("An edited text runs by itself. Trace these texts one by one.")
    whole = run_bytes(loaded.config, together.workload)
    what = f"A run on {len(texts)} texts at once"
    memory.admit(whole.captured + whole.transient, memory.free_bytes(loaded.device), what, "Run them one by one.")
    recorders = [_recorder(prepare(loaded, Prompt((own,)), ())) for own in texts]
    begun = time.perf_counter()
    final = together.run(_shown_to_each(loaded, recorders))  # [batch, pos, d_model]
    if loaded.device.type == "cuda":
        torch.cuda.synchronize(loaded.device)
    seconds = time.perf_counter() - begun
    together.weights.check()
    return tuple(
        _trace(recorder, final[i : i + 1, : len(own)], seconds)
        for i, (recorder, own) in enumerate(zip(recorders, texts, strict=True))
    )


def _recorder(forward: Pass) -> Recorder:
    last = forward.prompt.source_len * forward.loaded.config.d_model * forward.loaded.dtype.itemsize
    hold = run_bytes(forward.loaded.config, forward.workload).values + last <= HELD_BYTES
    return Recorder(forward, hold_values=hold, on_attention=lambda _: None)


def _trace(recorder: Recorder, final: Tensor, seconds: float) -> TraceRecord:
    """`final` [1, pos, d_model] is a view into the batch and is copied."""
    forward, hold = recorder.forward, recorder.hold_values
    loaded, sources = forward.loaded, forward.prompt.sources
    again = partial(forward.again, f"{loaded.config.stacks[-1][0]}.hook_final")
    needed = run_bytes(loaded.config, forward.workload, keep_values=hold)
    return TraceRecord(
        loaded,
        sources,
        None,
        tuple(recorder.records),
        recorder.position_records(),
        (*recorder.steps, *logits_step(loaded, 1)),
        recorder.norms,
        residual_of(final.clone() if hold else final, again, sources, hold),
        forward,
        seconds,
        predicted_bytes=needed.captured + needed.transient,
    )


def _shown_to_each(loaded: Loaded, recorders: Sequence[Recorder]) -> dict[str, Hook]:
    """Hooks of the batch that pass each text's part of a tensor to its recorder."""
    points = hook_points(loaded.model)
    sizes = [recorder.forward.prompt.source_len for recorder in recorders]
    of_each = [recorder.hooks() for recorder in recorders]
    last: tuple[weakref.ref[Any], list[Any]] | None = None  # the last tensor that is not stored, and its parts

    def show(name: str, x: Any) -> None:
        nonlocal last
        if last is not None and last[0]() is x:  # the residual stream between two layers passes two points
            parts = last[1]
        else:
            kept = name.rsplit(".", 1)[-1] in KEPT
            parts = [part_of(x, points[name], text, n, copy=kept) for text, n in enumerate(sizes)]
            last = None if kept else (weakref.ref(x), parts)
        for hooks, part in zip(of_each, parts, strict=True):
            hooks[name](part)

    return {name: partial(show, name) for name in of_each[0]}


def part_of(x: Any, point: HookPoint, text: int, n: int, copy: bool) -> Any:
    """The part of one text of n tokens, without padding, of a hook point's tensor [batch or 1, …] or rule."""
    if isinstance(x, ScoreRule):
        return rule_of(x, text, n)
    row = text if x.shape[0] > 1 else 0
    x = x[row : row + 1]
    for dim, axis in enumerate(point.axes):
        x = x.narrow(dim, 0, n) if axis in ALONG else x
    return x.clone() if copy else x  # a view would hold the whole batch


def rule_of(rule: ScoreRule, text: int, n: int) -> ScoreRule:
    """The rule of one text of n tokens as in a separate run, without padding."""
    own = rule.for_text(text)
    bias = own.bias
    if isinstance(bias, DistanceBias):
        queries, keys = bias.query_positions[:, :n].clone(), bias.key_positions[:, :n].clone()
        bias = replace(bias, query_positions=queries, key_positions=keys)
    if isinstance(bias, DisentangledBias):
        bias = bias.first(n)
    keep = None if own.mask.keep is None else own.mask.keep[:, :n]
    keep = None if keep is None or bool(keep.all()) else keep.clone()  # padding inside the text stays masked
    return replace(own, mask=replace(own.mask, n_query=n, n_key=n, keep=keep), bias=bias)
