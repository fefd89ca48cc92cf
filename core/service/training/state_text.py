"""The state from which a run continues, as JSON between two processes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...learn.training import State


def state_text(state: State) -> dict[str, Any]:
    def packed(x: Tensor) -> list[Any]:
        array = x.contiguous().numpy()
        return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]

    return {"step": state.step, "tensors": {name: packed(x) for name, x in state.tensors.items()}}


def state_from(said: Mapping[str, Any]) -> State:
    """The state that state_text() wrote."""
    tensors = {
        name: torch.from_numpy(np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy())
        for name, (kind, shape, text) in said["tensors"].items()
    }
    return State(int(said["step"]), tensors)
