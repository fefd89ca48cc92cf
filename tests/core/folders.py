"""Ways to change what is in a published model's folder: its config.json and its tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints.files import SINGLE

Tensors = dict[str, Tensor]
Config = dict[str, Any]


def change_config(folder: Path, **changes: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


def change_tensors(folder: Path, change: Callable[[Tensors], Tensors]) -> Path:
    save_file({k: v.contiguous().clone() for k, v in change(load_file(folder / SINGLE)).items()}, folder / SINGLE)
    return folder


def renamed(rename: Callable[[str], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {rename(name): tensor for name, tensor in tensors.items()}


def without(*parts: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {k: v for k, v in tensors.items() if not any(part in k for part in parts)}


def plus(**more: Tensor) -> Callable[[Tensors], Tensors]:
    return lambda tensors: tensors | {name.replace("__", "."): tensor for name, tensor in more.items()}
