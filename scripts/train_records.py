"""Train the runs that Train opens on, and keep what their pictures need: curve, frames, and the task's example as each frame sees it.

Of the last frame the weights are kept as well, so that it opens in Explore, reads other examples and is a file to download.

    python -m scripts.train_records           every task as it is, and the twins of Copy that have a chip
    python -m scripts.train_records --again   also those that are kept already

A run that `python -m scripts.train_runs` has made is not trained again. What is kept are some 50 kB a run, and 200 kB of weights.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from app.rooms.train import records, words
from core.learn import saved_runs
from core.learn.watched_training import Frame, Point, Spec, run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="also those that are kept already")
    parser.add_argument("--out", type=Path, default=records.FOLDER)
    parser.add_argument("--ends", type=Path, default=saved_runs.ENDS, help="where the weights go")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # as the process that trains before a visitor's eyes
    for spec in records.wanted(words.COMPONENT["twins"]):
        is_there = records.path_of(spec, options.out).is_file() and saved_runs.read(options.ends, spec) is not None
        if options.again or not is_there:
            begun = time.monotonic()
            points, frames = _ended(spec)
            path = records.write(spec, records.made(spec, points, frames), options.out)
            saved_runs.write(options.ends, spec, points[-1:], frames[-1:])
            print(f"{path.name:24} {path.stat().st_size / 1e3:6.1f} kB, {time.monotonic() - begun:.1f} s", flush=True)
    return 0


def _ended(spec: Spec) -> tuple[list[Point], list[Frame]]:
    known = saved_runs.read(saved_runs.FOLDER, spec)
    if known is not None:
        return known
    of_run = list(run(spec))
    return [x for x in of_run if isinstance(x, Point)], [x for x in of_run if isinstance(x, Frame)]


if __name__ == "__main__":
    sys.exit(main())
