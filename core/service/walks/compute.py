"""What is kept of a walk between two questions about it."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

from ...read.layer_walk import Walk


def without_run(walk: Walk) -> partial[Walk]:
    """A walk's own numbers, for the same run again: runs are the engine's to hold, and to drop."""
    return partial(Walk, **{field.name: getattr(walk, field.name) for field in fields(walk) if field.name != "run"})


def walk_bytes(kept: partial[Walk]) -> int:
    """About what it holds: the whole of whatever its tensors are parts of."""
    own = kept.keywords
    tensors = [x for name in ("values", "before_norm", "turned_keys") for x in own[name].values()]
    tensors += [x for pair in own["inputs"].values() for x in pair]
    return 16_384 + sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())
