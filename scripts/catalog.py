"""Write models/index.json: digest, size and saved points of every model that ships, as the catalog offers them.

python -m scripts.catalog           after a training; `make models` ends with it
python -m scripts.catalog --check   say what does not agree, change nothing
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from safetensors import safe_open

from core.checkpoints import sha256
from core.checkpoints.catalog import INDEX, MODELS, POINTS, SHIPPED
from core.checkpoints.native_format import write_whole
from scripts.shipping import name_of, steps

WEIGHTS = "model.safetensors"


def finished(models: Path = MODELS) -> list[str]:
    """Names of the models in a folder whose training is over: they have a card, and nothing half done."""
    return [
        name for name in SHIPPED if (models / name / "card.md").is_file() and not (models / name / "training").exists()
    ]


def described(folder: Path) -> dict[str, Any]:
    """What the index says of one model. The last of its points is the model itself, which has no folder among them."""
    digest = sha256(folder / WEIGHTS)
    points = {
        path.name: sha256(path / WEIGHTS) for path in sorted((folder / POINTS).glob("*")) if path.name.isdecimal()
    }
    if points:
        points[name_of(steps(folder))] = digest
    return {"parameters": parameters(folder / WEIGHTS), "sha256": digest, "points": points}


def parameters(path: Path) -> int:
    """Numbers in a file of tensors without the scales of rows; those that a model shares are stored once."""
    with safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if not name.endswith("_scale")]  # noqa: SIM118  it is no dict
        return sum(math.prod(file.get_slice(name).get_shape()) for name in names)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what does not agree, and change nothing")
    parser.add_argument("--models", type=Path, default=MODELS)
    options = parser.parse_args(arguments)
    index = {name: described(options.models / name) for name in finished(options.models)}
    path = options.models / INDEX
    before = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    changed = [name for name in {**index, **before} if index.get(name) != before.get(name)]
    for name in changed:
        print(f"{name}: {'new' if name not in before else 'gone' if name not in index else 'other weights'}")
    if options.check:
        return 1 if changed else 0
    write_whole(path, (json.dumps(index, indent=1) + "\n").encode())
    for name, known in index.items():
        print(f"{name:16} {known['sha256'][:12]}  {known['parameters']:>12,} parameters  {len(known['points'])} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
