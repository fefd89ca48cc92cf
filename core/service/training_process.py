"""How a process that trains ends with the server that started it, even where that was killed."""

from __future__ import annotations

import base64
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import torch

from ..errors import Refused
from ..learn.fork_states import States
from ..learn.text_training import STEPS, Text, TextFrame, TextPoint, baselines, text_run
from ..learn.watched_training import Frame, Point, Spec, run
from .text_training import state_from, state_text
from .training import frame_text, spec_from


def end_with(server: BinaryIO) -> None:
    """End this process when the server closes its end of this pipe, as it does when it dies."""

    def wait() -> None:
        server.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def run_process(main: Callable[[], object]) -> None:
    """Run a process until its work is done, or until its news has no reader: that is no failure."""
    try:
        main()
    except BrokenPipeError:
        os._exit(0)  # a plain exit would try to send the rest


TIME_SLICE_SECONDS = 0.25  # seconds
IDLE = 1800.0  # seconds without anything to do until the process asks to be ended: it takes 350 MB


def main(commands: BinaryIO = sys.stdin.buffer, news: BinaryIO = sys.stdout.buffer, idle: float = IDLE) -> None:
    """Train what is told until the commands end.

    It does not end by itself: a run might be on its way to it. After `idle` seconds without a run it says so, and ends when its
    commands are closed.
    """
    with suppress(AttributeError, OSError):  # Windows has no nice
        os.nice(10)  # visitors who type go first
    waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(commands, waiting), daemon=True).start()
    runs: dict[int, Iterator[Point | Frame | None]] = {}
    paused: dict[int, Iterator[Point | Frame | None]] = {}
    states = States()
    new: set[int] = set()  # begun or gone on with, and nothing was told of them since

    def send(**what: Any) -> None:
        news.write(json.dumps(what, allow_nan=True).encode() + b"\n")
        news.flush()

    def obey(command: dict[str, Any]) -> None:
        """{"start": number, "spec": description}, and stop, pause or go with the number of a run."""
        if (number := command.get("stop")) is not None:
            runs.pop(number, None)
            paused.pop(number, None)
            new.discard(number)
        elif (number := command.get("start")) is not None:
            runs[number] = run(spec_from(command["spec"]), states=states)
            new.add(number)
        elif (number := command.get("pause")) in runs:
            paused[number] = runs.pop(number)
        elif (number := command.get("go")) in paused:
            runs[number] = paused.pop(number)
            new.add(number)

    if waiting.empty():  # the first step of a process takes longer than others: here nobody waits for it
        next(run(Spec()))
    while True:
        while not waiting.empty() or not runs:
            try:
                command = waiting.get(timeout=None if runs or paused else idle)
            except queue.Empty:
                send(idle=True)
                continue
            if command is None:
                return
            obey(command)
        for number in sorted(runs, key=lambda number: number not in new):  # Train has just been pressed
            _turn(number, runs, new, waiting, send)


def _turn(
    number: int, runs: dict[int, Iterator[Point | Frame | None]], new: set[int], waiting: queue.Queue[Any], send: Any
) -> None:
    """One turn of one run, which ends early when there is a command. The first point of a new one is told at once."""
    points: list[list[float]] = []
    begun = time.monotonic()
    over = begun + TIME_SLICE_SECONDS
    done, why = False, ""
    while time.monotonic() < over and waiting.empty():
        try:
            made = next(runs[number])
        except StopIteration:
            done = True
            break
        except Refused as refusal:
            done, why = True, str(refusal)
            break
        if made is None:
            continue  # a step towards the state from which a run forks
        if isinstance(made, Point):
            points.append([made.step, made.loss, made.accuracy])
            if number not in new:
                continue
        new.discard(number)
        _tell_points(number, points, begun, send)
        points, begun = [], time.monotonic()
        if isinstance(made, Frame):
            send(run=number, frame=frame_text(made))
    _tell_points(number, points, begun, send)
    if done:
        runs.pop(number, None)
        send(run=number, ended=True, why=why)


def _tell_points(number: int, points: list[list[float]], begun: float, send: Any) -> None:
    if points:
        send(run=number, points=points, pace=(time.monotonic() - begun) / len(points))


def _read(commands: BinaryIO, waiting: queue.Queue[Any]) -> None:
    """Commands as they come; the end of them ends the process, as when the server has gone."""
    for line in commands:
        waiting.put(json.loads(line))
    waiting.put(None)


def text_main(asked: BinaryIO = sys.stdin.buffer, said: BinaryIO = sys.stdout.buffer) -> None:
    """Learn what the first line says, and tell each point and frame of it."""
    with suppress(AttributeError, OSError):  # Windows has no nice
        os.nice(10)  # visitors who type go first
    torch.set_num_threads(1)

    def send(**what: Any) -> None:
        said.write(json.dumps(what, allow_nan=True).encode() + b"\n")
        said.flush()

    command = json.loads(asked.readline())
    end_with(asked)
    start = None if command.get("start") is None else state_from(command["start"])
    try:
        of = Text(command["text"], command["unit"], command["seed"])
        if start is None:
            found = baselines(of)
            send(
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
                send(point=[made.step, made.loss, made.seconds])
            else:
                send(frame=text_frame_text(made))
        send(ended=True)
    except Refused as refusal:
        send(failed=str(refusal))


def text_frame_text(frame: TextFrame) -> dict[str, Any]:
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
    if sys.argv[1:] == ["text"]:
        run_process(text_main)
    else:
        run_process(partial(main, idle=float(sys.argv[1]) if len(sys.argv) > 1 else IDLE))
