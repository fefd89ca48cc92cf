"""Train the runs that Train opens on, and keep what their pictures need: curve, frames, and the task's example as each frame sees it.

Of the last frame the weights are kept as well, so that it opens in Explore, reads other examples and is a file to download.

    python -m scripts.train_records           every task as it is, Copy with its twins, Induction with its own and three seeds of each
    python -m scripts.train_records --again   also those that are kept already
    python -m scripts.train_records --runs F  with what F has of them: a run that is made goes there, and is not made again

A run that `python -m scripts.train_runs` has made is not trained again. What is kept are some 50 kB a run, and 200 kB of weights of
those that are no twin of Induction.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from app.rooms.train import records
from core.learn import recorded_runs
from core.learn.watched_training import Frame, Point, Spec, run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="also those that are kept already")
    parser.add_argument("--out", type=Path, default=records.FOLDER)
    parser.add_argument("--ends", type=Path, default=recorded_runs.ENDS, help="where the weights go")
    parser.add_argument("--runs", type=Path, help="where runs are kept while the script is at work")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # as the process that trains before a visitor's eyes
    for spec in records.wanted():
        kept = records.path_of(spec, options.out).is_file()
        weighs = records.weighs(spec)
        if options.again or not kept or (weighs and recorded_runs.read(options.ends, spec) is None):
            begun = time.monotonic()
            points, frames = _ended(spec, options.runs)
            path = records.write(spec, records.made(spec, points, frames), options.out)
            if weighs:
                recorded_runs.write(options.ends, spec, points[-1:], [_bare(frames[-1])])
            _told(path, begun)
        for other in records.others(spec):
            if options.again or not records.path_of(other, options.out).is_file():
                begun = time.monotonic()
                _told(records.write(other, records.curves(*_ended(other, options.runs)), options.out), begun)
    return 0


def _bare(frame: Frame) -> Frame:
    """Without what the record says of its heads."""
    return replace(frame, finds=(), back=(), ahead=())


def _told(path: Path, begun: float) -> None:
    print(f"{path.name:28} {path.stat().st_size / 1e3:6.1f} kB, {time.monotonic() - begun:.1f} s", flush=True)


def _ended(spec: Spec, runs: Path | None) -> tuple[list[Point], list[Frame]]:
    every = records.every(spec)
    known = (
        recorded_runs.read(runs, spec) if runs else None if every else recorded_runs.read(recorded_runs.FOLDER, spec)
    )
    if known is not None:
        return known
    of_run = list(run(spec, every=every))
    points, frames = [x for x in of_run if isinstance(x, Point)], [x for x in of_run if isinstance(x, Frame)]
    if runs:
        recorded_runs.write(runs, spec, points, frames)
    return points, frames


if __name__ == "__main__":
    sys.exit(main())
