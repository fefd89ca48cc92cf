"""Activation at any hook point: from the run if it is stored, otherwise from a forward pass that stops there."""

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
    if record is not None and kind in ("hook_q", "hook_k", "hook_v"):
        stored = {"q": lambda: record.batch_q, "k": lambda: record.batch_k, "v": record.values}[kind[-1]]()[text]
        return stored.index_select(place - 1, rows.to(stored.device)).to(rows.device)
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
    memory.admit_large(needed, forward.loaded.device, f"The numbers at {point}", ADVICE)
