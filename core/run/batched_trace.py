"""Several short texts in one padded pass; each leaves the run that it would leave alone."""

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
from .trace_record import TraceRecord as Trace

ALONG = ("pos", "query", "key")  # axes along which a batch is padded


def trace_together(loaded: Loaded, texts: Sequence[Tokens]) -> tuple[Trace, ...]:
    """What trace() gives for each of these texts without edits, from one pass over all of them. The model has one stack.

    Padding is hidden and moves no position, so a run is what it would be by itself, to the rounding of a matrix product.
    It holds nothing of the others, and what needs another pass runs its text alone; `seconds` are those of the whole pass.
    Raises TextError as trace() does, TooLarge with the bytes needed and free, and InterventionError where a hook would edit.
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


def _trace(recorder: Recorder, final: Tensor, seconds: float) -> Trace:
    """final [1, pos, d_model] is a part of the batch's, and is copied."""
    forward, hold = recorder.forward, recorder.hold_values
    loaded, sources = forward.loaded, forward.prompt.sources
    again = partial(forward.again, f"{loaded.config.stacks[-1][0]}.hook_final")
    needed = run_bytes(loaded.config, forward.workload, keep_values=hold)
    return Trace(
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
    """Hooks of the batch that show every text's recorder its own part of what passes, as if nothing else did."""
    points = hook_points(loaded.model)
    sizes = [recorder.forward.prompt.source_len for recorder in recorders]
    of_each = [recorder.hooks() for recorder in recorders]
    shown: tuple[weakref.ref[Any], list[Any]] | None = None  # the last that was only looked at, and its parts

    def show(name: str, x: Any) -> None:
        nonlocal shown
        if shown is not None and shown[0]() is x:  # the stream between two layers passes two points
            parts = shown[1]
        else:
            kept = name.rsplit(".", 1)[-1] in KEPT
            parts = [part_of(x, points[name], text, n, copy=kept) for text, n in enumerate(sizes)]
            shown = None if kept else (weakref.ref(x), parts)
        for hooks, part in zip(of_each, parts, strict=True):
            hooks[name](part)

    return {name: partial(show, name) for name in of_each[0]}


def part_of(x: Any, point: HookPoint, text: int, n: int, copy: bool) -> Any:
    """Of what passes a hook point, a tensor [batch or 1, …] or a rule, the part of one text of n tokens, without its padding."""
    if isinstance(x, ScoreRule):
        return rule_of(x, text, n)
    row = text if x.shape[0] > 1 else 0
    x = x[row : row + 1]
    for dim, axis in enumerate(point.axes):
        x = x.narrow(dim, 0, n) if axis in ALONG else x
    return x.clone() if copy else x  # a view would hold the whole batch


def rule_of(rule: ScoreRule, text: int, n: int) -> ScoreRule:
    """The rule of one text of n tokens as it would be by itself: nothing of it says that there was padding."""
    own = rule.of(text)
    bias = own.bias
    if isinstance(bias, DistanceBias):
        queries, keys = bias.query_positions[:, :n].clone(), bias.key_positions[:, :n].clone()
        bias = replace(bias, query_positions=queries, key_positions=keys)
    if isinstance(bias, DisentangledBias):
        bias = bias.first(n)
    keep = None if own.mask.keep is None else own.mask.keep[:, :n]
    keep = None if keep is None or bool(keep.all()) else keep.clone()  # padding inside the text itself stays hidden
    return replace(own, mask=replace(own.mask, n_query=n, n_key=n, keep=keep), bias=bias)
