"""Finished training runs as files, so that a request for one is answered at once. `python -m scripts.train_runs` makes them.

For the runs that Train opens on, the last frame ships, so that their models can be inspected without training.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..checkpoints.catalog import MODELS
from .watched_training import Frame, Point, Spec, Weights, name_of

FOLDER = MODELS / "live" / "training"  # created on use, not shipped
# Last frames of the runs that Train opens on; `python -m scripts.train_records` makes them.
ENDS = MODELS / "trained"
# The fields of a frame other than its weights.
FACTS = ("step", "given", "own", "whole", "gradients", "loss", "finds", "back", "ahead")

log = logging.getLogger("headlight")


def write(folder: Path, spec: Spec, points: Sequence[Point], frames: Sequence[Frame]) -> Path:
    """Store a finished run. The file is written atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name_of(spec)}.safetensors"
    tensors = {f"{frame.step}/{name}": x.contiguous() for frame in frames for name, x in frame.weights.items()}
    metadata = {
        "run": json.dumps(asdict(spec)),
        "points": json.dumps([[point.step, point.loss, point.accuracy] for point in points]),
        "frames": json.dumps([{name: getattr(frame, name) for name in FACTS} for frame in frames]),
    }
    part = path.with_suffix(".part")
    save_file(tensors, part, metadata=metadata)
    part.replace(path)
    return path


def read(folder: Path, spec: Spec) -> tuple[list[Point], list[Frame]] | None:
    """Read the points and frames of a stored run; None if there is none. An unreadable file is logged."""
    path = folder / f"{name_of(spec)}.safetensors"
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if json.loads(metadata["run"]) != asdict(spec):
                return None
            points = [
                Point(int(step), float(loss), float(right)) for step, loss, right in json.loads(metadata["points"])
            ]
            weights: dict[int, dict[str, torch.Tensor]] = {}
            for key in file.keys():  # noqa: SIM118  not a dict
                step, _, name = key.partition("/")
                weights.setdefault(int(step), {})[name] = file.get_tensor(key)
            return points, [frame_of(facts, weights[facts["step"]]) for facts in json.loads(metadata["frames"])]
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read, and the run is trained again when it is asked for: %s", path.name, error)
        return None


def frame_of(facts: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> Frame:
    """Build a frame from its FACTS, as decoded from JSON, and its weights."""
    given, own, gradients = (tuple(map(float, facts[name])) for name in ("given", "own", "gradients"))
    measures = (rows_of(facts.get(name, ())) for name in ("finds", "back", "ahead"))  # older files have none
    loss = float(facts.get("loss", math.nan))
    return Frame(int(facts["step"]), weights, given, own, int(facts["whole"]), gradients, loss, *measures)


def rows_of(rows: Sequence[Sequence[float]]) -> Weights:
    """[layer][head], from JSON."""
    return tuple(tuple(map(float, row)) for row in rows)
