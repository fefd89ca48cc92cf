"""Train the runs behind the chips of Train, so that whoever presses one has it finished at once.

    python -m scripts.train_runs                    every twin of Copy, the task that Train opens with
    python -m scripts.train_runs --tasks copy sort  of these tasks; --tasks all: of all, as make models does
    python -m scripts.train_runs --out /somewhere   into another folder

A run is a file of 7.5 MB in models/live/training/, which no repository keeps, and takes some 12 seconds of one core. One that is there already is left as it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from core.learn import recorded_runs
from core.learn.watched_training import LIVE, VARIANTS, Frame, Point, Spec, run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=["copy"], metavar="TASK", help=f"of {', '.join(LIVE)}, or all")
    parser.add_argument("--twins", nargs="+", default=list(VARIANTS), metavar="TWIN", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--out", type=Path, default=recorded_runs.FOLDER)
    options = parser.parse_args(arguments)
    tasks = list(LIVE) if options.tasks == ["all"] else options.tasks
    for what, asked, known in (("task", tasks, LIVE), ("twin", options.twins, VARIANTS)):
        if unknown := [name for name in asked if name not in known]:
            print(f"There is no {what} {unknown[0]!r}. Choose from {', '.join(known)}.", file=sys.stderr)
            return 2
    torch.set_num_threads(1)  # models of this size lose more by sharing than they gain
    for spec in [Spec(task, twin) for task in tasks for twin in options.twins]:
        if recorded_runs.read(options.out, spec) is not None:
            continue
        begun = time.monotonic()
        made = list(run(spec))
        points = [one for one in made if isinstance(one, Point)]
        path = recorded_runs.write(options.out, spec, points, [one for one in made if isinstance(one, Frame)])
        size = path.stat().st_size / 1e6
        print(f"{path.stem:32} {points[-1].step} steps in {time.monotonic() - begun:.1f} s, {size:.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
