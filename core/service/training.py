"""A training as it goes on, in plain data: its curve, its frames, and how they see an example."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..checkpoints import Loaded
from ..errors import Busy, CheckpointError, Refused
from ..learn import saved_runs, watched_training
from ..learn.watched_training import Frame, Point, Spec, Weights
from .engine import Engine
from .event_loop import into_loop
from .facts import array
from .worker import Worker

State = Literal["waiting", "running", "paused", "ended", "failed"]


@dataclass(frozen=True)
class FrameFacts:
    """What a frame says beside its weights; watched_training.Frame has the meaning of each."""

    step: int
    given: tuple[float, ...]
    own: tuple[float, ...]
    whole: int
    gradients: tuple[float, ...]
    loss: float | None = None  # None where it is no number
    finds: Weights = ()
    back: Weights = ()
    ahead: Weights = ()


@dataclass(frozen=True)
class TrainingUpdate:
    """What a run has come to since the news before: its state, its place in the queue, and what is new of it."""

    state: State
    place: int = 0  # how many wait or run before it, while it waits
    seconds: float = 0.0  # that it will wait, about
    points: tuple[Point, ...] = ()
    frames: tuple[FrameFacts, ...] = ()
    why: str = ""  # it failed


@dataclass(frozen=True, eq=False)
class LookFacts:
    """An example as one frame of a training sees it; watched_training.Look in plain data."""

    step: int
    pattern: np.ndarray  # float32 [layer, head, query, key]
    p: tuple[float, ...]  # of the right symbol at each place of the answer, what is before it given
    best: tuple[str, ...]
    own: str  # what it writes on its own
    finds: np.ndarray  # float32 [layer, head]
    ahead: np.ndarray  # float32 [layer, head]


MOST_ACTIVE = 2
MOST_WAITING = 20
MOST_PAUSED = 8  # of which the oldest end
KEPT_BYTES = 192 << 20  # of the frames of runs without a viewer
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}  # of the process: visitors keep the other cores
COMMAND = (sys.executable, "-m", f"{__package__}.training_process")

NONE = "There is no such training yet. Press Train to begin it."
PROCESS_DIED = (
    "The training process has ended, and what there was of this run is lost. Press Train to begin it again. "
    "Everything else on this page still works."
)

log = logging.getLogger("headlight")


@dataclass(eq=False)
class Training:
    """A run, as far as it is. Its number is its own: of two runs of one Spec, one after the other, each has another."""

    spec: Spec
    number: int
    state: State = "waiting"
    points: list[Point] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    why: str = ""
    process: object = None  # that it runs in
    is_kept: bool = False  # paused, and not ended, when nobody watches
    watchers: list[Callable[[], None]] = field(default_factory=list)  # called when there is news

    @property
    def nbytes(self) -> int:
        return sum(x.numel() * x.element_size() for frame in self.frames for x in frame.weights.values())


class Trainer:
    """Runs by their Spec. Any number of threads and event loops may watch."""

    def __init__(
        self, command: tuple[str, ...] = COMMAND, folder: Path = saved_runs.FOLDER, ends: Path = saved_runs.ENDS
    ) -> None:
        self.command = command
        self.folder = folder  # of runs that have ended before
        self.ends = ends  # of the last frames of others
        self._lock = threading.RLock()
        self._runs: OrderedDict[Spec, Training] = OrderedDict()  # oldest use first
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._numbers = count()
        self._pace = 1 / 57  # seconds a step of one run alone, as measured so far

    def ready(self) -> None:
        """Start the process, where there is none: it takes seconds, which nobody should wait for who presses Train."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()

    # for those who watch

    async def watch(self, spec: Spec) -> AsyncGenerator[TrainingUpdate]:
        """A run from its beginning: what there is of it at once, and then what comes, until it has ended.

        It is begun if nobody did. When the last who watches closes the generator, a run that has not ended is cancelled. Raises
        Busy where too many wait.
        """
        changed = asyncio.Event()
        tell = into_loop(changed.set)
        run = self._join(spec, tell)
        points = frames = 0
        before: TrainingUpdate | None = None
        try:
            while True:
                changed.clear()
                with self._lock:
                    place, seconds = self._queue(run)
                    new = TrainingUpdate(
                        run.state,
                        place,
                        round(seconds),
                        tuple(run.points[points:]),
                        tuple(map(frame_facts, run.frames[frames:])),
                        run.why,
                    )
                    points, frames = len(run.points), len(run.frames)
                if new != before:
                    yield new
                if new.state in ("ended", "failed"):
                    return
                before = new
                await changed.wait()
        finally:
            self._leave(run, tell)

    def now(self, spec: Spec) -> TrainingUpdate:
        """What there is of a run. Raises Refused for one that was never begun, or was dropped."""
        with self._lock:
            run = self._known(spec)
            if run is None or not run.points:
                raise Refused(NONE)
            self._runs.move_to_end(spec)
            return TrainingUpdate(
                run.state, points=tuple(run.points), frames=tuple(map(frame_facts, run.frames)), why=run.why
            )

    def frames(self, spec: Spec) -> tuple[Frame, ...]:
        """Those that a run has by now; the last alone of one that ships. Raises Refused for one that was never begun, or was dropped."""
        with self._lock:
            run = self._known(spec)
            if run is not None and run.frames:
                self._runs.move_to_end(spec)
                return tuple(run.frames)
        shipped = saved_runs.read(self.ends, spec) if run is None else None
        if shipped is None:
            raise Refused(NONE)
        return tuple(shipped[1])

    def pause(self, spec: Spec) -> None:
        """Let a run that goes on wait where it is, once nobody watches it; whoever watches it next lets it go on."""
        with self._lock:
            run = self._runs.get(spec)
            if run is not None and run.state in ("waiting", "running"):
                run.is_kept = True

    def close(self) -> None:
        """End the process, and with it every run that has not ended."""
        with self._lock:
            process, listener, self._process = self._process, self._listener, None
            for run in list(self._runs.values()):
                if run.state == "waiting":  # or the place of one that dies would begin a process for it
                    run.state, run.why = "failed", PROCESS_DIED
                    self._changed(run)
        if process is not None and listener is not None:
            process.kill()
            listener.join()

    # the queue

    def _join(self, spec: Spec, tell: Callable[[], None]) -> Training:
        with self._lock:
            run = self._known(spec)
            if run is not None and run.state == "failed":
                del self._runs[spec]
                run = None
            if run is None:
                waiting = sum(other.state == "waiting" for other in self._runs.values())
                if waiting >= MOST_WAITING:
                    raise Busy(f"{waiting} trainings wait already, and that is the most. Try again in a minute.")
                run = self._runs[spec] = Training(spec, next(self._numbers))
            self._runs.move_to_end(spec)
            if run.state == "paused":
                run.state = "waiting"
            run.is_kept = False
            run.watchers.append(tell)
            self._turn()
            return run

    def _known(self, spec: Spec) -> Training | None:
        """A run that was begun, or that ended before and was kept as a file."""
        run = self._runs.get(spec)
        if run is None and (found := saved_runs.read(self.folder, spec)) is not None:
            run = self._runs[spec] = Training(spec, next(self._numbers), "ended", *found)
            self._drop(but=run)
        return run

    def _leave(self, run: Training, tell: Callable[[], None]) -> None:
        with self._lock:
            run.watchers.remove(tell)
            if not run.watchers and run.state in ("waiting", "running"):
                if run.is_kept:
                    self._tell({"pause": run.number})
                    run.state = "paused"
                else:
                    self._end(run)
                self._turn()
            self._drop()

    def _end(self, run: Training) -> None:
        """Stop a run without a viewer, and forget it."""
        if run.process is not None:  # one that waits may have been paused there
            self._tell({"stop": run.number})
        if self._runs.get(run.spec) is run:
            del self._runs[run.spec]
        run.state = "failed"

    def _turn(self) -> None:
        """Begin those that wait while there is room."""
        active = sum(run.state == "running" for run in self._runs.values())
        for run in list(self._runs.values()):
            if active >= MOST_ACTIVE:
                return
            if run.state == "waiting":
                run.state = "running"
                active += 1
                begun = run.process is not None
                self._tell({"go": run.number} if begun else {"start": run.number, "spec": key_of(run.spec)})
                run.process = self._process
                self._changed()

    def _queue(self, run: Training) -> tuple[int, float]:
        """(how many wait before a run, seconds until it begins), by what is left of those that run."""
        if run.state != "waiting":
            return 0, 0.0
        before = []
        for other in self._runs.values():
            if other is run:
                break
            if other.state == "waiting":
                before.append(other)
        n_steps = sum(r.spec.steps - len(r.points) for r in self._runs.values() if r.state == "running")
        n_steps += sum(other.spec.steps for other in before)
        return len(before) + 1, n_steps * self._pace

    def _drop(self, but: Training | None = None) -> None:
        """Of runs that nobody watches: the oldest that are paused beyond MOST_PAUSED, and that have ended until the rest fit."""
        paused = [run for run in self._runs.values() if run.state == "paused"]
        for run in paused[: max(0, len(paused) - MOST_PAUSED)]:
            self._end(run)
        held = sum(run.nbytes for run in self._runs.values())
        for spec, run in list(self._runs.items()):
            if held <= KEPT_BYTES:
                return
            if run.state == "ended" and not run.watchers and run is not but:
                held -= run.nbytes
                del self._runs[spec]

    # the process

    def _tell(self, command: Mapping[str, Any]) -> None:
        if self._process is None or self._process.poll() is not None:
            if "start" not in command:
                return
            self._start()
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError):  # it has just died: _listen says so to those who watch
            self._process.stdin.write(json.dumps(command).encode() + b"\n")

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self.command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
        )
        arguments = (self._process,)
        self._listener = threading.Thread(target=self._listen, args=arguments, name="training", daemon=True)
        self._listener.start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Messages of the process, until it ends."""
        assert process.stdout is not None
        with process:
            try:
                for line in process.stdout:
                    if line.endswith(b"\n"):  # or it has died in the middle of it
                        said = json.loads(line)
                        if "idle" in said:
                            self._end_idle_process(process)
                        else:
                            self._on_message(said)
            except Exception:
                # Nobody would hear of its runs again, and they would hold their places for ever.
                log.exception("What the training process said was not understood: it is ended")
                process.kill()
        with self._lock:
            if self._process is process:
                self._process = None
            for run in list(self._runs.values()):
                if run.state in ("running", "paused", "waiting") and run.process is process:
                    run.state, run.why = "failed", PROCESS_DIED
                    self._changed(run)
            self._turn()

    def _end_idle_process(self, process: subprocess.Popen[bytes]) -> None:
        """Let a process end that has had nothing to do for long, unless something has just been begun in it."""
        with self._lock:
            if self._process is not process or any(
                run.process is process and run.state in ("running", "paused", "waiting") for run in self._runs.values()
            ):
                return
            self._process = None
            assert process.stdin is not None
            process.stdin.close()

    def _on_message(self, said: Mapping[str, Any]) -> None:
        with self._lock:
            run = next((r for r in self._runs.values() if r.number == said["run"]), None)
            if run is None:
                return  # it was stopped meanwhile
            if "points" in said:
                run.points += [Point(int(s), float(loss), float(right)) for s, loss, right in said["points"]]
                self._pace = 0.9 * self._pace + 0.1 * float(said["pace"])
            elif "frame" in said:
                run.frames.append(frame_from(said["frame"]))
            else:
                run.state, run.why = ("failed", said["why"]) if said.get("why") else ("ended", "")
                self._turn()
            self._changed(run)

    def _changed(self, run: Training | None = None) -> None:
        """Tell those who watch a run, and all who wait: their places and seconds have changed."""
        for other in self._runs.values():
            if other is run or other.state in ("waiting", "running"):
                for tell in other.watchers:
                    tell()


def frame_facts(frame: Frame) -> FrameFacts:
    """A frame without its weights."""
    loss = frame.loss if math.isfinite(frame.loss) else None
    rest = frame.finds, frame.back, frame.ahead
    return FrameFacts(frame.step, frame.given, frame.own, frame.whole, frame.gradients, loss, *rest)


def key_of(spec: Spec) -> str:
    """A description as a command names it."""
    return json.dumps(asdict(spec), sort_keys=True)


def spec_from(key: str) -> Spec:
    """The description that a command names."""
    return Spec(**json.loads(key))


def frame_text(frame: Frame) -> dict[str, Any]:
    """A frame as JSON: weights as their bytes."""

    def packed(x: torch.Tensor) -> list[Any]:
        array = x.contiguous().numpy()
        return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]

    rest = {name: getattr(frame, name) for name in saved_runs.FACTS}
    return {**rest, "weights": {name: packed(x) for name, x in frame.weights.items()}}


def frame_from(said: Mapping[str, Any]) -> Frame:
    """The frame that frame_text() wrote."""
    weights = {
        name: torch.from_numpy(np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy())
        for name, (kind, shape, text) in said["weights"].items()
    }
    return saved_runs.frame_of(said, weights)


MAX_FRAMES_PER_ANSWER = 3  # frames of a training in one answer


def look_facts(spec: Spec, frame: watched_training.Frame, of: watched_training.Example) -> LookFacts:
    """An example as a frame sees it, in plain data."""
    seen = watched_training.look(spec, frame, of)
    pattern, finds, ahead = (array(x) for x in (seen.pattern, seen.finds, seen.ahead))
    return LookFacts(seen.step, pattern, seen.p, seen.best, seen.own, finds, ahead)


class LocalTraining(Worker):
    """Trainings, their models, and what these make of an example."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._trainer = Trainer()
        engine.load_model = partial(self._load, engine.load_model)

    def train(self, spec: Spec) -> AsyncGenerator[TrainingUpdate]:
        """A training from its beginning, as far as it is, and then what comes of it until it has ended. Raises Busy.

        It is begun if nobody did; when the last who watches closes the iterator, one that has not ended is cancelled.
        """
        return self._trainer.watch(spec)

    async def prepare_trainer(self, spec: Spec) -> None:
        """Somebody may begin this training in a moment: let what it runs in be there by then. Nothing is begun."""
        self._trainer.ready()

    async def training(self, spec: Spec) -> TrainingUpdate:
        """What there is of a training now. Nothing is begun and nobody watches. Raises Refused where there is no such training."""
        return self._trainer.now(spec)

    async def trained(self, spec: Spec, step: int) -> bytes:
        """The model of a frame as a zip: config, weights, tokenizer, recipe, card. Raises Refused where there is no such frame."""
        frames = {frame.step: frame for frame in self._trainer.frames(spec)}
        if step not in frames:
            raise Refused(f"This training keeps no step {step}. It keeps {', '.join(map(str, frames))}.")
        return await self._work(partial(watched_training.archive, spec, frames[step]), slow=True)

    async def looks(self, spec: Spec, example: str, after: int = -1) -> tuple[LookFacts, ...]:
        """An example as every frame of a training behind step `after` sees it, so far: the next few, so that the first come soon.

        Raises Refused for an example that the task does not read, and where there is no such training.
        """
        of, frames = watched_training.example(spec, example), self._trainer.frames(spec)
        coming = [frame for frame in frames if frame.step > after][:MAX_FRAMES_PER_ANSWER]
        return tuple([await self._look(spec, frame, of) for frame in coming])

    async def _look(self, spec: Spec, frame: watched_training.Frame, of: watched_training.Example) -> LookFacts:
        make = partial(look_facts, spec, frame, of)
        return await self._kept.get(("look", spec, frame.step, of), lambda: self._work(make, slow=True))

    def _load(self, others: Callable[..., Loaded], model_id: str, **options: Any) -> Loaded:
        """A model by its name, also one that a training has come to. Raises CheckpointError where that training is gone."""
        name, _, point = model_id.partition("@")
        spec = watched_training.named(name)
        if spec is None:
            return others(model_id, **options)
        step = int(point) if point.isdecimal() else spec.steps
        title = watched_training.described(spec).title
        try:
            frames = {frame.step: frame for frame in self._trainer.frames(spec)}
        except Refused:
            raise CheckpointError(
                f"{title}: this run is not kept here any more. Open Train with the same task, twin and seed and press "
                "Train: it comes to the same weights."
            ) from None
        if step not in frames:
            raise CheckpointError(f"{title} keeps no step {step}. It keeps {', '.join(map(str, frames))}.")
        return watched_training.opened(spec, frames[step], options["device"], options["dtype"])

    async def pause_training(self, spec: Spec) -> None:
        """Let a training wait where it is once nobody watches it, instead of ending it; whoever watches it next lets it go on."""
        self._trainer.pause(spec)
