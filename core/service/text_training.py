"""TextTrainer: trains models on texts of visitors, in processes of their own, two at a time and one for each visitor.

A text and its model are visible only to their visitor. They are in memory while the visitor watches and for some time after, and are
never written to a file. A process starts only for a visitor who watches, so texts that a script sends and leaves take neither a process
nor a place in the queue.
"""

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
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from ..errors import HeadlightError, ServerBusy
from ..learn.text_training import SECONDS, STEPS, Text
from ..learn.training import RunState
from .training import ENVIRONMENT, MAX_ACTIVE, MAX_WAITING, tensors_from
from .worker import into_loop

COMMAND = (sys.executable, "-m", f"{__package__}.training_process", "text")
MAX_KEPT = 40  # texts of visitors who are not watching
FORGOTTEN = 1800.0  # seconds after which such a text is dropped
NEVER_WATCHED = 15.0  # seconds that a new text is queued before its visitor watches
LEFT = 120.0  # seconds that it stays queued after its visitor has left
SWEEP_SECONDS = 5.0  # between two searches for such texts
NONE = "There is no text here yet. Paste or drop one."
UNLEARNT = "Nothing of this text is learnt yet."
GONE = "The model of this text is not kept any more. Open Train and let it learn the text again."
PROCESS_DIED = "The process that learnt this text has ended. Press Train to learn it again."

log = logging.getLogger("headlight")


@dataclass(frozen=True)
class TextTrainingUpdate:
    """Changes of a visitor's run since the previous update."""

    state: Literal["waiting", "running", "stopped", "ended", "failed"]
    place: int = 0
    seconds: float = 0.0  # estimated waiting time
    begun: dict[str, Any] | None = None  # baselines, prompt, signs, unit
    points: tuple[tuple[int, float, float], ...] = ()
    frames: tuple[dict[str, Any], ...] = ()
    why: str = ""
    key: str = ""  # of its model, once the run is idle


@dataclass(frozen=True, eq=False)
class TextModel:
    """Weights and optimizer state of a run's last frame, and its loss."""

    of: Text
    state: RunState
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
    resume: dict[str, Any] | None = None  # state of the last frame
    why: str = ""
    key: str = ""  # secret id of the model of its last frame, while the run is idle
    process: subprocess.Popen[bytes] | None = None
    seen: float = field(default_factory=time.monotonic)  # when it was last watched
    was_watched: bool = False
    watchers: list[Callable[[], None]] = field(default_factory=list)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - (self.points[-1][2] if self.points else 0.0))


class TextTrainer:
    """Texts by visitor. Thread-safe, for any number of event loops."""

    def __init__(
        self,
        command: tuple[str, ...] = COMMAND,
        seconds: float = SECONDS,
        steps: int = STEPS,
        on_release: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`on_release` is called with the key of each model that is dropped."""
        self.command, self.seconds, self.steps, self.on_release = command, seconds, steps, on_release
        self.clock = time.monotonic
        self._sweeper: threading.Timer | None = None
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def begin(self, visitor: str, of: Text) -> None:
        """Queue a text of a visitor, in place of the visitor's previous one. Raises Busy if the queue is full.

        In a full queue, the oldest unwatched text is dropped.
        """
        with self._lock:
            self.forget(visitor)
            self._sweep()
            waiting = [name for name, run in self._runs.items() if run.state == "waiting"]
            if len(waiting) >= MAX_WAITING:
                unwatched = next((name for name in waiting if not self._runs[name].watchers), None)
                if unwatched is None:
                    raise ServerBusy(
                        f"{len(waiting)} trainings wait already, and that is the most. Try again in a minute."
                    )
                self._dequeue(unwatched)
            self._runs[visitor] = _Run(of, self.seconds, self.steps, seen=self.clock())
            self._start_waiting()
            self._sweep_later()

    def stop(self, visitor: str) -> None:
        """Stop a run. Its last frame is kept, and resume() continues from there."""
        with self._lock:
            run = self._mine(visitor)
            if run.state in ("waiting", "running"):
                run.state = "stopped"
                last = run.frames[-1]["step"] if run.frames else 0
                run.points = [point for point in run.points if point[0] <= last]
                self._make_key(run)
                self._kill(run)
                self._start_waiting()

    def resume(self, visitor: str) -> None:
        """Continue a stopped run."""
        with self._lock:
            run = self._mine(visitor)
            if run.state in ("stopped", "failed"):
                run.state, run.seen = "waiting", self.clock()
                self._drop_key(run)
                self._runs.move_to_end(visitor)
                self._start_waiting()

    def forget(self, visitor: str) -> None:
        """Drop a visitor's text and its model."""
        with self._lock:
            run = self._runs.pop(visitor, None)
            if run is not None:
                run.state, run.why = "failed", NONE
                self._drop_key(run)
                self._kill(run)
                self._start_waiting()

    def keep(self, visitor: str) -> None:
        """The visitor is still here: keep the text for another FORGOTTEN seconds. Raises Refused if there is none."""
        with self._lock:
            self._mine(visitor).seen = self.clock()

    def is_of(self, key: str, visitor: str) -> bool:
        """True if this is the key of a model of this visitor. The text is then kept longer, as by keep()."""
        with self._lock:
            run = self._runs.get(visitor)
            if run is None or not key or run.key != key:
                return False
            run.seen = self.clock()
            return True

    def model(self, visitor: str) -> TextModel:
        """The last frame of a visitor's run. Raises Refused if there is none."""
        with self._lock:
            run = self._mine(visitor)
            if run.resume is None or not run.frames:
                raise HeadlightError(UNLEARNT)
            of, state, loss = run.of, run.resume, run.frames[-1]["loss"]
        return TextModel(of, RunState(int(state["step"]), tensors_from(state["tensors"])), loss)

    def model_of(self, key: str) -> TextModel:
        """The same by the key of an idle run. Raises Refused for any other key."""
        with self._lock:
            visitor = next((name for name, run in self._runs.items() if key and run.key == key), None)
            if visitor is None:
                raise HeadlightError(GONE)
            return self.model(visitor)

    def close(self) -> None:
        """Drop all texts."""
        with self._lock:
            for visitor in list(self._runs):
                self._runs[visitor].state = "failed"
            for visitor in list(self._runs):
                self.forget(visitor)

    async def watch(self, visitor: str) -> AsyncGenerator[TextTrainingUpdate]:
        """Updates of a visitor's run from its start until it is idle. Raises Refused if there is none."""
        changed = asyncio.Event()
        notify = into_loop(changed.set)
        with self._lock:
            run = self._mine(visitor)
            run.watchers.append(notify)
            run.was_watched = True
            self._start_waiting()
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
                run.watchers.remove(notify)
                run.seen = self.clock()
                self._sweep_later()

    def _mine(self, visitor: str) -> _Run:
        if visitor not in self._runs:
            raise HeadlightError(NONE)
        return self._runs[visitor]

    def _place(self, run: _Run) -> tuple[int, float]:
        """(number of runs before it, estimated seconds until it starts) of a waiting run."""
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

    def _start_waiting(self) -> None:
        """Start waiting runs that are watched while there are free slots, and notify the others of their place in the queue."""
        active = sum(run.state == "running" for run in self._runs.values())
        for run in list(self._runs.values()):
            if run.state == "waiting" and run.watchers and active < MAX_ACTIVE:
                active += 1
                self._start(run)
        for run in self._runs.values():
            self._changed(run)

    def _sweep(self) -> None:
        """Drop texts that have been unwatched for long: from the queue, then from memory, where MOST_KEPT stay."""
        for name, run in list(self._runs.items()):
            patience = LEFT if run.was_watched else NEVER_WATCHED
            if run.state == "waiting" and not run.watchers and self.clock() - run.seen > patience:
                self._dequeue(name)
        idle = [name for name, run in self._runs.items() if not run.watchers and run.state != "waiting"]
        old = [name for name in idle if self.clock() - self._runs[name].seen > FORGOTTEN]
        for name in {*old, *idle[: max(0, len(idle) - MAX_KEPT)]}:
            self.forget(name)

    def _dequeue(self, visitor: str) -> None:
        """Drop an unwatched text. One that has frames is only stopped."""
        if self._runs[visitor].frames:
            self.stop(visitor)
        else:
            self.forget(visitor)

    def _sweep_later(self) -> None:
        """Schedule the next _sweep(), which must not depend on new texts."""
        if self._sweeper is not None or not self._runs:
            return
        alive = weakref.ref(self)

        def sweep() -> None:
            if (trainer := alive()) is not None:
                with trainer._lock:
                    trainer._sweeper = None
                    trainer._sweep()
                    trainer._sweep_later()

        self._sweeper = threading.Timer(SWEEP_SECONDS, sweep)
        self._sweeper.daemon = True
        self._sweeper.start()

    def _make_key(self, run: _Run) -> None:
        """Publish the model of the last frame under a new key."""
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
        request = {
            "text": run.of.text, "unit": run.of.unit, "seed": run.of.seed, "steps": run.steps,
            "seconds": max(0.0, run.seconds - spent), "start": run.resume,
        }  # fmt: skip
        threading.Thread(target=self._follow, args=(run, process, request, spent), name="text", daemon=True).start()

    def _follow(self, run: _Run, process: subprocess.Popen[bytes], request: dict[str, Any], spent: float) -> None:
        """Thread that sends the request to the process and handles its messages until it ends."""
        assert process.stdin is not None and process.stdout is not None
        with process, suppress(OSError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()  # left open: the process ends when this one closes the pipe, or dies
            for line in process.stdout:
                with self._lock:
                    if run.process is not process:
                        return  # it was stopped in the meantime
                    if line.endswith(b"\n"):
                        self._on_message(run, json.loads(line), spent)
        with self._lock:
            if run.process is process:
                run.process = None
                if run.state == "running":
                    run.state, run.why = "failed", PROCESS_DIED
                self._start_waiting()
                self._changed(run)

    def _on_message(self, run: _Run, message: dict[str, Any], spent: float) -> None:
        if "begun" in message:
            run.begun = message["begun"]
        elif "point" in message:
            step, loss, seconds = message["point"]
            run.points.append((step, loss, seconds + spent))
        elif "frame" in message:
            frame = message["frame"]
            run.resume = frame.pop("state")
            run.frames.append({**frame, "seconds": frame["seconds"] + spent})
        elif "failed" in message:
            run.state, run.why = "failed", message["failed"]
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
