"""The process that trains, in one thread: turns of a quarter of a second for each run. Commands and news are lines of JSON.

A twin that forks goes on from a state that its run without a twin left here on its way.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from ...errors import Refused
from ...learn.fork_states import States
from ...learn.watched_training import Frame, Point, Spec, run
from . import server_gone
from .trainer import frame_text, spec_from

TURN = 0.25  # seconds
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

    def say(**what: Any) -> None:
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
                say(idle=True)
                continue
            if command is None:
                return
            obey(command)
        for number in sorted(runs, key=lambda number: number not in new):  # Train has just been pressed
            _turn(number, runs, new, waiting, say)


def _turn(
    number: int, runs: dict[int, Iterator[Point | Frame | None]], new: set[int], waiting: queue.Queue[Any], say: Any
) -> None:
    """One turn of one run, which ends early when there is a command. The first point of a new one is told at once."""
    points: list[list[float]] = []
    begun = time.monotonic()
    over = begun + TURN
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
        _tell_points(number, points, begun, say)
        points, begun = [], time.monotonic()
        if isinstance(made, Frame):
            say(run=number, frame=frame_text(made))
    _tell_points(number, points, begun, say)
    if done:
        runs.pop(number, None)
        say(run=number, ended=True, why=why)


def _tell_points(number: int, points: list[list[float]], begun: float, say: Any) -> None:
    if points:
        say(run=number, points=points, pace=(time.monotonic() - begun) / len(points))


def _read(commands: BinaryIO, waiting: queue.Queue[Any]) -> None:
    """Commands as they come; the end of them ends the process, as when the server has gone."""
    for line in commands:
        waiting.put(json.loads(line))
    waiting.put(None)


if __name__ == "__main__":
    server_gone.run(partial(main, idle=float(sys.argv[1]) if len(sys.argv) > 1 else IDLE))
