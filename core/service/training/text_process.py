"""The process in which one text is learnt. A line of JSON says which; lines of JSON come back. It ends with the run or the server."""

from __future__ import annotations

import base64
import json
import os
import sys
from contextlib import suppress
from typing import Any, BinaryIO

import torch

from ...errors import Refused
from ...learn.text_training import STEPS, Text, TextFrame, TextPoint, baselines, text_run
from . import server_gone
from .state_text import state_from, state_text


def main(asked: BinaryIO = sys.stdin.buffer, said: BinaryIO = sys.stdout.buffer) -> None:
    """Learn what the first line says, and tell each point and frame of it."""
    with suppress(AttributeError, OSError):  # Windows has no nice
        os.nice(10)  # visitors who type go first
    torch.set_num_threads(1)

    def say(**what: Any) -> None:
        said.write(json.dumps(what, allow_nan=True).encode() + b"\n")
        said.flush()

    command = json.loads(asked.readline())
    server_gone.end_with(asked)
    start = None if command.get("start") is None else state_from(command["start"])
    try:
        of = Text(command["text"], command["unit"], command["seed"])
        if start is None:
            found = baselines(of)
            say(
                begun={
                    "blind": found.blind,
                    "counts": found.counts,
                    "pairs": found.pairs,
                    "prompt": of.prompt,
                    "signs": of.n_tokens,
                    "unit": of.unit,
                }
            )
        for made in text_run(of, command["seconds"], command.get("steps", STEPS), start):
            if isinstance(made, TextPoint):
                say(point=[made.step, made.loss, made.seconds])
            else:
                say(frame=frame_text(made))
        say(ended=True)
    except Refused as refusal:
        say(failed=str(refusal))


def frame_text(frame: TextFrame) -> dict[str, Any]:
    """A frame as JSON: its map as bytes, 255 for a weight of 1, and the state from which the run continues."""
    names = ("step", "seconds", "loss", "back", "repeat", "tokens", "sample")
    levels = (frame.pattern * 255).round().to(torch.uint8).contiguous()
    return {
        **{name: getattr(frame, name) for name in names},
        "shape": list(levels.shape),
        "map": base64.b64encode(levels.numpy().tobytes()).decode(),
        "state": state_text(frame.weights),
    }


if __name__ == "__main__":
    server_gone.run(main)
