"""The state from which a run continues, as JSON between two processes."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import Busy, Refused
from ..learn.text_training import SECONDS, STEPS, Text
from ..learn.training import State
from .event_loop import into_loop
from .training import ENVIRONMENT, MOST_ACTIVE, MOST_WAITING


def state_text(state: State) -> dict[str, Any]:
    def packed(x: Tensor) -> list[Any]:
        array = x.contiguous().numpy()
        return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]

    return {"step": state.step, "tensors": {name: packed(x) for name, x in state.tensors.items()}}


def state_from(said: Mapping[str, Any]) -> State:
    """The state that state_text() wrote."""
    tensors = {
        name: torch.from_numpy(np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy())
        for name, (kind, shape, text) in said["tensors"].items()
    }
    return State(int(said["step"]), tensors)


COMMAND = (sys.executable, "-m", f"{__package__}.training_process", "text")
MOST_KEPT = 40  # texts of visitors who do not watch just now
FORGOTTEN = 1800.0  # seconds after which such a text is let go
NEVER_WATCHED = 15.0  # seconds that a new text waits in line for its visitor to watch
LEFT = 120.0  # seconds that it waits for a visitor who has watched and may come back
LOOK = 5.0  # seconds between two searches for such texts
NONE = "There is no text here yet. Paste or drop one."
UNLEARNT = "Nothing of this text is learnt yet."
GONE = "The model of this text is not kept any more. Open Train and let it learn the text again."
PROCESS_DIED = "The process that learnt this text has ended. Press Train to learn it again."

log = logging.getLogger("headlight")


@dataclass(frozen=True)
class TextTrainingUpdate:
    """The state of a visitor's text, and all that is new of it, since the news before."""

    state: Literal["waiting", "running", "stopped", "ended", "failed"]
    place: int = 0
    seconds: float = 0.0  # that it will wait, about
    begun: dict[str, Any] | None = None  # baselines, prompt, signs, unit
    points: tuple[tuple[int, float, float], ...] = ()
    frames: tuple[dict[str, Any], ...] = ()
    why: str = ""
    key: str = ""  # of its model, once the run rests


@dataclass(frozen=True, eq=False)
class TextModel:
    """The state of a run's last frame, and the loss there."""

    of: Text
    state: State
    loss: float


@dataclass(eq=False)
class _Run:
    of: Text
    seconds: float
    steps: int
    state: Literal["waiting", "running", "stopped", "ended", "failed"] = "waiting"
    begun: dict[str, Any] | None = None
    points: list[tuple[int, float, float]] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    resume: dict[str, Any] | None = None  # the state of the last frame
    why: str = ""
    key: str = ""  # of the model of its last frame while it rests, by which no other visitor finds it
    process: subprocess.Popen[bytes] | None = None
    seen: float = field(default_factory=time.monotonic)  # when it was watched last
    was_watched: bool = False
    watchers: list[Callable[[], None]] = field(default_factory=list)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - (self.points[-1][2] if self.points else 0.0))


class TextTrainer:
    """Texts by the visitor who brought them. Any number of threads and event loops may ask."""

    def __init__(
        self,
        command: tuple[str, ...] = COMMAND,
        seconds: float = SECONDS,
        steps: int = STEPS,
        on_release: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`on_release` is told the key of each model that is there no longer."""
        self.command, self.seconds, self.steps, self.on_release = command, seconds, steps, on_release
        self.clock = time.monotonic
        self._sweeper: threading.Timer | None = None
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def begin(self, visitor: str, of: Text) -> None:
        """Put a text in line for a visitor, in place of the visitor's previous one. Raises Busy if the line is full.

        In a full line, the oldest unwatched text gives way.
        """
        with self._lock:
            self.forget(visitor)
            self._sweep()
            waiting = [name for name, run in self._runs.items() if run.state == "waiting"]
            if len(waiting) >= MOST_WAITING:
                unwatched = next((name for name in waiting if not self._runs[name].watchers), None)
                if unwatched is None:
                    raise Busy(f"{len(waiting)} trainings wait already, and that is the most. Try again in a minute.")
                self._leave_line(unwatched)
            self._runs[visitor] = _Run(of, self.seconds, self.steps, seen=self.clock())
            self._turn()
            self._sweep_later()

    def stop(self, visitor: str) -> None:
        """End a run where its last frame is: that stays, and it may continue from there."""
        with self._lock:
            run = self._mine(visitor)
            if run.state in ("waiting", "running"):
                run.state = "stopped"
                last = run.frames[-1]["step"] if run.frames else 0
                run.points = [point for point in run.points if point[0] <= last]
                self._make_key(run)
                self._kill(run)
                self._turn()

    def resume(self, visitor: str) -> None:
        """Let a run that was stopped continue."""
        with self._lock:
            run = self._mine(visitor)
            if run.state in ("stopped", "failed"):
                run.state, run.seen = "waiting", self.clock()
                self._drop_key(run)
                self._runs.move_to_end(visitor)
                self._turn()

    def forget(self, visitor: str) -> None:
        """Let go of a visitor's text, and of all that was learnt from it."""
        with self._lock:
            run = self._runs.pop(visitor, None)
            if run is not None:
                run.state, run.why = "failed", NONE
                self._drop_key(run)
                self._kill(run)
                self._turn()

    def keep(self, visitor: str) -> None:
        """The visitor is still here: what was learnt stays as long again. Raises Refused where there is none."""
        with self._lock:
            self._mine(visitor).seen = self.clock()

    def is_of(self, key: str, visitor: str) -> bool:
        """Whether this is the key of a model of this visitor's, who is here then."""
        with self._lock:
            run = self._runs.get(visitor)
            if run is None or not key or run.key != key:
                return False
            run.seen = self.clock()
            return True

    def model(self, visitor: str) -> TextModel:
        """The last frame of a visitor's run. Raises Refused where there is none."""
        with self._lock:
            run = self._mine(visitor)
            if run.resume is None or not run.frames:
                raise Refused(UNLEARNT)
            of, said, loss = run.of, run.resume, run.frames[-1]["loss"]
        return TextModel(of, state_from(said), loss)

    def model_of(self, key: str) -> TextModel:
        """The same by the key of a run that rests. Raises Refused for any other."""
        with self._lock:
            visitor = next((name for name, run in self._runs.items() if key and run.key == key), None)
            if visitor is None:
                raise Refused(GONE)
            return self.model(visitor)

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            for visitor in list(self._runs):
                self._runs[visitor].state = "failed"
            for visitor in list(self._runs):
                self.forget(visitor)

    async def watch(self, visitor: str) -> AsyncGenerator[TextTrainingUpdate]:
        """A visitor's run from its beginning, and what comes of it until it rests. Raises Refused where there is none."""
        changed = asyncio.Event()
        tell = into_loop(changed.set)
        with self._lock:
            run = self._mine(visitor)
            run.watchers.append(tell)
            run.was_watched = True
            self._turn()
        points = frames = 0
        before: TextTrainingUpdate | None = None
        try:
            while True:
                changed.clear()
                with self._lock:
                    points = min(points, len(run.points))
                    place, seconds = self._place(run)
                    new = TextTrainingUpdate(
                        run.state,
                        place,
                        round(seconds),
                        run.begun if not points and not frames else None,
                        tuple(run.points[points:]),
                        tuple(run.frames[frames:]),
                        run.why,
                        run.key,
                    )
                    points, frames = len(run.points), len(run.frames)
                if new != before:
                    yield new
                if new.state not in ("waiting", "running"):
                    return
                before = new
                await changed.wait()
        finally:
            with self._lock:
                run.watchers.remove(tell)
                run.seen = self.clock()
                self._sweep_later()

    def _mine(self, visitor: str) -> _Run:
        if visitor not in self._runs:
            raise Refused(NONE)
        return self._runs[visitor]

    def _place(self, run: _Run) -> tuple[int, float]:
        """(how many run or wait before it while it waits, seconds until it begins)."""
        if run.state != "waiting":
            return 0, 0.0
        ahead = sorted(other.left for other in self._runs.values() if other.state == "running")
        for other in self._runs.values():
            if other is run:
                break
            if other.state == "waiting" and other.watchers:
                ahead = sorted([*ahead[1:], (ahead[0] if ahead else 0.0) + other.left])
        before = takewhile(lambda other: other is not run, self._runs.values())
        n = 1 + sum(other.state == "waiting" and bool(other.watchers) for other in before)
        return n, ahead[0] if ahead else 0.0

    def _turn(self) -> None:
        """Start waiting runs that are watched while there is room, and tell the others their place in line."""
        active = sum(run.state == "running" for run in self._runs.values())
        for run in list(self._runs.values()):
            if run.state == "waiting" and run.watchers and active < MOST_ACTIVE:
                active += 1
                self._start(run)
        for run in self._runs.values():
            self._changed(run)

    def _sweep(self) -> None:
        """Drop texts that have been unwatched for long: from the line, then from memory, where MOST_KEPT are kept."""
        for name, run in list(self._runs.items()):
            patience = LEFT if run.was_watched else NEVER_WATCHED
            if run.state == "waiting" and not run.watchers and self.clock() - run.seen > patience:
                self._leave_line(name)
        idle = [name for name, run in self._runs.items() if not run.watchers and run.state != "waiting"]
        old = [name for name in idle if self.clock() - self._runs[name].seen > FORGOTTEN]
        for name in {*old, *idle[: max(0, len(idle) - MOST_KEPT)]}:
            self.forget(name)

    def _leave_line(self, visitor: str) -> None:
        """Drop an unwatched text; one that has been partly learned only stops."""
        if self._runs[visitor].frames:
            self.stop(visitor)
        else:
            self.forget(visitor)

    def _sweep_later(self) -> None:
        """Let texts go in their time, also where no one brings another."""
        if self._sweeper is not None or not self._runs:
            return
        there = weakref.ref(self)

        def sweep() -> None:
            if (trainer := there()) is not None:
                with trainer._lock:
                    trainer._sweeper = None
                    trainer._sweep()
                    trainer._sweep_later()

        self._sweeper = threading.Timer(LOOK, sweep)
        self._sweeper.daemon = True
        self._sweeper.start()

    def _make_key(self, run: _Run) -> None:
        """From now on there is a model of its last frame."""
        self._drop_key(run)
        if run.resume is not None and run.frames:
            run.key = base64.b32encode(secrets.token_bytes(10)).decode().lower()[:12]

    def _drop_key(self, run: _Run) -> None:
        key, run.key = run.key, ""
        if key:
            self.on_release(key)

    def _start(self, run: _Run) -> None:
        run.state, run.why = "running", ""
        process = run.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
        )
        spent = run.points[-1][2] if run.points else 0.0
        asked = {
            "text": run.of.text, "unit": run.of.unit, "seed": run.of.seed, "steps": run.steps,
            "seconds": max(0.0, run.seconds - spent), "start": run.resume,
        }  # fmt: skip
        threading.Thread(target=self._follow, args=(run, process, asked, spent), name="text", daemon=True).start()

    def _follow(self, run: _Run, process: subprocess.Popen[bytes], asked: dict[str, Any], spent: float) -> None:
        """Tell the process what to learn, and hear of it until it ends."""
        assert process.stdin is not None and process.stdout is not None
        with process, suppress(OSError):
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()  # and left open: the process ends when this one closes it, or dies
            for line in process.stdout:
                with self._lock:
                    if run.process is not process:
                        return  # it was stopped meanwhile
                    if line.endswith(b"\n"):
                        self._on_message(run, json.loads(line), spent)
        with self._lock:
            if run.process is process:
                run.process = None
                if run.state == "running":
                    run.state, run.why = "failed", PROCESS_DIED
                self._turn()
                self._changed(run)

    def _on_message(self, run: _Run, said: dict[str, Any], spent: float) -> None:
        if "begun" in said:
            run.begun = said["begun"]
        elif "point" in said:
            step, loss, seconds = said["point"]
            run.points.append((step, loss, seconds + spent))
        elif "frame" in said:
            frame = said["frame"]
            run.resume = frame.pop("state")
            run.frames.append({**frame, "seconds": frame["seconds"] + spent})
        elif "failed" in said:
            run.state, run.why = "failed", said["failed"]
        else:
            run.state = "ended"
            self._make_key(run)
        self._changed(run)

    def _kill(self, run: _Run) -> None:
        process, run.process = run.process, None
        if process is not None:
            process.kill()
        self._changed(run)

    def _changed(self, run: _Run) -> None:
        for tell in run.watchers:
            tell()
