"""The pages of small numbers as one message: one head of 3 × 4, a batch and its transpose, the reshape into two heads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from app.transport import messages
from core.labs import worked_examples


@cache
def small_message() -> bytes:
    """Every number of the three examples; the browser computes what follows from a number of x that is dragged."""
    one, batch, reshape = worked_examples.one_head(), worked_examples.batch(), worked_examples.reshape()
    index = (0, 2, 5)
    header: dict[str, Any] = {
        "one": {name: _rows(getattr(one, name)) for name in ("x", "w_q", "w_k", "w_v", "weights", "output")},
        "batch": {
            "q": _rows(batch.q),
            "k": _rows(batch.k),
            "scores": _rows(batch.scores),
            "error": batch.error,
            "wrong_by": batch.wrong_by,
        },
        "reshape": {
            "qkv": _rows(reshape.qkv),
            "error": reshape.error,
            "strides": list(worked_examples.follow((2, 4, 24), worked_examples.HEADS, index, parts=3)[3].strides),
        },
    }
    return messages.pack(header, b"")


def _rows(values: Any) -> list[Any]:
    return np.asarray(values, dtype=np.float32).astype(float).tolist()
