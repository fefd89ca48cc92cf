"""The loss curve beside a trained model: curve.json holds a column for each field of TrainStep, in the order of the steps."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from core.checkpoints.own import write_whole
from core.learn.training import TrainStep

COLUMNS = ("step", "loss", "accuracy", "learning_rate", "seconds")


def read_curve(folder: Path) -> dict[int, TrainStep]:
    path = folder / "curve.json"
    if not path.is_file():
        return {}
    columns = json.loads(path.read_text("utf-8"))
    return {row[0]: TrainStep(*row) for row in zip(*(columns[name] for name in COLUMNS), strict=True)}


def write_curve(folder: Path, curve: dict[int, TrainStep]) -> None:
    rows = [asdict(curve[step]) for step in sorted(curve)]
    columns = {name: [round(row[name], 7) for row in rows] for name in COLUMNS}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "curve.json", (json.dumps(columns, separators=(",", ":")) + "\n").encode())
