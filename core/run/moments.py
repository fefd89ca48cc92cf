"""Any named moment of a pass, on demand: held where the run holds it, else from another pass that goes no further."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from .. import memory
from ..model.hooks import hook_points
from .attention import AttentionRecord
from .forward_pass import Pass
from .predictions import head_of

PLACES = ("pos", "query", "key")  # the axes that count tokens
ADVICE = "Ask for fewer positions, or run a shorter text."


def value(
    forward: Pass,
    records: Sequence[AttentionRecord],
    last_residual: Callable[[Tensor], Tensor],
    point: str,
    text: int,
    positions: Sequence[int] | None,
) -> Tensor:
    """The value at `point` in one text, without the batch: see Trace.value."""
    points = hook_points(forward.loaded.model)
    if point not in points:
        raise KeyError(f"no such hook point: {point}")
    axes = points[point].axes
    if not axes:
        raise KeyError(f"{point} is a rule and no numbers: records have it as `rule`")
    sizes = _sizes(forward, point)
    place = next((i for i, axis in enumerate(axes) if axis in PLACES), None)
    if place is None:
        raise KeyError(f"{point} has no positions")
    n = sizes[axes[place]]
    if positions is not None and (bad := [p for p in positions if not 0 <= p < n]):
        raise IndexError(f"position {bad[0]} of {n}")
    chosen = list(range(n)) if positions is None else list(positions)
    asked = prod(sizes[axis] for axis in axes[1:]) // n * len(chosen)
    name, kind = point.rsplit(".", 1)
    if kind in ("hook_scores", "hook_pattern"):
        record = next(record for record in records if record.name == name).of(text)
        _admit(forward, asked * 4, point, 0)
        return record.scores(queries=chosen) if kind == "hook_scores" else record.pattern(queries=chosen)
    rows = torch.tensor(chosen, device=forward.loaded.device)
    by = forward.loaded.dtype.itemsize
    if kind == "hook_logits":
        head = head_of(forward.loaded)
        _admit(forward, 2 * asked * by, point, 0)
        forward.weights.check()
        with torch.inference_mode():
            logits = head(last_residual(rows)[text][None])[0]
        forward.weights.check()
        return logits
    held = next((record for record in records if record.name == name), None)
    if held is not None and kind in ("hook_q", "hook_k"):
        whole = held.batch_q if kind == "hook_q" else held.batch_k
        return whole[text].index_select(place - 1, rows.to(whole.device)).to(rows.device)
    if held is not None and kind == "hook_v":
        v = held.values()[text]
        return v.index_select(place - 1, rows.to(v.device)).to(rows.device)

    def part(x: Tensor) -> Tensor:
        return x[text if x.shape[0] > 1 else 0].index_select(place - 1, rows)

    # In the pass the whole tensor exists for a moment, of all texts; what is asked for stays.
    _admit(forward, asked * by + prod(sizes[axis] for axis in axes) * by, point, forward.transient())
    return forward.again(point, part)


def _sizes(forward: Pass, point: str) -> dict[str, int]:
    """How long each axis is at this point."""
    config, prompt = forward.loaded.config, forward.prompt
    own = prompt.source_len if point.startswith("encoder.") or prompt.targets is None else prompt.target_len
    return {
        "batch": prompt.batch,
        "pos": own,
        "query": own,
        "key": prompt.source_len if ".cross_attn." in point else own,
        "head": config.n_heads,
        "kv_head": config.n_kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "d_rotary/2": config.d_rotary // 2,
        "vocab": config.vocab_size,
    }


def _admit(forward: Pass, needed: int, point: str, more: int) -> None:
    memory.admit_large(needed + more, forward.loaded.device, f"The numbers at {point}", ADVICE)
