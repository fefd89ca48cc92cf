"""The loss curve of a trained model: curve.json.gz holds a column for each field of TrainStep, in the order of the steps."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path

from core.checkpoints.catalog import CURVE
from core.checkpoints.native_format import write_whole
from core.learn.training import TrainStep

COLUMNS = ("step", "loss", "accuracy", "learning_rate", "seconds")


def read_curve(folder: Path) -> dict[int, TrainStep]:
    path = folder / CURVE
    if not path.is_file():
        return {}
    columns = json.loads(gzip.decompress(path.read_bytes()))
    return {row[0]: TrainStep(*row) for row in zip(*(columns[name] for name in COLUMNS), strict=True)}


def write_curve(folder: Path, curve: dict[int, TrainStep]) -> None:
    rows = [asdict(curve[step]) for step in sorted(curve)]
    columns = {name: [round(row[name], 7) for row in rows] for name in COLUMNS}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(columns, separators=(",", ":")) + "\n"
    write_whole(folder / CURVE, gzip.compress(text.encode(), 9, mtime=0))
