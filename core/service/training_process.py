"""Training processes: `python -m core.service.training_process [idle seconds]` trains on toy tasks, with `text` on one text of a visitor.

Commands and messages are lines of JSON. A process ends with the server that started it.
"""

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

from ..errors import HeadlightError
from ..learn.text_training import STEPS, Text, TextFrame, TextPoint, baselines, text_run
from ..learn.training import RunState
from ..learn.watched_training import Frame, Point, Spec, States, run
from .training import frame_text, spec_from, tensors_from, tensors_text

Run = Iterator[Point | Frame | None]

TIME_SLICE_SECONDS = 0.25
IDLE = 1800.0  # seconds without a run until the process asks to be ended: it takes 350 MB


def main(commands: BinaryIO = sys.stdin.buffer, news: BinaryIO = sys.stdout.buffer, idle: float = IDLE) -> None:
    """Train the runs that the commands start, in one thread and in time slices, until the commands end.

    A variant that forks continues from a state that its run without a variant has left in this process. The process does not end by
    itself, because a run might be on its way to it: after `idle` seconds without a run it sends {"idle": true}, and ends when its
    commands are closed.
    """
    _be_nice()
    waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(commands, waiting), daemon=True).start()
    runs: dict[int, Run] = {}
    paused: dict[int, Run] = {}
    states = States()
    new: set[int] = set()  # started or resumed, without a message since
    send = partial(_send, news)

    def obey(command: dict[str, Any]) -> None:
        """{"start": number, "spec": description}, or stop, pause or go with the number of a run."""
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

    if waiting.empty():  # the first step of a process is slow, so it is done while nobody waits for it
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
        for number in sorted(runs, key=lambda number: number not in new):  # new runs first: Train has just been pressed
            _turn(number, runs, new, waiting, send)


def _turn(
    number: int, runs: dict[int, Run], new: set[int], waiting: queue.Queue[Any], send: Callable[..., None]
) -> None:
    """One time slice of a run, which a command ends early. The first point of a new run is sent at once."""
    points: list[list[float]] = []
    started = time.monotonic()
    stop = started + TIME_SLICE_SECONDS
    done, why = False, ""
    while time.monotonic() < stop and waiting.empty():
        try:
            made = next(runs[number])
        except StopIteration:
            done = True
            break
        except HeadlightError as refusal:
            done, why = True, str(refusal)
            break
        if made is None:
            continue  # a step towards the state from which a run forks
        if isinstance(made, Point):
            points.append([made.step, made.loss, made.accuracy])
            if number not in new:
                continue
        new.discard(number)
        _send_points(number, points, started, send)
        points, started = [], time.monotonic()
        if isinstance(made, Frame):
            send(run=number, frame=frame_text(made))
    _send_points(number, points, started, send)
    if done:
        runs.pop(number, None)
        send(run=number, ended=True, why=why)


def _send_points(number: int, points: list[list[float]], started: float, send: Callable[..., None]) -> None:
    if points:
        send(run=number, points=points, pace=(time.monotonic() - started) / len(points))


def text_main(commands: BinaryIO = sys.stdin.buffer, news: BinaryIO = sys.stdout.buffer) -> None:
    """Train on the text in the first line of the commands, and send every point and frame."""
    _be_nice()
    torch.set_num_threads(1)
    send = partial(_send, news)
    command = json.loads(commands.readline())
    end_with(commands)
    start = None
    if (state := command.get("start")) is not None:
        start = RunState(int(state["step"]), tensors_from(state["tensors"]))
    try:
        text = Text(command["text"], command["unit"], command["seed"])
        if start is None:
            found = baselines(text)
            begun = {"blind": found.blind, "counts": found.counts, "pairs": found.pairs}
            send(begun={**begun, "prompt": text.prompt, "signs": text.n_tokens, "unit": text.unit})
        for made in text_run(text, command["seconds"], command.get("steps", STEPS), start):
            if isinstance(made, TextPoint):
                send(point=[made.step, made.loss, made.seconds])
            else:
                send(frame=text_frame_text(made))
        send(ended=True)
    except HeadlightError as refusal:
        send(failed=str(refusal))


def text_frame_text(frame: TextFrame) -> dict[str, Any]:
    """A frame as JSON: its map as bytes, with 255 for a weight of 1, and the state from which the run continues."""
    names = ("step", "seconds", "loss", "back", "repeat", "tokens", "sample")
    levels = (frame.pattern * 255).round().to(torch.uint8).contiguous()
    return {
        **{name: getattr(frame, name) for name in names},
        "shape": list(levels.shape),
        "map": base64.b64encode(levels.numpy().tobytes()).decode(),
        "state": {"step": frame.weights.step, "tensors": tensors_text(frame.weights.tensors)},
    }


def _be_nice() -> None:
    """Lower the priority of this process: visitors who type go first."""
    with suppress(AttributeError, OSError):  # Windows has no nice
        os.nice(10)


def _send(news: BinaryIO, **message: Any) -> None:
    news.write(json.dumps(message, allow_nan=True).encode() + b"\n")
    news.flush()


def _read(commands: BinaryIO, waiting: queue.Queue[Any]) -> None:
    """Thread that queues the commands. Their end, as when the server is gone, ends the process."""
    for line in commands:
        waiting.put(json.loads(line))
    waiting.put(None)


def end_with(server: BinaryIO) -> None:
    """End this process when the server closes its end of the pipe, as it does when it dies."""

    def wait() -> None:
        server.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def run_process(main: Callable[[], object]) -> None:
    """Run a process until its work is done. A pipe that nobody reads any more is not an error."""
    try:
        main()
    except BrokenPipeError:
        os._exit(0)  # a normal exit would try to flush


if __name__ == "__main__":
    if sys.argv[1:] == ["text"]:
        run_process(text_main)
    else:
        run_process(partial(main, idle=float(sys.argv[1]) if len(sys.argv) > 1 else IDLE))
