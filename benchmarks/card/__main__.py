"""python -m benchmarks.card: every section in turn, its tables, and one JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import benchmarks.card

from . import capture, fits, generation, memory, parity, tiles
from .report import Report, about

SECTIONS = {
    "memory": memory.measure,
    "fits": fits.measure,
    "capture": capture.measure,
    "tiles": tiles.measure,
    "generation": generation.measure,
    "parity": parity.measure,  # last: it takes most of the minutes, and pytest -m cuda does it as well
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.card",
        description=benchmarks.card.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, default=Path("card.json"), help="the file that everything is written to")
    parser.add_argument("--minutes", type=float, default=8.0, help="after which no new row is begun")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="these sections alone")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    report = Report(device, 60 * options.minutes)
    print(f"{about(device)}, torch {torch.__version__}")
    if report.short:
        print("No card was found: this is the short form, and its numbers say nothing about a card.")
    for name in options.only:
        SECTIONS[name](report)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    report.write(options.json)
    found = report.to_dict()
    print(f"\n{found['seconds']:.0f} s. Written to {options.json}.")
    for what in report.left_out:
        print(f"Left out, {what}.")
    for what in report.failed:
        print(f"Misses its goal: {what}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
